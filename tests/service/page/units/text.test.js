import assert from "node:assert/strict";
import test from "node:test";

import { written } from "../../../../klsa_search/service/page/dom.js";
import { count, many } from "../../../../klsa_search/service/page/words.js";

test("a moment is written as its day, with the time unless it is midnight", () => {
  assert.equal(written("2024-05-01T00:00:00Z"), "2024-05-01");
  assert.equal(written("2024-05-01T14:30:00.5Z"), "2024-05-01 14:30 UTC");
});

test("other values are written as they are", () => {
  for (const each of ["2024-05-01", "open", 3, 2024, 70.4, true]) assert.equal(written(each), String(each));
});

test("numbers are grouped, and nouns follow them", () => {
  assert.equal(count(1234567), "1,234,567");
  assert.equal(many(1, "document"), "1 document");
  assert.equal(many(0, "document"), "0 documents");
  assert.equal(many(2, "match", "matches"), "2 matches");
});
