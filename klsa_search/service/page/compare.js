// Side by side: BM25 and Kernel LSA, with lines that join the same document.

import { el, fill, svg } from "./dom.js";
import { manyInEnglish as many } from "./words.js";

const SHOWN = 10; // of each list
const [BEFORE, AFTER] = ["BM25 #", "LSA #"]; // before a rank in the other list
export const LOOKED_AT = 100; // hits of each list that are known, to say where from and where to

/** Draw two rankings of one query: lists of {id, title, snippet, rank}, `link` leads to a document. */
export function drawComparison(root, before, after, link) {
  const placesBefore = new Map(before.map((hit) => [hit.id, hit.rank]));
  const placesAfter = new Map(after.map((hit) => [hit.id, hit.rank]));
  const lines = svg("svg.lines", { "aria-hidden": "true" });
  const left = column("BM25", "words only", before, placesAfter, fate, link);
  const right = column("Kernel LSA", "words and related words", after, placesBefore, origin, link);
  const moved = summary(after, placesBefore);
  const pair = el("div.pair", left, el("div.between", lines), right);
  fill(root, el("p.quiet", moved), pair);
  const draw = () => drawLines(lines, left, right);
  const observer = new ResizeObserver(draw);
  observer.observe(pair);
  draw();
  for (const kind of ["pointerover", "focusin"]) {
    pair.addEventListener(kind, (event) => light(pair, event.target.closest("li")?.dataset.id));
  }
  for (const kind of ["pointerleave", "focusout"]) pair.addEventListener(kind, () => light(pair));
  return () => observer.disconnect();
}

/** What became of a hit of BM25: kind, sign, words. */
function fate(rank, there) {
  if (there === undefined) {
    return ["lost", `not in LSA`, `not among the first ${LOOKED_AT} of Kernel LSA`];
  }
  if (there > SHOWN) return ["lost", `${AFTER}${there}`, `rank ${there} in Kernel LSA`];
  return step(rank - there, `${AFTER}${there}`, `rank ${there} in Kernel LSA`);
}

/** Where a hit of Kernel LSA was before. */
function origin(rank, there) {
  if (there === undefined) {
    return ["new", `not in BM25`, `not among the first ${LOOKED_AT} of BM25`];
  }
  if (there > SHOWN) return ["new", `${BEFORE}${there}`, `rank ${there} in BM25`];
  return step(there - rank, `${BEFORE}${there}`, `rank ${there} in BM25`);
}

function step(up, there, words) {
  if (up === 0) return ["same", `= ${there}`, `the same rank in both`];
  return up > 0 ? ["up", `↑ ${there}`, `${words}, up ${up}`] : ["down", `↓ ${there}`, `${words}, down ${-up}`];
}

function column(name, hint, hits, there, compared, link) {
  return el("section.column", { "aria-label": name },
    el("h2", name, el("small.quiet", hint)),
    hits.length ? null : el("p.hint", "No results."),
    el("ol", hits.slice(0, SHOWN).map((hit) => {
      const [kind, sign, words] = compared(hit.rank, there.get(hit.id));
      return el("li", { data: { id: hit.id, kind } },
        el("span.rank", { "aria-hidden": "true" }, `#${hit.rank}`),
        el("div.named", link(hit.id, hit.title || hit.snippet || hit.id)),
        el("span.sign", { title: words }, el("span", { "aria-hidden": "true" }, sign),
          el("span.unseen", words)));
    })));
}

/** Show next to hits of Kernel LSA why they were found: [text or nodes] by id. Rows keep their height. */
export function tellReasons(root, reasons) {
  const [, column] = root.querySelectorAll(".column");
  for (const row of column.querySelectorAll("li")) {
    const reason = reasons.get(row.dataset.id);
    if (!reason) continue;
    row.classList.add("reasoned");
    row.querySelector(".named").append(el("p.quiet", "found ", reason));
  }
}

function summary(after, placesBefore) {
  const shown = after.slice(0, SHOWN);
  const known = shown.filter((hit) => (placesBefore.get(hit.id) ?? SHOWN + 1) <= SHOWN);
  const moved = known.filter((hit) => placesBefore.get(hit.id) !== hit.rank);
  return `Of the first ${many(shown.length, "result")} by words and related words, ${shown.length - known.length} `
    + `${shown.length - known.length === 1 ? "is" : "are"} not among the first ${SHOWN} by words only, `
    + `${moved.length} changed rank.`;
}

function drawLines(lines, left, right) {
  const box = lines.getBoundingClientRect();
  const middles = (side) => new Map([...side.querySelectorAll("li")].map((row) => {
    const place = row.getBoundingClientRect();
    return [row.dataset.id, place.top + place.height / 2 - box.top];
  }));
  const [from, to] = [middles(left), middles(right)];
  const bend = box.width / 2;
  fill(lines, [...from].flatMap(([id, y]) => {
    if (!to.has(id)) return [];
    const end = to.get(id);
    const path = `M0 ${y} C${bend} ${y} ${bend} ${end} ${box.width} ${end}`;
    return [svg("path", { d: path, data: { id } })];
  }));
}

function light(pair, id) {
  for (const each of pair.querySelectorAll("[data-id]")) {
    each.classList.toggle("lit", id !== undefined && each.dataset.id === id);
  }
}
