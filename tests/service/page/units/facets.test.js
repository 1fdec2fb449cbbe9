import assert from "node:assert/strict";
import test from "node:test";

import { counted, facetFields, ordered, periods } from "../../../../klsa_search/service/page/facets.js";
import { given } from "./given.js";

const FIELDS = {
  id: { type: "keyword", texts: 900, values: 1000 },
  tag: { type: "keyword", texts: 7, values: 1000 },
  year: { type: "number" },
};

test("a field that differs in nearly every document is not counted", () => {
  assert.deepEqual(facetFields(FIELDS), ["tag", "year"]);
  assert.deepEqual(counted(given(""), {}), {});
});

test("codes are not counted, unless their field is declared a number", () => {
  const fields = { year: { type: "number", codes: false }, ean: { type: "number", codes: true } };
  assert.deepEqual(facetFields(ordered(fields, [])), ["year"]);
  assert.deepEqual(facetFields(ordered(fields, ["ean:number"])), ["ean", "year"]);
});

test("other values of a field are counted without its own choice, unless all chosen ones are meant", () => {
  const { facets, disjunctive_facets: any } = counted(given("q=a&is.tag=x&every.tag=yes"), FIELDS);
  assert.deepEqual([facets, any], [["tag"], ["year"]]);
  assert.deepEqual(counted(given("q=a&is.tag=x"), FIELDS).disjunctive_facets, ["tag", "year"]);
});

test("declared fields come first, then those with few values, then ranges", () => {
  const fields = { cost: { type: "number" }, tag: { type: "keyword", texts: 7 },
    state: { type: "keyword", texts: 3 }, seen: { type: "date" } };
  assert.deepEqual(Object.keys(ordered(fields, ["seen:date"])), ["seen", "state", "tag", "cost"]);
});

test("dates are offered by year, and those of one year by month", () => {
  const labels = (...given) => periods(...given).map(({ label }) => label);
  assert.deepEqual(labels("2023-02-21", "2025-01-02", ["", ""]), ["2023", "2024", "2025"]);
  assert.deepEqual(labels("2024-02-21", "2024-04-01", ["", ""]), ["2024", "Feb", "Mar", "Apr"]);
  assert.deepEqual(labels("1700-01-01", "2024-01-01", ["", ""]), []);
  assert.deepEqual(labels("", "", ["", ""]), []);
});

test("a chosen year or month can be taken back", () => {
  const taken = (...given) => periods(...given).filter(({ isChosen }) => isChosen);
  assert.deepEqual(taken("2024-02-03", "2024-12-30", ["2024-01-01", "2024-12-31"]),
    [{ label: "2024", bounds: ["2024-01-01", "2024-12-31"], isChosen: true }]);
  assert.deepEqual(taken("2024-02-03", "2024-02-04", ["2024-02-01", "2024-02-29"]),
    [{ label: "Feb", bounds: ["2024-02-01", "2024-02-29"], isChosen: true }]);
  assert.deepEqual(taken("", "", ["2024-01-01", "2024-12-31"]).map(({ label }) => label), ["2024"]);
});
