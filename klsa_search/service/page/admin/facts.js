// What an index is: sizes, drift, spectrum.

import { client } from "../session.js";
import { chart, line } from "../charts.js";
import { el, fill } from "../dom.js";
import { count, manyInEnglish as many } from "../words.js";

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

/** Promise the details of an index, as they are now. */
export function factsOf(index) {
  return client.index(index).info();
}

/** The card of sizes and drift. */
export function drawFacts(card, details) {
  const { counts, drift, spectra } = details;
  const built = details.created ? new Date(details.created).toLocaleString() : "";
  const facts = [
    ["Documents", count(details.documents)],
    ["Terms", count(counts.terms)],
    ["Words", count(counts.tokens)],
    ["On disk", inBytes(details.bytes)],
    ["Segments", drift.segments === 1 ? "1 (build)"
      : `${drift.segments}: 1 of the build, ${drift.segments - 1} of added documents (${inBytes(drift.bytes)} in memory)`],
    ["Eigenvectors", count(spectra.bm25?.dimensions ?? 0)],
    ["Generation", `${details.generation}, built ${built}`],
    ["Source", details.source],
  ];
  fill(card, el("h2", { id: "facts-title" }, "Statistics"),
    el("dl.figures", facts.map(([name, value]) => [el("dt", name), el("dd", value)])),
    el("h3", "Drift"), driftOf(drift));
}

function driftOf({ added, deleted, changed_share: changed, unseen_share: unseen }) {
  const share = (value) => `${(100 * value).toFixed(value < 0.1 ? 1 : 0)}%`;
  return [
    el("meter", { min: 0, max: 1, high: 0.2, optimum: 0, value: changed, "aria-label": "Drift" }),
    el("p.quiet.small", `${share(changed)} changed since the build: ${many(added, "document")} ` +
      `added, ${count(deleted)} deleted or replaced.` +
      (added ? ` ${share(unseen)} of their words are new.` : "")),
  ];
}

/** The card of the spectrum. */
export function drawSpectrum(card, { eigenvalues, explained }) {
  const title = el("h2", { id: "spectrum-title" }, "Spectrum");
  if (!eigenvalues.length || !(eigenvalues[0] > 0)) {
    fill(card, title, el("p.hint", "This index has no eigenvalues."));
    return;
  }
  const k = eigenvalues.length;
  const [first, last] = [eigenvalues[0], eigenvalues[k - 1]];
  const low = Math.log10(Math.max(last, first / 1e6));
  const [bottom, top] = [Math.floor(low), Math.max(Math.ceil(Math.log10(first)), Math.floor(low) + 1)];
  const at = (value) => Math.max(0, (Math.log10(Math.max(value, 1e-300)) - bottom) / (top - bottom));
  const decades = Array.from({ length: top - bottom + 1 }, (_, step) => bottom + step);
  const x = k > 1 ? [[0, "1"], [0.5, count(Math.round((k + 1) / 2))], [1, count(k)]] : [[0, "1"]];
  const half = explained.findIndex((share) => share >= explained[k - 1] / 2) + 1;
  const captured = (100 * explained[k - 1]).toFixed(0);
  fill(card, title,
    el("p.quiet.small", `${many(k, "eigenvalue")}, from ${first.toPrecision(3)} to ` +
      `${last.toPrecision(3)}. Together they explain ${captured}% of the collection, ` +
      `the first ${count(half)} explain half of that.`),
    el("div.plots",
      el("div", el("h3", "Eigenvalues"), chart({
        label: `Eigenvalues on a logarithmic scale, from ${first.toPrecision(3)} down to ` +
          last.toPrecision(3),
        shapes: line(eigenvalues.map(at), "curve"), x,
        y: decades.map((each) => [(each - bottom) / (top - bottom), String(10 ** each)]),
      })),
      el("div", el("h3", "Explained share"), chart({
        label: `Share of the collection explained by the first eigenvectors, ${captured}% by all`,
        shapes: line([0, ...explained], "curve"), x: k > 1 ? [[0, "0"], ...x.slice(1)] : x,
        y: [[0, "0"], [0.25, ""], [0.5, "50%"], [0.75, ""], [1, "100%"]],
      }))));
}

function inBytes(size) {
  let value = size;
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) [value, unit] = [value / 1024, unit + 1];
  return `${unit ? value.toFixed(1) : value} ${UNITS[unit]}`;
}
