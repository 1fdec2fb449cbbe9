// Why a hit is where it is: the parts of its score.

import { add, el } from "./dom.js";

/** The parts of a score, in display order. */
const PARTS = [
  { name: "lexical", label: "Words", hint: "contains words of the query" },
  { name: "coverage", label: "Coverage", hint: "similar documents contain query words that it lacks" },
  { name: "latent", label: "Topic", hint: "about the same topics as the query" },
  { name: "expansion", label: "Similar documents", hint: "similar to documents that contain the words" },
  { name: "passage", label: "Best passage", hint: "the score of its best passage" },
  { name: "undivided", label: "Ranker", hint: "the score of a plug-in, which is not divided into parts" },
  { name: "vector", label: "Vector", hint: "near to the query by its vector" },
];

const MOST = 5; // of terms and documents that are named

/** Return the parts of a score with labels and values. */
export function partsOf(explanation) {
  return PARTS.flatMap((part) => {
    const held = explanation[part.name];
    return held ? [{ ...part, value: held.value }] : [];
  });
}

/** A bar of the parts; what is below 0 has no place in it. */
export function bar(explanation) {
  const parts = partsOf(explanation).filter((part) => part.value > 0);
  const all = parts.reduce((sum, part) => sum + part.value, 0) || 1;
  const said = parts.map((part) => `${part.label} ${percent(part.value / all)}`).join(", ");
  return el(
    "span.bar",
    { role: "img", "aria-label": `Score: ${said || "nothing"}`, title: said },
    parts.map((part) =>
      el("span", { data: { part: part.name }, css: { "flex-grow": String(part.value / all) } })),
  );
}

function percent(share) {
  return `${Math.round(100 * share)}%`;
}

/** From terms as they are indexed to words as these texts write them. */
export function wordsIn(...texts) {
  const words = new Set(texts.join(" ").toLowerCase().split(/[^\p{L}\p{N}]+/u));
  const sorted = [...words].filter(Boolean).sort((a, b) => a.length - b.length);
  const one = (stem) =>
    sorted.find((word) => word.startsWith(stem)) ??
    // A stem may end in another letter than the word: compani, company.
    (stem.length > 3 ? sorted.find((word) => word.startsWith(stem.slice(0, -1))) : undefined) ??
    stem;
  return (term) => term.split(" ").map(one).join(" ");
}

/** The terms and documents that brought a hit, strongest first. */
function through(explanation) {
  const terms = new Map();
  const documents = new Set();
  for (const seed of explanation.expansion?.seeds ?? []) {
    if (seed.value <= 0) continue;
    if (seed.id !== explanation.id) documents.add(seed.id);
    for (const { term, share } of seed.shared) {
      terms.set(term, (terms.get(term) ?? 0) + seed.value * share);
    }
  }
  for (const term of explanation.coverage?.terms ?? []) {
    if (term.near > 0) for (const { id } of term.neighbours) documents.add(id);
  }
  documents.delete(explanation.id);
  // A word that is also in a pair is shown once; numbers are left out.
  const named = [...terms].sort((a, b) => b[1] - a[1]).map(([term]) => term)
    .filter((term) => /\p{L}/u.test(term));
  const single = named.filter((term) => !term.includes(" "));
  return { terms: single.length ? single : named, documents: [...documents] };
}

/** Whether a hit holds no word of the query, in any field. */
export function holdsNone({ lexical }) {
  return !(lexical?.terms ?? []).some((term) => term.bm25 > 0);
}

/** What brought a hit without a word of the query: "through airfoil and 2 similar documents". */
export function throughLine(explanation, write) {
  if (explanation.vector?.value > explanation.score / 2) return ["by its vector"];
  const { terms, documents } = through(explanation);
  const words = [...new Set(terms.map(write))].slice(0, 3);
  const near = documents.length
    ? `${documents.length} similar document${documents.length === 1 ? "" : "s"}`
    : null;
  if (!words.length && !near) return ["by its topic"];
  const listed = words.flatMap((word, at) => [at ? ", " : null, el("em", word)]);
  return ["through ", listed, words.length && near ? " and " : null, near];
}

/** All of it: the bar with its numbers, what matched, who lent, who brought it.
 *
 * write  from terms to words
 * link   from the id of a document to an element that leads to it
 */
export function whyPanel(explanation, write, link) {
  const parts = partsOf(explanation);
  const panel = el("div.why-body",
    bar(explanation),
    el("dl.parts", parts.map((part) =>
      el("div", { data: { part: part.name } },
        el("dt", el("span.dot", { "aria-hidden": "true" }), part.label),
        el("dd.number", part.value.toFixed(3)),
        el("dd.quiet", part.hint)))));
  add(panel, [ruled(explanation), matched(explanation, write), lent(explanation, write, link),
    brought(explanation, write, link), footnote(explanation)]);
  return panel;
}

function section(title, ...rest) {
  return el("section", el("h3", title), ...rest);
}

/** What rules of the index did to the hit. */
function ruled({ rules = [] }) {
  if (!rules.length) return null;
  return section("Rules", el("ul.rules", rules.map(({ rule, position, factor, value }) => el("li",
    position !== null ? `Pinned at position ${position}` : `Score × ${factor} (${signed(value)})`,
    el("span.quiet", ` by rule ${rule}`)))));
}

function signed(value) {
  return `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(3)}`;
}

function matched({ lexical, coverage, latent }, write) {
  const found = (lexical?.terms ?? []).filter((term) => term.bm25 > 0 || term.value > 0);
  const terms = found.length ? found : (latent?.terms ?? []);
  if (!terms.length) {
    const asked = (coverage?.terms ?? []).map((each) => write(each.term));
    return section("Matching words", el("p", "It contains none of the words of the query",
      asked.length ? [" (", asked.slice(0, MOST).join(", "), ")"] : null, "."));
  }
  const most = Math.max(...terms.map((term) => term.bm25 ?? term.value), 1e-9);
  return section("Matching words", el("ul.weighed", terms.slice(0, 2 * MOST).map((term) =>
    el("li", el("span.word", write(term.term), term.added ? el("span.quiet", " (added)") : null),
      el("span.weight", { "aria-hidden": "true",
        css: { "--share": String(Math.max(0, (term.bm25 ?? term.value) / most)) } }),
      el("span.number", (term.bm25 ?? term.value).toFixed(2))))));
}

function lent({ coverage, expansion }, write, link) {
  const titles = new Map((expansion?.seeds ?? []).map((seed) => [seed.id, seed.title]));
  const terms = (coverage?.terms ?? []).filter((term) => term.neighbours.length && term.near > 0);
  if (!terms.length) return null;
  return section("Words in similar documents", el("ul", terms.slice(0, MOST).map((term) =>
    el("li", el("em", write(term.term)), " from ",
      term.neighbours.slice(0, 3).flatMap((each, at) => [at ? ", " : null,
        link(each.id, titles.get(each.id) || each.id)])))));
}

function brought({ expansion, id }, write, link) {
  const seeds = (expansion?.seeds ?? []).filter((seed) => seed.id !== id && seed.value > 0);
  if (!seeds.length) return null;
  return section("Similar documents that match", el("ul", seeds.slice(0, MOST).map((seed) =>
    el("li", link(seed.id, seed.title || seed.id),
      seed.shared.length
        ? [el("span.quiet", " shares "),
          seed.shared.slice(0, 4).flatMap((each, at) => [at ? ", " : null, el("em", write(each.term))])]
        : null))));
}

function footnote({ score, bm25, alpha, estimated, ranker }) {
  const said = [`Score ${score.toFixed(4)} (${ranker})`, `BM25 alone ${bm25.toFixed(2)}`];
  if (alpha !== null) said.push(`weight of related words ${alpha.toFixed(2)}`);
  if (estimated.length) said.push(`${estimated.join(" and ")} estimated`);
  return el("p.quiet", said.join(" · "));
}
