import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import test from "node:test";

import { FOR_PEOPLE, reasonOf } from "../../../../klsa_search/service/page/dom.js";
import { count, LANGUAGES, many, manyInEnglish, phrase, plainNumber, t, use } from "../../../../klsa_search/service/page/words.js";

const PAGE = new URL("../../../../klsa_search/service/page/", import.meta.url);
const wordsOf = (language) => JSON.parse(readFileSync(new URL(`words/${language}.json`, PAGE), "utf8"));
const blanks = (text) => text.match(/\{\w+\}/g)?.sort() ?? [];

test("every language has a file, and the same texts with the same blanks", () => {
  assert.deepEqual(readdirSync(new URL("words", PAGE)).sort(), LANGUAGES.map((each) => `${each}.json`));
  const [first] = LANGUAGES.map(wordsOf);
  for (const language of LANGUAGES) {
    const words = wordsOf(language);
    assert.deepEqual(Object.keys(words), Object.keys(first), language);
    for (const [text, translated] of Object.entries(words)) {
      assert.deepEqual(blanks(translated), blanks(text), `${language}: ${text}`);
    }
  }
});

test("every text that the page translates has a translation", () => {
  const words = wordsOf("de");
  const modules = [...readdirSync(PAGE), ...readdirSync(new URL("views", PAGE)).map((each) => `views/${each}`)];
  const texts = modules.filter((each) => each.endsWith(".js") && each !== "words.js").flatMap((each) =>
    [...readFileSync(new URL(each, PAGE), "utf8").matchAll(/\b(?:t|phrase)\("([^"]+)"/g)].map(([, text]) => text));
  assert.ok(texts.length > 50);
  assert.deepEqual(texts.filter((text) => !(text in words)), []);
});

test("every failure that has a sentence for people has it in every language", () => {
  const sentences = Object.values(FOR_PEOPLE);
  assert.ok(sentences.length > 5);
  for (const language of LANGUAGES) {
    const words = wordsOf(language);
    assert.deepEqual(sentences.filter((text) => !(text in words)), [], language);
  }
});

test("faults of the service are shown with their cause", () => {
  const failure = { code: "index_damaged", message: "index `a` is damaged; restore it" };
  assert.match(reasonOf(failure), /^The service has a problem\. .*: index `a` is damaged; restore it$/);
  assert.equal(reasonOf({ code: "bad_query", message: "filter: a" }), "filter: a");
  assert.doesNotMatch(reasonOf({ code: "index_not_found", message: "GET /indexes" }), /GET/);
});

test("texts are written in the language of the reader, or in English", () => {
  assert.equal(many(1, "document"), "1 document");
  assert.equal(many(1234, "document"), "1,234 documents");
  use(wordsOf("de"), "de");
  assert.equal(many(1234, "document"), "1.234 Dokumente");
  assert.equal(manyInEnglish(1234, "document"), "1.234 documents");
  assert.deepEqual([plainNumber(1234.5), plainNumber(2024)], ["1234,5", "2024"]);
  assert.equal(t("Page {page}", { page: 2 }), "Seite 2");
  assert.equal(t("a text without a translation"), "a text without a translation");
  assert.deepEqual(phrase("No match for {words}.", { words: ["a", "b"] }), ["Kein Treffer für ", ["a", "b"], "."]);
  use({}, "en");
  assert.equal(count(1234), "1,234");
});
