import assert from "node:assert/strict";
import test from "node:test";

import { Latest, STALE } from "../../../../klsa_search/service/page/latest.js";

test("only the latest work counts, and earlier work is aborted", async () => {
  const latest = new Latest();
  let signal;
  let finish;
  const first = latest.run((given) => {
    signal = given;
    return new Promise((resolve) => { finish = resolve; });
  });
  const second = latest.run(async () => "second");
  assert.equal(signal.aborted, true);
  finish("first");
  assert.equal(await first, STALE);
  assert.equal(await second, "second");
});

test("a failure of the latest work is passed on, of earlier work is not", async () => {
  const latest = new Latest();
  const earlier = latest.run(async () => { throw new Error("late"); });
  const now = latest.run(async () => { throw new Error("now"); });
  assert.equal(await earlier, STALE);
  await assert.rejects(now, /now/);
});
