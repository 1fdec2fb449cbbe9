// Facets: the values of metadata fields over all matches, as filters.

import { count, el, fill, pretty, written } from "./dom.js";
import { CHOSEN, filterOf, filtering, FROM, searchOf, TO } from "./query.js";

const SHOWN = 6; // values of a field before they are asked for
const REQUESTED = 50; // values of a field
const MOST = 8; // fields

/** The fields that are worth counting: what nearly every document has of its own is not. */
export function facetFields(fields) {
  const worth = Object.entries(fields).filter(([, field]) =>
    field.type !== "keyword" || field.texts <= 50 || field.texts <= 0.5 * field.values);
  return worth.slice(0, MOST).map(([name]) => name);
}

/** Further searches, by field, that count its other values while one is chosen. They rank as the
 * search itself does, so that all counts are of the same matches. */
export function alternatives(state, fields) {
  const chosen = facetFields(fields).filter((name) => state.all(CHOSEN + name).length);
  return chosen.map((name) => {
    const { filter: _, ...search } = searchOf(state, fields);
    const filter = filterOf(state, fields, name);
    return { name, search: { ...search, ...(filter === null ? {} : { filter }), k: 1,
      fields: [], facets: [name], max_facet_values: REQUESTED } };
  });
}

/** What a search has to ask for so that `drawFacets` can draw it. */
export function counted(fields) {
  const names = facetFields(fields);
  return names.length ? { facets: names, max_facet_values: REQUESTED } : {};
}

const opened = new Set(); // fields of which all values are shown

/** Draw the facets of an answer. */
export function drawFacets(root, facets, state, fields) {
  const focused = document.activeElement?.id; // keep the focus when redrawing
  const filters = filtering(state);
  fill(
    root,
    Object.entries(facets).map(([name, facet]) => drawn(name, facet, state, fields[name])),
    filters.length
      ? el("button", { type: "button", on: { click: () => state.change({ ...without(filters), page: null }) } },
        "Clear all filters")
      : null,
  );
  if (focused && root.querySelector(`#${CSS.escape(focused)}`)) document.getElementById(focused).focus();
}

function isBound(name, state) {
  return Boolean(state.get(FROM + name) || state.get(TO + name));
}

/** A patch that leaves all of these parameters out. */
export function without(names) {
  return Object.fromEntries(names.map((name) => [name, null]));
}

function drawn(name, facet, state, field) {
  const chosen = state.all(CHOSEN + name);
  const values = [...facet.values];
  for (const value of chosen) {
    if (!values.some((each) => String(each.value) === value)) values.push({ value, count: 0 });
  }
  // By the type alone: what is offered must not change with each answer. A link may have chosen values.
  const isRange = ["date", "number"].includes(field.type) && !chosen.length;
  if (isRange ? facet.low === null && !isBound(name, state) : !values.length) return null;
  return el("fieldset.facet", el("legend", pretty(name)),
    isRange ? range(name, facet, state) : listed(name, values, chosen, facet.others, state));
}

function listed(name, values, chosen, others, state) {
  const all = opened.has(name);
  const sorted = values.slice().sort((a, b) =>
    chosen.includes(String(b.value)) - chosen.includes(String(a.value)));
  const shown = all ? sorted : sorted.slice(0, Math.max(SHOWN, chosen.length));
  const list = el("ul", shown.map((each) => row(name, each, chosen, state)));
  if (shown.length === sorted.length) {
    return [list, others ? el("p.quiet", `and ${count(others)} more`) : null];
  }
  const more = el("button.plain", { type: "button", on: { click: () => {
    opened.add(name);
    fill(list, sorted.map((each) => row(name, each, chosen, state)));
    list.querySelectorAll("input")[shown.length].focus();
    more.remove();
  } } }, `${count(sorted.length - shown.length)} more`);
  return [list, more];
}

function row(name, { value, count: number }, chosen, state) {
  const text = String(value);
  const id = `facet-${name}-${text}`;
  const change = (event) => {
    const left = state.all(CHOSEN + name).filter((each) => each !== text);
    state.change({ [CHOSEN + name]: event.target.checked ? [...left, text] : left, page: null });
  };
  return el("li", el("label", { for: id },
    el("input", { type: "checkbox", id, checked: chosen.includes(text), on: { change } }),
    el("span.value", written(text)), el("span.number", count(number))));
}

function range(name, facet, state) {
  const type = facet.type === "date" ? "date" : "number";
  const plain = (value) => (value === null ? "" : String(value).slice(0, type === "date" ? 10 : 99));
  const bound = (prefix, label, hint) => el("label", label, el("input", {
    type, id: `${prefix}${name}`, value: state.get(prefix + name), step: "any",
    placeholder: plain(hint),
    on: { change: (event) => state.change({ [prefix + name]: event.target.value, page: null }) },
  }));
  return el("div.range", bound(FROM, "from", facet.low), bound(TO, "to", facet.high),
    facet.low === null ? null : el("p.quiet", `${plain(facet.low)} to ${plain(facet.high)}`));
}
