// One document: its text, its strongest terms, its nearest documents, why it was found.

import { Latest, STALE } from "../latest.js";
import { client, pathOf } from "../session.js";
import { el, fill, notice, pretty, reasonOf, written } from "../dom.js";
import { many, phrase, t } from "../words.js";
import { rankerOf, rankingOf } from "../query.js";
import { whyPanel, wordsIn } from "../why.js";

const KERNELS = [["latent", "Same topic"], ["document", "Same words"]];
const NEAR = 8;
const TERMS = 14;

const latest = new Latest();
const nearest = new Latest();
let context = null;
let root = null;
let kernel = KERNELS[0][0];

/** Draw a document. */
export async function show(given, handed) {
  root = given;
  context = handed;
  return update();
}

/** End what is under way. */
export function leave() {
  latest.cancel();
  nearest.cancel();
}

/** The address changed: another document, or another ranking. */
export async function update(changed = new Set(["id"])) {
  if (!changed.has("id")) return;
  const { state, index, say, title, tools } = context;
  const id = state.get("id");
  const of = `${pathOf(index)}/documents/${encodeURIComponent(id)}`;
  let answers;
  try {
    answers = await latest.run((signal) => Promise.all([
      client.index(index).document(id, { signal }),
      tools ? client.request("GET", `${of}/terms`, { query: { k: TERMS }, signal }) : { terms: [] },
    ]));
  } catch (failure) {
    return showFailure(failure);
  }
  if (answers === STALE) return;
  const [document, { terms }] = answers;
  const named = document.title || document.id;
  title(named);
  say(named);
  const near = el("div");
  const why = el("section.card", { hidden: true });
  fill(root, el("article.document",
    el("div.whole",
      el("p", back()),
      el("h1", { dir: "auto" }, named),
      el("dl.facts", fact("ID", document.id), Object.entries(document.metadata).map(([name, value]) =>
        fact(pretty(name), value))),
      el("div.text", { dir: "auto" }, document.text)),
    el("aside.about", { "aria-label": t("About this document") },
      el("section.card", el("h2", t("Similar documents")),
        tools ? kernels(of, near) : null, near),
      tools ? el("section.card", el("h2", t("Strongest terms")), termList(terms)) : null,
      why)));
  scrollTo({ top: 0 });
  await Promise.all([drawNearest(of, near), tools ? drawWhy(document, why) : null]);
}

function back() {
  const q = context.state.get("q");
  return el("a.back", context.state.anchor({ view: null, id: null }), `← ${q ? t("Results for “{query}”", { query: q }) : t("Search")}`);
}

function fact(name, value) {
  const plain = typeof value === "object" && value !== null && !Array.isArray(value)
    ? JSON.stringify(value) : [value].flat().map(written).join(", ");
  if (plain === "") return null;
  const isLink = /^https?:\/\/\S+$/.test(plain);
  return el("div", el("dt", name), el("dd", isLink
    ? el("a", { href: plain, rel: "noreferrer noopener", target: "_blank" }, plain) : plain));
}

function termList(terms) {
  if (!terms.length) return el("p.hint", t("It has no searchable terms."));
  const most = terms[0].weight;
  return el("ol.weighed", terms.map((term) => el("li",
    el("a.word", { ...context.state.anchor({ view: null, id: null, q: term.word, page: null }),
      title: many(term.documents, "document") }, term.word),
    el("span.weight", { "aria-hidden": "true", css: { "--share": String(term.weight / most) } }),
    el("span.number", term.weight.toFixed(1)))));
}

function kernels(of, near) {
  return el("div.segments", { role: "group", "aria-label": t("Similar by") }, KERNELS.map(([name, label]) =>
    el("button", { type: "button", "aria-pressed": String(name === kernel), data: { kernel: name },
      on: { click: (event) => {
        kernel = name;
        for (const each of event.target.parentElement.children) {
          each.setAttribute("aria-pressed", String(each.dataset.kernel === name));
        }
        drawNearest(of, near);
      } } }, t(label))));
}

async function drawNearest(of, near) {
  try {
    const asked = { query: { k: NEAR, kernel } };
    const found = await nearest.run((signal) => client.request("GET", `${of}/similar`, { ...asked, signal }));
    if (found === STALE) return;
    fill(near, found.hits.length
      ? el("ol.near", found.hits.map((hit) => el("li",
        el("a", context.state.anchor({ id: hit.id }), hit.title || hit.id),
        context.tools
          ? el("span.number", { title: "similarity; 1 means identical" }, hit.score.toFixed(2)) : null,
        el("p.quiet", hit.snippet))))
      : el("p.hint", t("No similar documents.")));
  } catch (failure) {
    fill(near, el("p", { role: "alert" }, reasonOf(failure)));
  }
}

async function drawWhy(document, place) {
  const { state, index } = context;
  const q = state.get("q");
  if (!q.trim()) return;
  const path = `${pathOf(index)}/explain/${encodeURIComponent(document.id)}`;
  const ranking = rankingOf(state, rankerOf(state) === "bm25" ? "bm25" : "klsa");
  let explanation;
  try {
    ({ explanation } = await client.request("GET", path, { query: { q, ...ranking } }));
  } catch {
    return; // the document stands without it
  }
  if (context.state.get("id") !== document.id) return;
  const seeds = explanation.expansion?.seeds ?? [];
  const write = wordsIn(q, document.title, document.text, ...seeds.map((each) => each.title));
  fill(place, el("h2", phrase("Why it matches “{query}”", { query: q })),
    whyPanel(explanation, write, (id, content) => el("a", context.state.anchor({ id }), content)));
  place.hidden = false;
}

function showFailure(failure) {
  context.title("");
  fill(root, notice(t("The document cannot be shown"), failure, el("p", back())));
}
