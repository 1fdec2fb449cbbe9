// The panel that measures rankers by the judgements of the index.

import { Latest, STALE } from "./latest.js";
import { client, pathOf } from "./session.js";
import { bars, chart, whisker } from "./charts.js";
import { alertOf, el, fill } from "./dom.js";
import { manyInEnglish as many } from "./words.js";

const RANKERS = { bm25: "BM25", klsa: "Kernel LSA", rm3: "RM3", rocchio: "Rocchio" };
const TIE = 0.01; // as the service has it
const SCALES = [0.1, 0.2, 0.5, 1]; // of the chart of differences

/** Make the panel of an index: {node, know(judged queries), leave()}. */
export function evaluation(index) {
  const latest = new Latest();
  const result = el("div", { "aria-live": "polite" });
  const texts = new Map();
  const boxes = Object.entries(RANKERS).map(([name, words]) =>
    el("label", el("input", { type: "checkbox", name: "ranker", value: name,
      checked: name === "bm25" || name === "klsa" }), ` ${words}`));
  const button = el("button.primary", { type: "submit" }, "Measure");
  const form = el("form.rankers", { on: { submit: measure } },
    el("fieldset", el("legend.unseen", "Rankers to compare"), boxes), button);
  const node = el("section.evaluation", { "aria-labelledby": "evaluation-title", hidden: true },
    el("h2", { id: "evaluation-title" }, "Compare rankers"), form, result);

  async function measure(event) {
    event.preventDefault();
    const rankers = new FormData(form).getAll("ranker");
    if (!rankers.length) {
      fill(result, el("p.trouble", "Choose a ranker."));
      return;
    }
    button.disabled = true;
    fill(result, el("p.quiet", "Measuring …"));
    const body = { judgements: "stored", rankers };
    const path = `${pathOf(index)}/evaluate`;
    try {
      const answer = await latest.run((signal) => client.request("POST", path, { body, signal }));
      if (answer !== STALE) fill(result, drawn(answer, texts));
    } catch (failure) {
      fill(result, alertOf(failure));
    } finally {
      button.disabled = false;
    }
  }

  function know(queries) {
    node.hidden = queries.length === 0;
    texts.clear();
    for (const { number, q } of queries) texts.set(String(number), q);
  }

  return { node, know, leave: () => latest.cancel() };
}

function drawn({ judged, unknown, rankers }, texts) {
  const reach = rankers.map(({ interval, measures }) => interval?.[1] ?? measures.map);
  const most = Math.min(1, Math.max(0.05, ...reach));
  const first = rankers[0];
  return [
    el("p.quiet", `MAP over ${many(judged, "query", "queries")}`,
      unknown ? `; ${many(unknown, "judgement")} of deleted documents left out` : ""),
    el("div.scroller", { tabindex: "0", role: "region", "aria-label": "Rankers" }, el("table.rankers",
      el("thead", el("tr", ["Ranker", "MAP", "95 % interval", "Won", "Lost", "Tied", "p"].map(
        (each) => el("th", { scope: "col" }, each)))),
      el("tbody", rankers.map((each) => ranked(each, most))))),
    rankers.length > 1
      ? el("p.quiet.small", `Won and lost against ${RANKERS[first.ranker]}: average precision `
        + "differs by more than 0.01.")
      : null,
    judged < 10
      ? el("p.quiet.small", "Too few queries to be reliable: judge ten or more.")
      : null,
    rankers.slice(1).map((each) => contrast(first, each, texts)),
  ];
}

function ranked({ ranker, measures, interval, against_first: against }, most) {
  const range = interval
    ? `${interval.map((each) => Math.min(1, Math.max(0, each)).toFixed(3)).join(" to ")}`
    : "one query";
  return el("tr",
    el("th", { scope: "row" }, RANKERS[ranker]),
    el("td.digits", measures.map.toFixed(3)),
    el("td.interval", whisker({ mean: measures.map, interval, most }), el("span.quiet", range)),
    ["wins", "losses", "ties"].map((name) => el("td.digits", against ? against[name] : "")),
    el("td.digits", against ? against.randomisation_test.holm.toFixed(3) : ""));
}

/** One ranker against the first, query by query: a chart, and the same in words. */
function contrast(first, other, texts) {
  const rows = Object.entries(other.queries)
    .map(([id, { map }]) => ({ q: texts.get(id) ?? id, before: first.queries[id].map, after: map }))
    .map((each) => ({ ...each, difference: each.after - each.before }))
    .sort((one, two) => two.difference - one.difference);
  const names = `${RANKERS[other.ranker]} against ${RANKERS[first.ranker]}`;
  const far = Math.max(...rows.map(({ difference }) => Math.abs(difference)));
  const reach = SCALES.find((each) => each >= far) ?? 1;
  const shapes = bars(rows.map(({ q, before, after, difference }) => ({
    share: difference / reach,
    kind: Math.abs(difference) <= TIE ? "tied" : difference > 0 ? "won" : "lost",
    said: `${q}: ${before.toFixed(2)} → ${after.toFixed(2)}`,
  })));
  const listed = (words, some) => some.length
    ? el("div", el("h4", words), el("ol.moved", some.map(({ q, before, after }) =>
      el("li", el("span", q), el("span.quiet", `${before.toFixed(2)} → ${after.toFixed(2)}`)))))
    : null;
  return el("section.contrast",
    el("h3", names),
    chart({ label: `Difference of average precision, query by query: ${names}`, shapes,
      y: [[0, `−${reach}`], [0.5, "0"], [1, `+${reach}`]] }),
    listed("Won", rows.filter(({ difference }) => difference > TIE).slice(0, 5)),
    listed("Lost", rows.filter(({ difference }) => difference < -TIE).reverse().slice(0, 5)));
}
