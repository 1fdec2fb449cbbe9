import assert from "node:assert/strict";
import test from "node:test";

import { alternatives, counted, facetFields } from "../../../../klsa_search/service/page/facets.js";
import { given } from "./given.js";

const FIELDS = {
  id: { type: "keyword", texts: 900, values: 1000 },
  tag: { type: "keyword", texts: 7, values: 1000 },
  year: { type: "number" },
};

test("a field that differs in nearly every document is not counted", () => {
  assert.deepEqual(facetFields(FIELDS), ["tag", "year"]);
  assert.deepEqual(counted({}), {});
  assert.deepEqual(counted(FIELDS).facets, ["tag", "year"]);
});

test("other values of a chosen field are counted without its own filter", () => {
  const [asked, ...none] = alternatives(given("q=a&is.tag=x&is.year=2020"), FIELDS);
  assert.equal(asked.name, "tag");
  assert.equal(asked.search.filter, '"year" IN [2020]');
  assert.deepEqual(asked.search.facets, ["tag"]);
  assert.deepEqual(none.map(({ name }) => name), ["year"]);
});
