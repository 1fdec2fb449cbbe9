// The search: ranked hits for what is in the box, why they are there, and what moves them.

import { drawComparison, LOOKED_AT, tellReasons } from "../compare.js";
import { add, el, fill, pretty, reasonOf } from "../dom.js";
import { many, phrase, t } from "../words.js";
import { counted, drawChips, drawFacets, facetFields, ordered, without } from "../facets.js";
import { exportPanel } from "../download.js";
import { drawHit, drawPassage, pager } from "../hits.js";
import { Latest, STALE } from "../latest.js";
import { filtering, HITS, idFilter, isAsked, pageOf, pagesOf, rankerOf, searchOf } from "../query.js";
import { rankingPanel } from "../ranking.js";
import { client, optional } from "../session.js";
import { holdsNone, throughLine, whyPanel, wordsIn } from "../why.js";

const REST = 300; // ms without a change after which a search is more than a step of typing
const REPLACED = 60_000; // ms in which a search replaces one without a click
const SLOW = 300; // ms after which what is shown is marked as old
const PASSAGES = 100; // of one document that are listed, at most
const EXAMPLES = ["s", "t", "m", "a", "c", "r", "p", "h"]; // beginnings of titles to offer

const PLAIN = /^[\p{L}\p{M}'’,]+( [\p{L}\p{M}'’,]+){2,9}$/u; // a title that somebody would type

const latest = new Latest();
const explaining = new Latest();
const opened = new Set(); // ids of hits whose explanation is open
const titles = new Map(); // of documents that were seen, by id

let context = null;
let parts = null; // elements: aside, facets, summary, interpretation, results, ranking
let details = null;
let followRanking = null;
let stopComparing = null;
let timer = null;
let current = null; // the search shown, for analytics: {answer, q, at, previous, used}
let settled = null; // the latest that was left unchanged for REST
let settling = null; // timer

/** Draw the frame of the view, then its answer. */
export async function show(root, given) {
  context = given;
  opened.clear();
  const { state } = context;
  const told = await context.details();
  details = { ...told, fields: ordered(told.fields ?? {}, told.settings?.fields ?? []) };
  const wide = matchMedia("(min-width: 60rem)");
  parts = {
    ranking: el("section", { "aria-label": t("Ranking") }),
    facets: el("section.facets", { "aria-label": t("Filters") }),
    summary: el("div.summary"),
    chips: el("div.chips"),
    interpretation: el("div.interpretation"),
    results: el("section.results", { id: "results", "aria-label": t("Results") }),
  };
  const label = t(context.tools ? "Filters and ranking" : "Filters");
  const panel = el("details.panel", { open: wide.matches,
    hidden: !context.tools && !facetFields(details.fields).length },
  el("summary", label), parts.facets, context.tools ? parts.ranking : null);
  wide.onchange = () => (panel.open = wide.matches);
  parts.frame = el("div.search", el("aside", { "aria-label": label }, panel),
    el("div.answer", parts.summary, parts.chips, parts.interpretation, parts.results));
  fill(root, el("h1.unseen", t("Search")), parts.frame);
  followRanking = rankingPanel(parts.ranking, state, details.settings);
  return update(new Set());
}

/** End what is under way. */
export function leave() {
  latest.cancel();
  explaining.cancel();
  clearTimeout(timer);
  clearTimeout(settling);
  stopComparing?.();
  stopComparing = null;
}

/** The address changed: ask again. */
export async function update(changed) {
  const { state, title } = context;
  leave();
  followRanking();
  title(state.get("q"));
  if (changed.has("q") || changed.has("page")) opened.clear();
  drawChips(parts.chips, state, details.fields);
  if (!isAsked(state)) return showStart();
  parts.frame.classList.remove("start");
  const slow = setTimeout(() => parts.results.setAttribute("aria-busy", "true"), SLOW);
  try {
    const answers = await latest.run((signal) =>
      rankerOf(state) === "compare" ? askedBoth(signal) : asked(signal));
    if (answers === STALE) return undefined;
    if (rankerOf(state) === "compare") showBoth(answers);
    else showHits(answers, changed);
  } catch (failure) {
    showFailure(failure);
  } finally {
    clearTimeout(slow);
    parts.results.removeAttribute("aria-busy");
  }
  return undefined;
}

function searched({ q, ...options }, signal) {
  return client.index(context.index).search(q, { ...options, signal });
}

async function asked(signal) {
  const { state } = context;
  const fields = details.fields;
  const offset = (pageOf(state) - 1) * HITS;
  const search = { ...searchOf(state, fields), k: HITS, offset, highlight: true, quality: true,
    analytics: "typing", // each letter is searched
    ...counted(state, fields) };
  return searched(search, signal);
}

function askedBoth(signal) {
  const { state } = context;
  const fields = details.fields;
  return Promise.all(["bm25", "klsa"].map((ranker) => searched({
    ...searchOf(state, fields, ranker), k: LOOKED_AT, fields: ["title", "snippet"], snippet_length: 80,
    analytics: false, rules: false, // which would hide how the rankings differ
    ...(ranker === "klsa" ? counted(state, fields) : {}),
  }, signal)));
}

/** Note what is shown for a click; what stands for a while without one is replaced by the next query. */
function note(answer) {
  const q = context.state.get("q").trim();
  const isReplaced = settled && !settled.used && settled.q !== q && Date.now() - settled.at < REPLACED;
  const previous = isReplaced ? settled.answer : settled?.q === q ? settled.previous : undefined;
  const shown = { answer, q, at: Date.now(), previous, used: false };
  current = shown;
  settling = setTimeout(() => (settled = shown), REST);
}

/** Record that a hit was opened, if its search was recorded. */
function click(hit) {
  current.used = true;
  optional.index(context.index).click(current.answer, hit, { previous: current.previous })
    .catch(() => null); // nothing that the visitor could do
}

/** A link to a document, as an element; of a hit, its clicks are recorded. */
function link(id, content, { class: name = null, label = null, hit = null } = {}) {
  const anchor = context.state.anchor({ view: "document", id });
  if (hit) {
    const follow = anchor.on.click;
    anchor.on.click = (event) => (click(hit), follow(event));
  }
  return el("a", { ...anchor, class: name, "aria-label": label }, content);
}

function showHits(answer, changed) {
  const { state, say } = context;
  const before = placesOf(parts.results);
  titles.clear();
  for (const hit of answer.hits) titles.set(hit.id, hit.title || hit.id);
  note(answer);
  const drawn = answer.hits.map((hit) => drawHit(hit, {
    link, list, toggle, judge,
    positive: state.all("positive").includes(hit.id),
    negative: state.all("negative").includes(hit.id),
    isOpen: opened.has(hit.id),
    isAsked: answer.interpretation.words.length > 0,
    tools: context.tools,
  }));
  drawSummary(answer);
  drawInterpretation(answer);
  drawFacets(parts.facets, answer.facets, state, details.fields);
  const page = pageOf(state);
  const focused = parts.results.contains(document.activeElement) ? document.activeElement.id : "";
  fill(parts.results,
    answer.hits.length ? el("ol.hits", { start: answer.offset + 1 }, drawn.map((each) => each.node))
      : nothing(answer),
    pager(page, pagesOf(answer.total), pageLink));
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true }); // kept when redrawing
  if (!changed.has("q") && !changed.has("page")) moveFrom(before, parts.results);
  if (changed.has("page")) scrollTo({ top: 0 });
  say(answer.hits.length
    ? [many(answer.total, "document"), isPoor(answer) ? t("No good match") : null].filter(Boolean).join(", ")
    : t("No results"));
  const open = drawn.filter(({ hit }) => opened.has(hit.id));
  if (open.length) {
    timer = setTimeout(() => {
      for (const { hit, panel } of open) explain(hit, panel);
    }, REST);
  }
}

function pageLink(to, text, { label, current }) {
  const anchor = context.state.anchor({ page: to === 1 ? null : to });
  return el("a", { ...anchor, "aria-label": label, "aria-current": current ? "page" : null }, text);
}

/** Where each hit stands on the screen, by id. */
function placesOf(root) {
  return new Map([...root.querySelectorAll(".hit")].map((node) =>
    [node.dataset.id, node.getBoundingClientRect().top]));
}

/** Let hits that were re-ranked go from where they were to where they are. */
function moveFrom(before, root) {
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  for (const node of root.querySelectorAll(".hit")) {
    const far = before.has(node.dataset.id)
      ? before.get(node.dataset.id) - node.getBoundingClientRect().top : 0;
    if (far) {
      node.animate([{ transform: `translateY(${far}px)` }, { transform: "none" }],
        { duration: 220, easing: "ease-out" });
    }
  }
}

/** Side by side, say of hits of Kernel LSA that BM25 lacks what brought them. */
async function lookAtBoth(place, hits) {
  const answers = await explaining
    .run((signal) => Promise.all(hits.map((hit) => explanationOf(hit, signal))))
    .catch(() => STALE);
  if (answers === STALE) return; // the comparison stands without it
  const reasons = answers.filter(({ explanation }) => holdsNone(explanation));
  tellReasons(place, new Map(reasons.map(({ explanation, write }) =>
    [explanation.id, throughLine(explanation, write)])));
}

/** List the other passages of a hit that match, best first, or hide them. */
async function list(hit, button, others) {
  others.hidden = !others.hidden;
  button.setAttribute("aria-expanded", String(!others.hidden));
  if (others.hidden || others.hasChildNodes()) return;
  const search = { ...searchOf(context.state, details.fields), filter: idFilter(hit.id), sort: [],
    group: "passage", k: Math.min(hit.more_passages + 1, PASSAGES), highlight: true,
    fields: ["title", "snippet", "span", "page", "heading"], analytics: false };
  try {
    const { hits } = await searched(search);
    fill(others, hits.filter(({ span }) => String(span) !== String(hit.span)).map(drawPassage));
  } catch (failure) {
    fill(others, el("li", { role: "alert" }, reasonOf(failure)));
  }
}

/** Open or close the explanation of a hit. */
async function toggle(hit, button, panel) {
  panel.hidden = !panel.hidden;
  button.setAttribute("aria-expanded", String(!panel.hidden));
  if (panel.hidden) return void opened.delete(hit.id);
  opened.add(hit.id);
  return explain(hit, panel);
}

/** Fill the open panel of a hit. */
async function explain(hit, panel) {
  try {
    const { explanation, write } = await explanationOf(hit);
    const moved = context.state.all("positive").length + context.state.all("negative").length;
    fill(panel, moved ? el("p.quiet", t("Score before your feedback:")) : null,
      whyPanel(explanation, write, link));
  } catch (failure) {
    fill(panel, el("p", { role: "alert" }, reasonOf(failure)));
  }
}

/** Promise the explanation of a hit and what writes its words: of the same search, for it alone. */
async function explanationOf(hit, signal) {
  const { state } = context;
  // Feedback moves scores in a way that has no parts.
  const { positive, negative, ...search } = searchOf(state, details.fields);
  const filter = search.filter ? `(${search.filter}) AND ${idFilter(hit.id)}` : idFilter(hit.id);
  const { hits } = await searched({ ...search, filter, sort: [], k: 1, explain: true, analytics: false,
    fields: ["title", "snippet"], snippet_length: 1000, rules: rankerOf(state) !== "compare" }, signal);
  if (!hits.length) {
    throw new Error(t(positive || negative ? "Found only because of your feedback, so there is no explanation."
      : "The documents have changed since the search. Search again."));
  }
  const [{ explanation, title, snippet }] = hits;
  const seeds = explanation.expansion?.seeds ?? [];
  return { explanation, write: wordsIn(state.get("q"), title, snippet, ...seeds.map((each) => each.title)) };
}

/** Move the ranking towards a hit, or away from it; or no more. */
function judge(hit, kind) {
  const { state, say } = context;
  const other = kind === "positive" ? "negative" : "positive";
  const had = state.all(kind).includes(hit.id);
  const left = (name) => state.all(name).filter((id) => id !== hit.id);
  state.change({ [kind]: had ? left(kind) : [...left(kind), hit.id], [other]: left(other), page: null });
  say(t(had ? "Feedback removed" : kind === "positive" ? "Showing more like this" : "Showing less like this"));
}

/** Whether a search for words has hits, but no good one. */
function isPoor({ good_match, hits }) {
  return hits.length > 0 && good_match === false && Boolean(context.state.get("q").trim());
}

function verdict(answer) {
  if (!answer.hits.length || !context.state.get("q").trim() || answer.good_match === undefined) return null;
  return el(`span.verdict.${isPoor(answer) ? "poor" : "good"}`,
    t(isPoor(answer) ? "No good match" : "Good matches found"));
}

/** Which words of the query hits contain: as chosen, or as the index was built. */
function matched() {
  return context.state.get("match") || details.settings?.match || "any";
}

function drawSummary(answer) {
  const { total, time_ms: time } = answer;
  const { state } = context;
  const fields = Object.entries(details.fields);
  const sorted = state.get("sort");
  const sort = el("select", { id: "sort", on: {
    change: (event) => state.change({ sort: event.target.value, page: null }) } },
  el("option", { value: "" }, t("Best match")),
  fields.filter(([, { lists, codes }]) => !lists && !codes).flatMap(([name, field]) => {
    const [up, down] = { date: ["oldest first", "newest first"],
      number: ["smallest first", "largest first"] }[field.type] ?? ["A to Z", "Z to A"];
    return [[`${name}:asc`, up], [`${name}:desc`, down]].map(([value, words]) =>
      el("option", { value }, `${pretty(name)}, ${t(words)}`));
  }));
  sort.value = sorted;
  const match = el("select", { id: "match", on: {
    change: (event) => state.change({ match: event.target.value, page: null }) } },
  [["any", "any words"], ["most", "most words"], ["all", "all words"]].map(([value, words]) =>
    el("option", { value }, t(words))));
  match.value = matched();
  const focused = [sort, match].find(({ id }) => document.activeElement?.id === id); // kept when redrawing
  fill(parts.summary,
    el("p", el("strong", many(total, "document")),
      context.tools ? el("span.quiet", time < 1000 ? ` in ${time.toFixed(1)} ms` : ` in ${(time / 1000).toFixed(1)} s`) : null,
      verdict(answer)),
    el("label.sort", el("span.quiet", t("Match"), " "), match),
    fields.length ? el("label.sort", el("span.quiet", t("Sort by"), " "), sort) : null,
    total ? exportPanel(context.index, searchOf(state, details.fields), details.fields) : null);
  focused?.focus();
}

const CONTAINED = {
  any: "No document contains these words.",
  most: "No document contains most of these words.",
  all: "No document contains all of these words.",
};

const RELAXED = {
  plain_text: "the query is mostly plain words",
  nothing_to_exclude_from: "the query only excludes",
  no_match: "no document contains the phrase",
  capitals: "the whole query is in capitals",
  suffix: "the hyphen belongs to a suffix or option",
  number: "the query begins with a negative number",
  not_an_operator: "the sign has no meaning there",
  short_prefix: "a prefix needs two letters",
  other_language: "operators are AND, OR and NOT",
  lower_case: "NOT excludes in capitals only",
};

const COMPARES = /[=<>≤≥≠:]|\.\.|…/; // a condition that was typed in the box
const DANGLING = /^\s*(?:AND|OR)\s|\s(?:AND|OR)\s*$/; // what is left of it beside its words

function drawInterpretation({ interpretation, query, hits }) {
  const { state } = context;
  const write = wordsIn(...hits.flatMap(({ title, snippet }) => [title ?? "", snippet ?? ""]));
  const shown = (terms) => terms.slice(0, 6).map(write);
  const change = (patch, text) => el("a", state.anchor(patch), text);
  const list = (words) => words.flatMap((word, at) => [at ? ", " : null, el("em", word)]);
  const asTyped = change({ spelling: "suggest", page: null }, t("Search as typed"));
  const letters = (text) => text.replace(/[^\p{L}\p{N}]/gu, "").toLowerCase();
  const isDoubted = ([typed, meant]) => letters(typed) !== letters(meant) && !state.get("spelling");
  const lines = [];
  const corrections = Object.entries(interpretation.corrections)
    .filter(([typed]) => !interpretation.unknown.includes(typed));  // others are only reported
  if (corrections.length) {
    lines.push([phrase("No match for {words}; showing results for {corrected}.", {
      words: list(corrections.map(([typed]) => typed)), corrected: list(corrections.map(([, meant]) => meant)),
    }), " ", asTyped]);
  }
  if (interpretation.did_you_mean && interpretation.did_you_mean !== query) {
    const meant = interpretation.did_you_mean;
    lines.push(phrase("Did you mean {words}?",
      { words: change({ q: meant, spelling: null, page: null }, el("em", meant)) }));
  }
  for (const [written, filters] of Object.entries(interpretation.suggested_filters)) {
    const [typed, words] = [query, written].map((text) => text.replace(/\s+/g, " "));
    const ofQuery = typed.includes(words), isCondition = ofQuery && COMPARES.test(words);
    const before = state.get("filter"), q = isCondition ? typed.replace(words, " ").replace(DANGLING, "").trim() : query;
    const choices = Object.entries(filters).slice(0, 3).flatMap(([condition, count], at) => [at ? ", " : null,
      ofQuery ? change({ q, filter: before ? `(${before}) AND ${condition}` : condition, page: null }, el("em", condition)) : el("em", condition),
      ` (${many(count, "document")})`]);
    const values = { words: el("em", written), filters: choices };
    lines.push(isCondition ? phrase("{words} is a condition on a field: filter by {filters}.", values)
      : ofQuery ? phrase("{words} is a value of a field: filter by {filters}.", values)
        : phrase("No document has {words}; filter by {filters}.", values));
  }
  const operators = Object.keys(interpretation.relaxed).filter((word) => interpretation.relaxed[word] === "other_language");
  const values = Object.keys(interpretation.suggested_filters).filter((written) => query.includes(written));
  const explained = new Set([...operators, ...values].flatMap((written) => written.match(/[\p{L}\p{M}\p{N}]+/gu)));
  const unknown = interpretation.unknown.filter((word) => !(word in interpretation.corrections || explained.has(word)));
  if (unknown.length) lines.push(phrase("No match for {words}.", { words: list(unknown) }));
  const capitals = interpretation.phrases.filter((phrase) => !/^["“”]/.test(phrase));
  if (capitals.length) lines.push(phrase("Only documents with {words}.", { words: list(capitals) }));
  for (const reason of new Set(Object.values(interpretation.relaxed))) {
    const relaxed = Object.keys(interpretation.relaxed).filter((written) => interpretation.relaxed[written] === reason);
    lines.push([phrase("Read as plain words: {words}, because {reason}.", { words: list(relaxed), reason: t(RELAXED[reason]) }), " ",
      ["plain_text", "capitals"].includes(reason)
        ? change({ operators: "yes", page: null }, t("Use all operators")) : null,
      reason === "lower_case"
        ? change({ q: query.replace(/,?\s+(?:(?:and|but)\s+)?not\s+/i, " -"), page: null }, t("Exclude the word")) : null]);
  }
  const read = [
    ["document", interpretation.id ? [interpretation.id] : []],
    ["Boolean", interpretation.boolean ? [interpretation.boolean] : []], ["phrase", interpretation.phrases], ["required", interpretation.required],
    ["excluded", interpretation.excluded], ["in a field", interpretation.fields],
  ].filter(([, words]) => words.length).map(([label, words]) => [t(label), words]);
  for (const [beginning, terms] of Object.entries(interpretation.prefixes)) {
    read.push([t("{words} matches", { words: beginning }), shown(terms)]);
  }
  for (const [words, others] of Object.entries(interpretation.synonyms)) {
    read.push([t("{words} also finds", { words }), shown(others)]);
  }
  for (const [typed, written] of Object.entries(interpretation.variants)) read.push([t("{words} also finds", { words: typed }), [written]]);
  if (read.length) {
    lines.push([t("Read as:"), " ", read.flatMap(([label, words], at) =>
      [at ? " · " : null, label, " ", list(words)]),
      corrections.length || !Object.entries(interpretation.variants).some(isDoubted) ? null : [" ", asTyped]]);
  }
  const judged = [["positive", "More like {titles}."], ["negative", "Less like {titles}."]];
  for (const [kind, words] of judged) {
    const ids = state.all(kind);
    if (!ids.length) continue;
    lines.push([phrase(words, { titles: list(ids.map((id) => titles.get(id) ?? id)) }), " ",
      change({ [kind]: null, page: null }, t("Undo"))]);
  }
  fill(parts.interpretation, lines.map((line) => el("p", line)));
}

function nothing({ interpretation, offset }) {
  const { state } = context;
  if (offset) return el("div.notice", el("h2", t("No more results")), pageLink(1, t("Back to the first page"), {}));
  const filters = filtering(state);
  const ways = [];
  if (filters.length) {
    ways.push(el("button.primary", { type: "button",
      on: { click: () => state.change({ ...without(filters), page: null }) } }, t("Search without filters")));
  }
  if (interpretation.required.length || interpretation.phrases.length || interpretation.excluded.length) {
    const plain = [...interpretation.words].join(" ");
    if (plain) {
      ways.push(el("button", { type: "button", on: {
        click: () => state.change({ q: plain, page: null }) } }, t("Search for “{words}” as plain words", { words: plain })));
    }
  }
  return el("div.notice", el("h2", t("No results")),
    el("p", t(filters.length ? "No document matches both the query and the filters." : CONTAINED[matched()])),
    ways.length ? el("div.buttons", ways) : el("p.quiet",
      t("Try other words: results also include documents with related words.")));
}

function showBoth([before, after]) {
  drawSummary(after);
  drawInterpretation(after);
  drawFacets(parts.facets, after.facets ?? {}, context.state, details.fields);
  const place = el("div.comparison");
  fill(parts.results, place);
  stopComparing = drawComparison(place, before.hits, after.hits, link);
  const known = new Set(before.hits.map(({ id }) => id));
  const brought = after.hits.slice(0, HITS).filter(({ id }) => !known.has(id));
  if (context.state.get("q").trim() && brought.length) {
    timer = setTimeout(() => lookAtBoth(place, brought), REST);
  }
  context.say(place.querySelector("p").textContent);
}

function showFailure(failure) {
  const { state, say } = context;
  const filters = filtering(state);
  fill(parts.summary);
  fill(parts.interpretation);
  fill(parts.results, el("div.notice", { role: "alert" }, el("h2", t("The search failed")),
    el("p", reasonOf(failure)),
    el("div.buttons",
      el("button.primary", { type: "button", on: { click: () => update(new Set()) } }, t("Try again")),
      filters.length ? el("button", { type: "button", on: {
        click: () => state.change({ ...without([...filters, "sort"]), page: null }) } },
      t("Search without filters")) : null)));
  say("");
}

/** What there is to see before anything is asked. */
async function showStart() {
  const { state, index, say, tools, named } = context;
  say("");
  fill(parts.summary);
  fill(parts.interpretation);
  fill(parts.facets);
  parts.frame.classList.add("start");
  const examples = el("div.examples");
  const operators = [['"two words"', "exact phrase"], ["+word", "required"],
    ["-word", "excluded"], ["word*", "any ending"], ["title:word", "in the title"]];
  fill(parts.results, el("div.welcome",
    el("p.lead", t("Search {documents}", { documents: many(details.documents ?? 0, "document") }), " ", named()),
    el("p.quiet", t("Results match your words or related words, so they may not contain the words you typed.")),
    examples,
    tools ? [
      el("p", el("a", state.anchor({ view: "map" }), t("Browse the map")),
        el("span.quiet", t(": groups of similar documents"))),
      el("dl.operators", operators.map(([form, meaning]) =>
        el("div", el("dt", el("code", form)), el("dd.quiet", t(meaning))))),
    ] : null));
  const found = await latest.run((signal) => Promise.all(EXAMPLES.map((q) =>
    optional.index(index).suggest(q, { k: 20, signal }))))
    .catch(() => STALE); // examples are a courtesy
  if (found === STALE) return;
  const offered = found.map((suggestions) =>
    suggestions.filter((each) => each.kind === "title" && PLAIN.test(each.text))[0]?.query)
    .filter(Boolean);
  if (!offered.length) return void examples.remove();
  const chips = [...new Set(offered)].slice(0, 4).map((q) =>
    el("a.chip", state.anchor({ q }), q.length > 60 ? `${q.slice(0, 58)}…` : q));
  add(examples, [el("p.quiet", t("For example")), chips]);
}
