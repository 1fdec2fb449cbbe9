// One hit, as it is drawn.

import { el, marked, pretty, svg, written } from "./dom.js";
import { count, many, t } from "./words.js";

const FITS = [
  [0.7, "strong match", 4],
  [0.5, "good match", 3],
  [0.3, "weak match", 2],
  [0, "unlikely match", 1],
];

const THUMB = "M7 9v8H4V9h3Zm2 8V9l3-6c1.2 0 2 .8 2 2v3h3.2c1 0 1.7.9 1.5 1.9l-1 5.4c-.2 1-1 1.7-2 1.7H9Z";

/** In words how good a match is, and a small meter of it. */
function quality(value) {
  const [, words, bars] = FITS.find(([least]) => value >= least);
  const said = t("{words} ({value} out of 100)", { words: t(words), value: Math.round(100 * value) });
  return el("span.quality", { title: said, data: { bars } },
    el("span.meter", { "aria-hidden": "true" }, [1, 2, 3, 4].map((each) =>
      el("span", { data: { on: each <= bars ? "yes" : "no" } }))), t(words));
}

/** Metadata in one line, which is cut where there is no room: short values alone. */
function facts(metadata) {
  return Object.entries(metadata).flatMap(([name, value]) => {
    const plain = [value].flat();
    if (!plain.every((each) => ["string", "number", "boolean"].includes(typeof each))) return [];
    const text = plain.map(written).join(", ");
    return text && text.length <= 40 ? [el("span.fact", { dir: "auto" }, el("span.quiet", pretty(name)), " ", text, " ")] : [];
  }).slice(0, 4);
}

/** Where a passage is in a long document; blank if it has no heading and page. */
function placeOf({ heading, page }) {
  return [heading, page ? t("page {page}", { page: count(page) }) : null].filter(Boolean).join(" › ");
}

/** The place of the passage of the snippet, and a button that lists the others; null if short. */
function placeLine(hit, list) {
  const { more_passages: more } = hit;
  const place = placeOf(hit);
  const others = el("ol.passages", { id: `passages-${hit.rank}`, hidden: true });
  const button = more ? el("button.plain", {
    type: "button", id: `more-${hit.id}`, "aria-expanded": "false", "aria-controls": others.id,
    on: { click: () => list(hit, button, others) },
  }, many(more, "more passage"), el("span.unseen", " ", t("of {title}", { title: hit.title || hit.id }))) : null;
  return place || more ? [el("p.place", place, place && more ? " › " : null, button), others] : [];
}

/** Another passage of a hit, in its list. */
export function drawPassage(passage) {
  const place = placeOf(passage);
  return el("li", place ? el("p.place", place) : null,
    passagesOf(passage.highlight, passage.snippet));
}

/** Whether no word of the query stands in a hit: in its title, and in the passage with most. */
function holdsNothing(hit) {
  return !Object.values(hit.highlight ?? {}).some(({ marks }) => marks.length);
}

/** The snippet, and a passage of another searched field if words of the query are only there. */
function passagesOf(highlight, text) {
  if (!highlight) return el("p.snippet", { dir: "auto" }, text);
  const { title, snippet, ...others } = highlight;
  const [name, other] = Object.entries(others).find(([, { marks }]) => marks.length) ?? [];
  return [
    el("p.snippet", { dir: "auto" }, marked(snippet.text, snippet.marks)),
    snippet.marks.length || !other ? null
      : el("p.snippet", { dir: "auto" }, el("span.quiet", pretty(name)), " ", marked(other.text, other.marks)),
  ];
}

/** An ID that people write, such as "SUP-1041": one with a letter, and a digit or sign. */
function isCode(id) {
  return id.length <= 40 && /\p{L}/u.test(id) && /[^\p{L}\p{M}\s]/u.test(id);
}

/** Draw a hit.
 *
 * {link, list, toggle, judge}: what leads to a document, what lists its other passages, what
 *   toggles the explanation, what judges;
 * tools   whether explanation and thumbs are shown
 * returns the node, the panel of the explanation in it, and the hit.
 */
export function drawHit(hit, { link, list, toggle, judge, positive, negative, isOpen, isAsked, tools }) {
  const { title } = hit.highlight ?? {};
  const named = hit.title || hit.id;
  const id = `hit-${hit.rank}`;
  const heading = hit.title ? named : [el("span.quiet", t("Document"), " "), hit.id];
  // Documents that a rule pins, or that the query names, have no score.
  const through = isAsked && hit.score > 0 && holdsNothing(hit)
    ? el("p.through", t("Contains none of your words, but is related to them"))
    : null;
  const panel = el("div.why", { id: `why-${hit.rank}`, hidden: !isOpen });
  const button = el("button.plain", {
    type: "button", id: `explain-${hit.id}`, "aria-expanded": String(isOpen), "aria-controls": panel.id,
    on: { click: () => toggle(hit, button, panel) },
  }, t("Why this?"), el("span.unseen", ` ${named}`));
  const [place, others] = placeLine(hit, list);
  const node = el("li.hit", { data: { id: hit.id }, "aria-labelledby": id },
    el("h2", { id, dir: "auto" }, link(hit.id, title?.marks.length ? marked(title.text, title.marks) : heading, { hit })),
    place,
    passagesOf(hit.highlight, hit.snippet),
    others,
    through,
    el("div.below",
      tools && isAsked && (hit.quality ?? null) !== null ? quality(hit.quality) : null, el("span.facts-line",
        hit.title && isCode(hit.id) ? el("span.fact", hit.id, " ") : null, facts(hit.metadata ?? {})),
      el("span.actions", tools ? button : null,
        link(hit.id, t("Similar documents"), { class: "button plain", label: t("Documents similar to {title}", { title: named }) }),
        tools ? [
          thumb("positive", hit, positive, t("More hits like {title}", { title: named }), () => judge(hit, "positive")),
          thumb("negative", hit, negative, t("Fewer hits like {title}", { title: named }), () => judge(hit, "negative")),
        ] : null)),
    panel);
  return { node, panel, hit };
}

function thumb(kind, hit, pressed, label, click) {
  const icon = svg("svg", { viewBox: "0 0 22 20", "aria-hidden": "true" }, svg("path", { d: THUMB }));
  return el(`button.plain.thumb.${kind}`, { type: "button", id: `${kind}-${hit.id}`, "aria-pressed": String(pressed),
    "aria-label": label, title: label, on: { click } }, icon);
}

/** The links to other pages of an answer. */
export function pager(page, pages, go) {
  if (pages < 2) return null;
  const near = [1, page - 1, page, page + 1, pages];
  const shown = [...new Set(near)].filter((each) => each >= 1 && each <= pages);
  const link = (to, text, label) => go(to, text, { label, current: to === page });
  const between = shown.flatMap((each, at) => [
    at && each - shown[at - 1] > 1 ? el("span.quiet", { "aria-hidden": "true" }, "…") : null,
    link(each, count(each), t("Page {page}", { page: each })),
  ]);
  return el("nav.pager", { "aria-label": t("Pages") },
    page > 1 ? link(page - 1, `← ${t("Previous")}`, t("Previous page")) : null,
    between,
    page < pages ? link(page + 1, `${t("Next")} →`, t("Next page")) : null);
}
