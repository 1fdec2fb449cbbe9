import assert from "node:assert/strict";
import { afterEach, test } from "node:test";

import { Client, KlsaError } from "../../../../klsa_search/service/page/klsa.js";

const real = globalThis.fetch;
afterEach(() => { globalThis.fetch = real; });

const json = (content, status = 200, headers = {}) =>
  new Response(JSON.stringify(content), { status, headers });
const busy = (after) =>
  json({ error: { code: "service_busy", message: "busy", field: null } }, 503, after);

/** Answer requests with these in turn, errors are thrown; return what was requested. */
function answering(...answers) {
  const requests = [];
  globalThis.fetch = async (address, options) => {
    options.signal?.throwIfAborted();
    requests.push({ address, ...options });
    const next = answers.shift();
    if (next instanceof Error) throw next;
    return next;
  };
  return requests;
}

const client = new Client("http://host:1/search/", { key: "klsa_x", retries: 2 });

test("a request has an address, the key and its parameters", async () => {
  const requests = answering(json({}), json({ suggestions: [] }), json({ hits: [] }));
  await client.index("a b").document("x/y?");
  await client.index("a b").suggest("é&", { k: 3 });
  await client.index("a b").search("q", { k: 1, facets: ["brand"] });
  assert.deepEqual(requests.map((each) => each.address), [
    "http://host:1/search/documents/x%2Fy%3F?index=a+b",
    "http://host:1/search/indexes/a%20b/suggest?q=%C3%A9%26&k=3",
    "http://host:1/search/indexes/a%20b/search",
  ]);
  assert.equal(requests[0].headers.get("Authorization"), "Bearer klsa_x");
  assert.equal(requests[0].headers.get("Content-Type"), null);
  assert.equal(requests[2].headers.get("Content-Type"), "application/json");
  assert.deepEqual(JSON.parse(requests[2].body), { q: "q", k: 1, facets: ["brand"] });
});

test("requests may be sent by another function, and with another content type", async () => {
  const requests = answering();
  const fetch = async (address, options) => {
    requests.push({ address, ...options });
    return new Response("line\n");
  };
  const own = new Client("http://host:1", { fetch });
  const options = { body: "{}", contentType: "application/x-ndjson" };
  assert.equal(await own.text("POST", "/indexes/shop/documents", options), "line\n");
  assert.equal(requests[0].headers.get("Content-Type"), "application/x-ndjson");
});

test("a busy service and a failed connection are tried again", async () => {
  const soon = { "Retry-After": "0" };
  const requests = answering(busy(soon), new TypeError("failed"), json({ indexes: [1] }));
  assert.deepEqual(await client.indexes(), [1]);
  assert.equal(requests.length, 3);
});

test("what would be done twice is not repeated after its answer was lost", async () => {
  const shop = client.index("shop");
  const calls = [
    () => client.createIndex("shop"),
    () => client.deleteIndex("shop"),
    () => shop.delete(["1"]),
    () => shop.deleteRule("pin"),
    () => shop.click({ search_id: "x" }, { id: "1", rank: 1 }),
  ];
  for (const call of calls) {
    let requests = answering(new TypeError("lost"), json({}));
    await assert.rejects(call, { code: "service_failed" });
    assert.equal(requests.length, 1);
    requests = answering(busy({}), json({}));
    await assert.rejects(call, { code: "service_busy" });
    assert.equal(requests.length, 1);
    requests = answering(busy({ "Retry-After": "0" }), json({}));
    await call();
    assert.equal(requests.length, 2);
  }
  for (const call of [() => shop.search("a"), () => shop.add([{ id: "1" }])]) {
    const requests = answering(new TypeError("lost"), json({ added: 1 }));
    await call();
    assert.equal(requests.length, 2);
  }
});

test("IDs that an address cannot contain are refused", async () => {
  const requests = answering();
  for (const id of [".", ".."]) {
    assert.throws(() => client.index("shop").document(id), { name: "TypeError" });
    assert.throws(() => client.index("shop").patch(id, {}), { name: "TypeError" });
    await assert.rejects(client.deleteIndex(id), { name: "TypeError" });
  }
  assert.equal(requests.length, 0);
});

test("a file is sent once", async () => {
  const file = new Blob(["id,text"]);
  for (const answer of [new TypeError("lost"), busy({}), busy({ "Retry-After": "0" })]) {
    const requests = answering(answer, json({}));
    await assert.rejects(client.index("shop").addFile(file, { name: "a.csv" }));
    assert.equal(requests.length, 1);
  }
});

test("Retry-After is honoured, up to half a minute", async (context) => {
  const pauses = [];
  context.mock.method(globalThis, "setTimeout", (done, ms) => { pauses.push(ms); done(); });
  for (const headers of [{ "Retry-After": "7" }, { "Retry-After": "900" }, {}]) {
    answering(busy(headers), json({ indexes: [] }));
    await client.indexes();
  }
  assert.deepEqual(pauses, [7_000, 30_000, 100]);
});

test("the last failure is reported", async () => {
  const soon = { "Retry-After": "0" };
  const requests = answering(busy(soon), busy(soon), busy(soon), busy(soon));
  await assert.rejects(client.indexes(), { name: "KlsaError", code: "service_busy", status: 503 });
  assert.equal(requests.length, 3);
  answering(new TypeError("refused"));
  const once = new Client("http://host:1", { retries: 0 });
  await assert.rejects(once.indexes(), (error) => {
    assert.ok(error instanceof KlsaError);
    assert.deepEqual([error.code, error.field, error.status], ["service_failed", null, 0]);
    assert.match(error.message, /`http:\/\/host:1`: refused/);
    return error.cause instanceof TypeError;
  });
});

test("an error of the service is not tried again, and has code, field and status", async () => {
  const error = { code: "bad_query", message: "no field", field: "filter" };
  const requests = answering(json({ error }, 400));
  const expected = { code: "bad_query", message: "no field", field: "filter", status: 400 };
  await assert.rejects(client.index("a").search("q"), expected);
  assert.equal(requests.length, 1);
});

test("an answer of something else is reported as such", async () => {
  for (const [text, status] of [["<html>", 200], ["<html>", 502], ["{}", 404]]) {
    answering(new Response(text, { status }));
    await assert.rejects(client.indexes(), { code: "service_failed", status });
  }
});

test("documents are sent in batches of 1,000, or of some megabytes", async () => {
  async function* documents(count, text) {
    for (let id = 0; id < count; id += 1) yield { id, text };
  }
  const sizes = async (...given) => {
    const requests = [];
    globalThis.fetch = async (_, { body }) => {
      const batch = JSON.parse(body);
      requests.push(batch.length);
      return json({ added: batch.length });
    };
    assert.equal(await client.index("a").add(documents(...given)), given[0]);
    return requests;
  };
  assert.deepEqual(await sizes(2001, "x"), [1000, 1000, 1]);
  assert.deepEqual(await sizes(3, "x".repeat(3_000_000)), [2, 1]);
  assert.deepEqual(await sizes(0, ""), []);
});

test("a text is not a list of IDs", async () => {
  const requests = answering();
  await assert.rejects(client.index("a").delete("P-1"), TypeError);
  assert.equal(requests.length, 0);
});

test("a signal ends a request and the pause before the next", async () => {
  const controller = new AbortController();
  const requests = answering(busy({ "Retry-After": "30" }));
  const pending = client.indexes({ signal: controller.signal });
  setTimeout(() => controller.abort(new Error("enough")), 20);
  await assert.rejects(pending, /enough/);
  await assert.rejects(client.index("a").search("q", { signal: controller.signal }), /enough/);
  assert.equal(requests.length, 1);
});

test("an invalid address or key is refused at once", () => {
  assert.throws(() => new Client("host"), TypeError);
  assert.throws(() => new Client("http://host", { key: "ключ" }), TypeError);
});
