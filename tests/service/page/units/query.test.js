import assert from "node:assert/strict";
import test from "node:test";

import {
  filterOf, filtering, HITS, isAsked, pageOf, pagesOf, rankerOf, rankingOf, searchOf,
} from "../../../../klsa_search/service/page/query.js";
import { given } from "./given.js";

test("an unknown ranker of the address is the default", () => {
  assert.equal(rankerOf(given("")), "klsa");
  assert.equal(rankerOf(given("ranker=lucene")), "klsa");
  assert.equal(rankerOf(given("ranker=bm25")), "bm25");
});

test("a page is a whole number within what the service answers", () => {
  for (const [text, page] of [["", 1], ["3", 3], ["2.9", 2], ["0", 1], ["-4", 1], ["x", 1], ["1e9", 1000]]) {
    assert.equal(pageOf(given(`page=${text}`)), page, text);
  }
});

test("pages cover the total and no more", () => {
  for (const total of [0, 1, HITS - 1, HITS, HITS + 1, 5 * HITS]) {
    assert.equal(pagesOf(total), Math.ceil(total / HITS), String(total));
  }
});

const FIELDS = { year: { type: "number" }, "the tag": { type: "keyword" } };

test("a filter quotes names and values, and writes numbers as numbers", () => {
  const state = given('is.year=2020&is.year=2021&is.the tag=say "hi" \\ there');
  assert.equal(
    filterOf(state, FIELDS),
    '"year" IN [2020, 2021] AND "the tag" IN ["say \\"hi\\" \\\\ there"]',
  );
});

test("a filter leaves out the field that is being counted", () => {
  assert.equal(filterOf(given(""), FIELDS), null);
  assert.equal(filterOf(given("filter=price+%3E+3"), FIELDS), "price > 3"); // as errors name it
  const every = filterOf(given("is.tag=a&is.tag=b&every.tag=yes"), { tag: { type: "keyword" } });
  assert.equal(every, '"tag" IN ["a"] AND "tag" IN ["b"]');
});

test("bounds and a filter in words are joined", () => {
  const state = given("from.year=2019&to.year=2021&filter=price > 3 OR price < 1");
  assert.equal(filterOf(state, FIELDS), '"year" >= 2019 AND "year" <= 2021 AND (price > 3 OR price < 1)');
});

test("parameters that filter are named once each", () => {
  assert.deepEqual(filtering(given("q=a&is.x=1&is.x=2&to.y=3&filter=z")), ["is.x", "to.y", "filter"]);
});

test("a search needs words, a filter, an order or examples", () => {
  assert.equal(isAsked(given("q=  ")), false);
  for (const each of ["q=a", "sort=year", "is.x=1", "positive=d1"]) assert.equal(isAsked(given(each)), true, each);
});

test("only sliders that were moved are sent", () => {
  assert.deepEqual(rankingOf(given("alpha=0.3&z=")), { ranker: "klsa", alpha: 0.3 });
  assert.deepEqual(rankingOf(given("ranker=bm25&alpha=0.3")), { ranker: "bm25" });
});

test("a search holds what was given and nothing else", () => {
  assert.deepEqual(searchOf(given("q=engines"), FIELDS), { q: "engines", ranker: "klsa" });
  assert.deepEqual(searchOf(given("q=a&sort=year:desc&positive=1&positive=2&spelling=off&match=all"), FIELDS), {
    q: "a", ranker: "klsa", sort: ["year:desc"], positive: ["1", "2"], spelling: "off", match: "all",
  });
});
