// Analytics: searches by day, frequent and failing queries, clicked documents, proposed synonyms.

import { Latest, STALE } from "../latest.js";
import { client, pathOf } from "../session.js";
import { chart, columns } from "../charts.js";
import { alertOf, el, fill, notice } from "../dom.js";
import { count, manyInEnglish as many } from "../words.js";
import { download } from "../download.js";
import { isLocked, locked } from "../locked.js";

const PERIODS = [7, 30, 90];
const DEFAULT = 30; // days
const DAY = 86_400_000; // ms
const LISTS = [
  ["queries", "Top queries", "No query was searched often enough yet."],
  ["no_results", "Queries without results", "Every listed query found something."],
  ["low_quality", "Queries without a good match", "None."],
];

const latest = new Latest();
let context = null;

export function show(root, given) {
  context = given;
  context.title("Analytics");
  return draw(root);
}

export function leave() {
  latest.cancel();
}

async function draw(root) {
  const { index, state } = context;
  const days = PERIODS.find((each) => String(each) === state.get("days")) ?? DEFAULT;
  const asked = client.index(index);
  let found;
  try {
    found = await latest.run((signal) => Promise.all([
      asked.analytics({ days, k: 10, signal }),
      asked.synonymProposals({ days, signal }),
    ]));
  } catch (failure) {
    if (failure.status !== 403) throw failure;
    fill(root, isLocked(failure) ? locked(failure) : notice("There are no analytics", failure));
    return;
  }
  if (found === STALE) return;
  const [report, proposals] = found;
  fill(root, el("h1.unseen", `Analytics of ${index}`), el("div.analytics",
    overview(report, days), synonyms(proposals),
    LISTS.map(([name, title, none]) => queries(report, name, title, none, days)),
    documents(report, days)));
}

function sheet(title, ...content) {
  const id = title.toLowerCase().replaceAll(" ", "-");
  return el("section.sheet", { "aria-labelledby": id }, el("h2", { id }, title), content);
}

function share(value) {
  return value === null ? "–" : `${Math.round(100 * value)}%`;
}

function position({ mean_position: mean }) {
  return mean === null ? "–" : mean.toFixed(1);
}

function overview({ totals, days: rows, since }, days) {
  const { state } = context;
  const period = el("select", { id: "period", on: {
    change: (event) => state.change({ days: Number(event.target.value) === DEFAULT ? null : event.target.value }) } },
  PERIODS.map((each) => el("option", { value: each }, `${each} days`)));
  period.value = days;
  const figures = [
    ["Searches", count(totals.searches)],
    ["Without results", count(totals.no_results)],
    ["Without a good match", count(totals.low_quality)],
    ["With a click", totals.searches ? `${count(totals.clicked)} (${share(totals.click_through)})` : "0"],
    ["Mean position of clicks", position(totals)],
  ];
  return sheet("Searches by day",
    el("label.sort", el("span.quiet", "Period "), period),
    totals.searches ? byDay(rows, since, days) : el("p.hint", "No searches were recorded in this period."),
    el("dl.figures", figures.map(([name, value]) => [el("dt", name), el("dd", value)])));
}

function byDay(rows, since, days) {
  const counts = new Map(rows.map(({ day, searches }) => [day, searches]));
  const named = Array.from({ length: days }, (_, at) =>
    new Date(Date.parse(since) + at * DAY).toISOString().slice(0, 10));
  const values = named.map((day) => counts.get(day) ?? 0);
  const most = Math.max(...values);
  return chart({
    label: `Searches by day, at most ${count(most)}`,
    shapes: columns(values.map((each, at) =>
      ({ share: each / most, said: `${named[at]}: ${many(each, "search", "searches")}` }))),
    x: [[0, named[0]], [1, named.at(-1)]],
    y: [[0, "0"], [1, count(most)]],
  });
}

function csv(list, days) {
  const { index } = context;
  const trouble = el("span");
  const path = `${pathOf(index)}/analytics.csv?list=${list}&days=${days}`;
  return el("p.exports", download(path, `${index}-${list}.csv`, "Export as CSV",
    (failure) => fill(trouble, alertOf(failure))), trouble);
}

function table(titles, rows) {
  return el("div.scroller", { tabindex: "0", role: "group", "aria-label": titles[0] }, el("table",
    el("thead", el("tr", titles.map((title) => el("th", { scope: "col" }, title)))),
    el("tbody", rows.map(([head, ...cells]) => el("tr", el("th", { scope: "row" }, head),
      cells.map((cell) => el("td.digits", cell)))))));
}

function queries(report, name, title, none, days) {
  const rows = report[name];
  const least = report.min_searches > 1
    ? el("p.quiet.small", `Only queries that were searched ${report.min_searches} times or more.`) : null;
  if (!rows.length) return sheet(title, el("p.hint", none));
  const failing = { no_results: "Without results", low_quality: "Without a good match" }[name];
  return sheet(title, least,
    table(["Query", "Searches", ...(failing ? [failing, "Share"] : ["Click-through", "Mean position"])],
      rows.map((row) => [queryLink(row.query), count(row.searches), ...(failing
        ? [count(row[name]), share(row[name] / row.searches)]
        : [share(row.click_through), position(row)])])),
    csv(name, days));
}

function documents({ documents: rows }, days) {
  if (!rows.length) return sheet("Most clicked documents", el("p.hint", "No clicks were recorded."));
  return sheet("Most clicked documents",
    table(["Document", "Clicks", "Conversions"], rows.map((row) =>
      [documentLink(row.id), count(row.clicks), count(row.conversions)])),
    csv("documents", days));
}

function queryLink(q, words = q) {
  return el("a", context.state.anchor({ view: null, days: null, q }), words);
}

function documentLink(id) {
  return el("a", context.state.anchor({ view: "document", days: null, id }), id);
}

function synonyms(proposals) {
  const title = "Proposed synonyms";
  if (!proposals.length) {
    return sheet(title, el("p.hint", "None. Proposals need visitors who searched a word that no or few " +
      "documents contain, then another one instead, and opened a hit."));
  }
  return sheet(title,
    el("p.quiet.small", "For searched words that no or few documents contain. Nothing changes until you add one."),
    el("ul.proposals", proposals.map((proposal) => el("li",
      el("h3", proposal.word, " ", el("span.quiet", many(proposal.searches, "search", "searches"))),
      el("p.quiet.small", `Searched as ${proposal.queries.map((q) => `“${q}”`).join(", ")}`),
      el("ul.candidates", proposal.candidates.map((each) => candidate(proposal.word, each)))))));
}

/** Why a synonym is proposed. */
function evidence({ count: some, total, queries }) {
  return [`searched instead, with a click, in ${some} of ${many(total, "case")}: `,
    queries.flatMap((q, at) => [at ? ", " : null, queryLink(q)])];
}

function candidate(word, given) {
  const status = el("span.small", { role: "status" });
  const accept = async () => {
    button.disabled = true;
    try {
      await client.index(context.index).addSynonyms({ [word]: [given.synonym] });
      button.remove();
      fill(status, `Added: ${word} also finds ${given.synonym}. `, queryLink(word, "Search it"));
    } catch (failure) {
      button.disabled = false;
      fill(status, alertOf(failure));
    }
  };
  const button = el("button", { type: "button", on: { click: accept },
    "aria-label": `Add synonym ${given.synonym} for ${word}` }, "Add synonym");
  return el("li", el("strong", given.synonym), el("span.quiet.small", evidence(given)), button, status);
}
