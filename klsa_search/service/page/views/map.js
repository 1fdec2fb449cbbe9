// The map: every document a point, near to what it is about the same as; the answer lit up.

import { Latest, STALE } from "../latest.js";
import { client, pathOf } from "../session.js";
import { el, fill } from "../dom.js";
import { count, manyInEnglish as many } from "../words.js";
import { Chart } from "./map-chart.js";

const LIT = 100; // hits that are lit up
const LISTED = 10; // of them that are listed
const PATIENCE = 20; // times a map that is not ready is asked for again
const AGAIN = 3000; // ms
const DWELL = 60; // ms on a point before its title is asked for
const NAMED = 3; // words of a cluster that are searched for

const drawing = new Latest();
const finding = new Latest();
const naming = new Latest();
const titles = new Map(); // promises by index and id
let context = null;
let parts = null;
let chart = null;
let map = null;
let places = null; // number of each document by its id
let dwelling = 0;

export async function show(root, given) {
  context = given;
  context.title("Map");
  await styled();
  if (context !== given) return;
  parts = {
    tip: el("div.map-tip", { hidden: true }),
    wait: el("p.map-wait", "Drawing the map. The first time after a build this takes a few seconds."),
    answer: el("section", { hidden: true }),
    clusters: el("section"),
    note: el("p.map-note"),
    canvas: el("canvas", {
      tabindex: "0",
      role: "application",
      "aria-label": "Map of the documents. Arrow keys move, plus and minus zoom, 0 shows all. " +
        "The clusters are listed next to it.",
    }),
  };
  const tool = (label, sign, work) =>
    el("button", { type: "button", "aria-label": label, title: label, on: { click: work } }, sign);
  fill(
    root,
    el("h1.unseen", "Map"),
    el("div.map",
      el("div.map-field", parts.canvas, parts.wait, parts.tip,
        el("div.map-tools",
          tool("Zoom in", "+", () => chart.zoom(1.5)),
          tool("Zoom out", "−", () => chart.zoom(1 / 1.5)),
          tool("Show all", "⤢", () => chart.all()))),
      el("div.map-side", parts.answer, parts.clusters, parts.note)),
  );
  chart = new Chart(parts.canvas, { over, open });
  map = null;
  const answer = await drawing.run(asked);
  if (answer === STALE) return;
  map = answer;
  places = new Map(map.ids.map((id, number) => [id, number]));
  chart.take(map);
  parts.wait.hidden = map.ids.length > 0;
  if (!map.ids.length) parts.wait.textContent = "No documents to draw.";
  drawClusters();
  await update(new Set(["q"]));
}

export function leave() {
  for (const each of [drawing, finding, naming]) each.cancel();
  clearTimeout(dwelling);
  titles.clear();
  chart?.end();
  chart = null;
}

export async function update(changed) {
  if (map === null || !changed.has("q")) return;
  const q = context.state.get("q");
  if (!q.trim()) {
    finding.cancel();
    light(q, { hits: [], total: 0 });
    return;
  }
  const options = { k: LIT, snippet_length: 1, analytics: false };
  const answer = await finding.run(async (signal) => {
    const found = await client.index(context.index).search(q, { ...options, signal });
    await completed(found.hits, signal);
    return found;
  });
  if (answer !== STALE) light(q, answer);
}

/** The map; asked for again while it takes longer to draw than a request may. */
async function asked(signal) {
  for (let left = PATIENCE; ; left -= 1) {
    try {
      return await client.request("GET", `${pathOf(context.index)}/map`, { signal });
    } catch (failure) {
      const waits = failure.code === "timed_out" || failure.code === "busy";
      if (!waits || left === 0) throw failure;
      await new Promise((resolve) => setTimeout(resolve, AGAIN));
      signal.throwIfAborted();
    }
  }
}

function drawClusters() {
  const { state } = context;
  fill(
    parts.clusters,
    el("h2", "Clusters"),
    el("ol", map.clusters.map(({ words, size, tone }, number) => {
      const q = words.slice(0, NAMED).join(" ");
      const mark = (on) => chart?.mark(on ? number : null);
      return el("li", el("a", {
        ...state.anchor({ view: null, q, id: null, page: null }, {
          pointerenter: () => mark(true),
          pointerleave: () => mark(false),
          focus: () => mark(true),
          blur: () => mark(false),
        }),
        title: `Search for ${q}`,
      }, dot(tone), el("span", words.join(", ")), el("span.size", count(size))));
    })),
  );
  const drawn = map.ids.length;
  const some = drawn + map.unplaced < map.documents;
  fill(
    parts.note,
    some ? `${count(drawn)} of ${many(map.documents, "document")} are shown. ` : null,
    map.unplaced ? `${count(map.unplaced)} without a known word ${map.unplaced === 1 ? "is" : "are"} not shown. ` : null,
    "Nearby documents are similar; distances between groups mean little.",
  );
}

/** Draw the hits that are no point yet: of a large index the map has only some documents. */
async function completed(hits, signal) {
  const ids = hits.map((hit) => hit.id).filter((id) => !places.has(id));
  if (!ids.length || map.ids.length + map.unplaced >= map.documents) return;
  const more = await client.request("POST", `${pathOf(context.index)}/map`, { body: { ids }, signal });
  for (const [number, id] of more.ids.entries()) places.set(id, map.ids.length + number);
  for (const name of ["ids", "x", "y", "cluster"]) map[name] = map[name].concat(more[name]);
  chart.grow(map);
}

function light(q, { hits, total }) {
  const numbers = hits.map((hit) => places.get(hit.id) ?? -1);
  const lit = numbers.filter((number) => number >= 0);
  chart.light(lit, Boolean(q.trim()));
  parts.answer.hidden = !q.trim();
  if (!q.trim()) return context.say("");
  for (const hit of hits) titles.set(hit.id, Promise.resolve(hit.title));
  const listed = hits.slice(0, LISTED);
  fill(
    parts.answer,
    el("h2", total > hits.length ? `The first ${count(hits.length)} of ${many(total, "hit")}` : many(total, "hit")),
    el("ol", listed.map((hit, at) => {
      const number = numbers[at];
      return el("li", el("a", context.state.anchor({ view: "document", id: hit.id }, {
        pointerenter: () => chart?.point(number),
        pointerleave: () => chart?.point(-1),
        focus: () => chart?.point(number),
        blur: () => chart?.point(-1),
      }), number < 0 ? el("span") : dot(map.clusters[map.cluster[number]].tone),
        el("span", hit.title || hit.id), el("span.rank", String(at + 1))));
    })),
  );
  context.say(`${count(lit.length)} of the first ${many(hits.length, "hit")} are highlighted on the map`);
}

function dot(tone) {
  return el("span.dot", { css: { "--dot": `var(--tone-${tone})` }, "aria-hidden": "true" });
}

function open(number) {
  context.state.change({ view: "document", id: map.ids[number] });
}

/** A point is under the pointer, at x and y of the field; or none, -1. */
function over(number, x, y) {
  clearTimeout(dwelling);
  naming.cancel();
  if (number < 0) {
    parts.tip.hidden = true;
    return;
  }
  dwelling = setTimeout(async () => {
    const id = map.ids[number];
    const title = await naming.run(() => titleOf(id)).catch(() => "");
    if (title === STALE || chart === null) return;
    const words = map.clusters[map.cluster[number]].words.slice(0, NAMED).join(", ");
    fill(parts.tip, el("div", title || id), words ? el("div.quiet", words) : null);
    parts.tip.hidden = false;
    const { clientWidth, clientHeight } = parts.canvas;
    const { offsetWidth, offsetHeight } = parts.tip;
    const left = Math.max(4, Math.min(x + 14, clientWidth - offsetWidth - 4));
    const top = y + 18 + offsetHeight > clientHeight ? y - offsetHeight - 12 : y + 18;
    parts.tip.style.setProperty("transform", `translate(${left}px, ${Math.max(4, top)}px)`);
  }, DWELL);
}

function titleOf(id) {
  if (!titles.has(id)) {
    const asked = client.index(context.index).document(id);
    titles.set(id, asked.then((document) => document.title || document.text.slice(0, 80)));
    asked.catch(() => titles.delete(id));
  }
  return titles.get(id);
}

/** Have the styles of this view, which no other needs. */
function styled() {
  const href = new URL("map.css", import.meta.url).href;
  if ([...document.styleSheets].some((sheet) => sheet.href === href)) return null;
  const link = el("link", { rel: "stylesheet", href });
  document.head.append(link);
  return new Promise((resolve) => link.addEventListener("load", resolve));
}
