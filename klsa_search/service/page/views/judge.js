// Judging: hits of the query in the box, marked relevant or not; and what rankers make of that.

import { Latest, STALE } from "../latest.js";
import { client, pathOf } from "../session.js";
import { alertOf, el, fill, marked } from "../dom.js";
import { manyInEnglish as many } from "../words.js";
import { download } from "../download.js";
import { evaluation } from "../evaluation.js";
import { forget, gradesOf, judgeButtons, judgedQueries } from "../judging.js";
import { isLocked, locked } from "../locked.js";

const DEEP = 10; // hits of each ranker
const RANKERS = ["klsa", "bm25"]; // whose hits are mixed, so that neither is judged alone

const latest = new Latest();
const latestList = new Latest();
let context = null;
let hits = null;
let list = null;
let trouble = null;
let measured = null;

export function show(root, given) {
  context = given;
  context.title("Judge");
  hits = el("section.pool", { "aria-label": "Hits to judge" });
  list = el("section.judged", { "aria-labelledby": "judged-title" });
  trouble = el("div");
  measured = evaluation(context.index);
  fill(root, el("h1.unseen", "Judge"), trouble,
    el("div.judge", hits, el("div.side", list, measured.node)));
  return Promise.all([drawHits(), drawList()]);
}

export function leave() {
  latest.cancel();
  latestList.cancel();
  measured.leave();
}

export function update(changed) {
  return changed.has("q") ? drawHits() : null;
}

/** Error of a judgement, shown at the top. */
function failed(failure) {
  fill(trouble, isLocked(failure) ? locked(failure) : alertOf(failure));
  trouble.scrollIntoView({ block: "nearest" });
}

async function drawHits() {
  const { state, index, say } = context;
  const q = state.get("q").trim();
  if (!q) {
    latest.cancel();
    fill(hits, el("h2", "Which results are relevant?"),
      el("p.hint", "Enter a query above. You see the mixed results of both rankers; judge whether " +
        "each document is relevant. Judgements are stored with the index."));
    return;
  }
  const found = await latest.run((signal) => pooled(index, q, signal));
  if (found === STALE) return;
  const [pool, grades] = found;
  say(`${many(pool.length, "document")} to judge`);
  drawPool(q, pool, grades);
}

/** The hits of all rankers in turns, each once, and the grades they were given. */
async function pooled(index, q, signal) {
  const asked = RANKERS.map((ranker) =>
    client.index(index).search(q, { ranker, k: DEEP, highlight: true, rules: false, analytics: false, signal }));
  const [grades, ...answers] = await Promise.all([gradesOf(index, q, signal), ...asked]);
  const pool = new Map();
  for (let rank = 0; rank < DEEP; rank += 1) {
    for (const { hits: each } of answers) {
      if (each[rank] && !pool.has(each[rank].id)) pool.set(each[rank].id, each[rank]);
    }
  }
  return [[...pool.values()], grades];
}

function drawPool(q, pool, grades) {
  const { index, state } = context;
  const said = pool.filter(({ id }) => id in grades).length;
  const progress = el("p.quiet", { role: "status" });
  const showProgress = (done) => (progress.textContent = pool.length
    ? `${done} of ${many(pool.length, "document")} judged`
    : "No results; try other words.");
  showProgress(said);
  const rows = pool.map((hit) => {
    const verdict = el("div");
    const row = el("li.candidate", { data: { id: hit.id } }, verdict, el("div",
      el("h3", el("a", { href: state.link({ view: "document", id: hit.id }) },
        hit.highlight.title ? marked(hit.highlight.title.text, hit.highlight.title.marks) : hit.id)),
      el("p.snippet", marked(hit.highlight.snippet.text, hit.highlight.snippet.marks))));
    const draw = (now, focused = -1) => {
      const grade = now[hit.id];
      row.dataset.grade = grade === undefined ? "" : String(Number(grade > 0));
      fill(verdict, judgeButtons({ index, q, hit, grade, failed, judged }));
      verdict.querySelectorAll("button")[focused]?.focus();
      showProgress(pool.filter(({ id }) => id in now).length);
    };
    const judged = (now) => {
      for (const id of Object.keys(grades)) delete grades[id];
      Object.assign(grades, now);
      const pressed = [...verdict.querySelectorAll("button")].indexOf(document.activeElement);
      draw(grades, pressed);
      fill(trouble);
      drawList();
    };
    draw(grades);
    return row;
  });
  fill(hits, el("h2", `“${q}”`), progress, el("ol.candidates", rows));
}

async function drawList() {
  const { index, state } = context;
  const queries = await latestList.run((signal) => judgedQueries(index, "", signal));
  if (queries === STALE) return;
  measured.know(queries);
  const title = el("h2", { id: "judged-title" }, "Judged queries");
  const spaced = queries.flatMap(({ grades }) => Object.keys(grades)).filter((id) => /\s/.test(id));
  if (!queries.length) {
    fill(list, title, el("p.hint", "None yet."));
    return;
  }
  fill(list, title,
    el("ul.queries", queries.map((each) => row(each, state, index))),
    el("p.exports", "Export ", exported(index, "qrels", "judgements (TREC qrels)"), " and ",
      exported(index, "tsv", "queries (TSV)")),
    spaced.length ? el("p.hint", `${many(spaced.length, "judgement")} left out: qrels cannot hold `
      + "IDs with white space.") : null);
}

function row({ q, grades, deleted }, state, index) {
  const all = Object.values(grades);
  const relevant = all.filter((grade) => grade > 0).length;
  const facts = [`${relevant} relevant`, `${all.length - relevant} not relevant`];
  if (deleted.length) facts.push(`${many(deleted.length, "document")} deleted`);
  const go = (event) => (event.preventDefault(), state.change({ q }));
  const drop = async () => {
    try {
      await forget(index, q);
      await Promise.all([drawList(), drawHits()]);
    } catch (failure) {
      failed(failure);
    }
  };
  return el("li", el("a", { href: state.link({ q }), on: { click: go } }, q),
    el("span.quiet", facts.join(", ")),
    el("button.plain", { type: "button", "aria-label": `Delete the judgements of ${q}`,
      on: { click: drop } }, "Delete"));
}

function exported(index, kind, words) {
  return download(`${pathOf(index)}/judgements.${kind}`, `${index}.${kind}`, words, failed);
}
