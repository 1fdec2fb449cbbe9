// Charts: shapes in SVG, stretched to the available space, with labels that are not stretched.

import { el, svg } from "./dom.js";

const SIDE = 1000; // of the square that is drawn in, stretched
const FEWEST = 8; // bars there is room for at least, so that none is a block

/** A chart with axes. `shapes` are in a square of 1000 by 1000, y downwards; `x` and `y` are
 * lists of [share of the axis, text], from the left and from the bottom.
 */
export function chart({ label, shapes, x = [], y = [] }) {
  const at = (side, share) => ({ [side]: `${100 * share}%` });
  const lines = y.map(([share]) => svg("line.grid", { x1: 0, x2: SIDE, ...level(share) }));
  return el("figure.chart", { role: "img", "aria-label": label },
    el("div.axis.across", y.map(([share, text]) => el("span", { css: at("bottom", share) }, text))),
    svg("svg", { viewBox: `0 0 ${SIDE} ${SIDE}`, preserveAspectRatio: "none" }, lines, shapes),
    el("div.axis.along", x.map(([share, text]) => el("span", { css: at("left", share) }, text))));
}

function level(share) {
  return { y1: SIDE * (1 - share), y2: SIDE * (1 - share) };
}

/** A line through values, each a share of the height; [] gives nothing. */
export function line(shares, name) {
  const step = SIDE / Math.max(1, shares.length - 1);
  const points = shares.map((share, at) => `${(at * step).toFixed(1)},${height(share)}`);
  return svg(`polyline.${name}`, { points: points.join(" ") });
}

/** Bars from the middle, up and down, each value a share of half the height. */
export function bars(values) {
  const step = SIDE / Math.max(FEWEST, values.length);
  return values.map(({ share, kind, said }, at) => {
    const tall = Math.max(4, Math.abs(share) * (SIDE / 2));
    return svg(`rect.${kind}`, {
      x: at * step + step * 0.12, width: step * 0.76,
      y: share > 0 ? SIDE / 2 - tall : SIDE / 2 - (share === 0 ? 2 : 0), height: tall,
    }, svg("title", said));
  });
}

/** Columns from the bottom, each a share of the height, across the whole width. */
export function columns(values) {
  const step = SIDE / values.length;
  return values.map(({ share, said }, at) => svg("rect.column", {
    x: at * step + step * 0.12, width: step * 0.76, y: height(share), height: SIDE * share,
  }, svg("title", said)));
}

/** A mean and its interval on a scale from 0 to `most`, for a cell of a table. */
export function whisker({ mean, interval, most }) {
  const place = (value) => (SIDE * Math.min(Math.max(value, 0), most)) / most;
  const across = (from, to, name) => svg(`line.${name}`, {
    x1: place(from), x2: place(to) + (from === to ? 0.01 : 0), y1: 500, y2: 500,
  });
  return svg("svg.whisker", { viewBox: `0 0 ${SIDE} ${SIDE}`, preserveAspectRatio: "none",
    "aria-hidden": "true" },
    across(0, most, "rail"),
    interval ? across(interval[0], interval[1], "reach") : null,
    across(mean, mean, "mean"));
}

function height(share) {
  return (SIDE * (1 - share)).toFixed(1);
}
