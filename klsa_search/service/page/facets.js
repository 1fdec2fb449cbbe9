// Facets: the values of metadata fields over all matches, as filters.

import { el, fill, pretty, written } from "./dom.js";
import { count, monthName, t } from "./words.js";
import { CHOSEN, EVERY, filtering, FROM, takesEvery, TO } from "./query.js";

const SHOWN = 6; // values of a field before they are asked for
const REQUESTED = 50; // values of a field
const MOST = 8; // fields
const YEARS = 8; // of a field of dates that are offered, at most

/** Fields in the order in which they are shown: those that the owner declared, then those with few
 * values, then ranges. Numbers that the owner declared are no codes.
 *
 * declared  as in the settings of the index, such as "year:number"
 */
export function ordered(fields, declared) {
  const names = declared.map((each) => each.split(":")[0]);
  const rank = ([name]) => (names.includes(name) ? names.indexOf(name) : names.length);
  const values = ([, { type, texts }]) => (type === "keyword" ? texts : Number.MAX_VALUE);
  return Object.fromEntries(
    Object.entries(fields).sort((a, b) => rank(a) - rank(b) || values(a) - values(b))
      .map(([name, field]) => [name, { ...field, codes: field.codes && !names.includes(name) }]));
}

/** The fields that are worth counting: what nearly every document has of its own is not, nor are codes. */
export function facetFields(fields) {
  const worth = Object.entries(fields).filter(([, { type, codes, texts, values }]) =>
    type === "keyword" ? texts <= 50 || texts <= 0.5 * values : !codes);
  return worth.slice(0, MOST).map(([name]) => name);
}

/** What a search has to ask for so that `drawFacets` can draw it: other values of a field that is
 * chosen by OR are counted as if none were. */
export function counted(state, fields) {
  const names = facetFields(fields);
  const [every, any] = [true, false].map((each) => names.filter((name) => takesEvery(state, name) === each));
  return names.length ? { facets: every, disjunctive_facets: any, max_facet_values: REQUESTED } : {};
}

const opened = new Set(); // fields of which all values are shown

/** Draw the facets of an answer. */
export function drawFacets(root, facets, state, fields) {
  const focused = document.activeElement?.id; // keep the focus when redrawing
  const names = Object.keys(fields).filter((name) => name in facets);
  fill(root, names.map((name) => drawn(name, facets[name], state, fields[name])));
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
  if (isRange ? facet.min === null && !isBound(name, state) : !values.length) return null;
  return el("fieldset.facet", el("legend", pretty(name)),
    chosen.length > 1 && field.lists ? everyOf(name, state) : null,
    isRange ? range(name, facet, state) : listed(name, values, chosen, facet.other_count, state));
}

function listed(name, values, chosen, others, state) {
  const all = opened.has(name);
  const sorted = values.slice().sort((a, b) =>
    chosen.includes(String(b.value)) - chosen.includes(String(a.value)));
  const shown = all ? sorted : sorted.slice(0, Math.max(SHOWN, chosen.length));
  const list = el("ul", shown.map((each) => row(name, each, chosen, state)));
  if (shown.length === sorted.length) {
    return [list, others ? el("p.quiet", t("and {count} more", { count: count(others) })) : null];
  }
  const more = el("button.plain", { type: "button", on: { click: () => {
    opened.add(name);
    fill(list, sorted.map((each) => row(name, each, chosen, state)));
    list.querySelectorAll("input")[shown.length].focus();
    more.remove();
  } } }, t("{count} more", { count: count(sorted.length - shown.length) }));
  return [list, more];
}

/** The choice whether documents have all chosen values of a field of lists, or any of them. */
function everyOf(name, state) {
  const id = `every-${name}`;
  const change = (event) => state.change({ [EVERY + name]: event.target.checked ? "yes" : null, page: null });
  return el("label", { for: id }, el("input", { type: "checkbox", id, checked: takesEvery(state, name), on: { change } }),
    t("all of these"));
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
  const isDate = facet.type === "date";
  const plain = (value) => (value === null ? "" : String(value).slice(0, isDate ? 10 : 99));
  const between = (value) => (isDate ? plain(value) : written(value));
  const bound = (prefix, label, hint) => el("label", label, el("input", {
    type: isDate ? "date" : "number", id: `${prefix}${name}`, value: state.get(prefix + name), step: "any",
    placeholder: plain(hint),
    on: { change: (event) => state.change({ [prefix + name]: event.target.value, page: null }) },
  }));
  const chosen = [state.get(FROM + name), state.get(TO + name)];
  const offered = isDate ? periods(plain(facet.min), plain(facet.max), chosen) : [];
  const link = ({ label, bounds: [from, to], isChosen }) => el("a.chip", {
    ...state.anchor({ [FROM + name]: isChosen ? null : from, [TO + name]: isChosen ? null : to, page: null }),
    "aria-current": isChosen ? "true" : null,
  }, label);
  return el("div.range", offered.length ? el("div.periods", offered.map(link)) : null,
    bound(FROM, t("from"), facet.min), bound(TO, t("to"), facet.max),
    facet.min === null ? null : el("p.quiet", t("{low} to {high}", { low: between(facet.min), high: between(facet.max) })));
}

/** Years, and the months of a year, to choose from: [{label, bounds: [first day, last day], isChosen}].
 *
 * low, high  days between which the values lie, "" if there are none
 * chosen     bounds that are set; a year or month that has both is offered to be taken back
 */
export function periods(low, high, chosen) {
  const years = [];
  const [first, last] = [low, high].map((day) => Number(day.slice(0, 4)));
  for (let year = first; low && high && year <= last; year += 1) years.push(year);
  const [year, month] = parts(chosen);
  if (year && !years.includes(year)) years.push(year);
  if (!years.length || years.length > YEARS) return [];
  const made = (label, bounds) => ({ label, bounds, isChosen: String(bounds) === String(chosen) });
  const ofYears = years.map((each) => made(String(each), yearOf(each)));
  if (years.length > 1 && !year) return ofYears;
  const [only] = year ? [year] : years;
  const numbers = Array.from({ length: 12 }, (_, at) => at + 1).filter((each) =>
    each === month || (monthOf(only, each)[0] <= high && monthOf(only, each)[1] >= low));
  const ofMonths = numbers.map((each) => made(monthName(each), monthOf(only, each)));
  return [...ofYears, ...(ofMonths.length > 1 || month ? ofMonths : [])];
}

function yearOf(year) {
  return [`${year}-01-01`, `${year}-12-31`];
}

function monthOf(year, month) {
  const begin = `${year}-${String(month).padStart(2, "0")}`;
  return [`${begin}-01`, `${begin}-${new Date(Date.UTC(year, month, 0)).getUTCDate()}`];
}

/** The year, and the month if there is one, that these bounds are; [] if they are neither. */
function parts([from, to]) {
  const [year, month] = from.split("-").map(Number);
  if (String(yearOf(year)) === `${from},${to}`) return [year];
  return from && String(monthOf(year, month)) === `${from},${to}` ? [year, month] : [];
}

/** What is filtered, each a link that takes it back, and a button for all; nothing if nothing is. */
export function drawChips(root, state, fields) {
  const chips = Object.keys(fields).flatMap((name) => {
    const values = state.all(CHOSEN + name);
    const [from, to] = [state.get(FROM + name), state.get(TO + name)];
    const of = { low: written(from), high: written(to) };
    const bounds = from && to ? t("{low} to {high}", of) : from ? t("from {low}", of) : to && t("to {high}", of);
    return [
      ...values.map((value) => chip(state, `${pretty(name)}: ${written(value)}`,
        { [CHOSEN + name]: values.filter((each) => each !== value) })),
      bounds ? chip(state, `${pretty(name)} ${periodOf([from, to]) || bounds}`, without([FROM + name, TO + name])) : [],
    ].flat();
  });
  if (state.get("filter")) chips.push(chip(state, state.get("filter"), { filter: null }));
  fill(root, chips.length ? [chips, el("button.plain", { type: "button",
    on: { click: () => state.change({ ...without(filtering(state)), page: null }) } }, t("Clear all filters"))] : null);
}

/** The year or month that bounds are, in words; "" if they are neither. */
function periodOf(bounds) {
  const [year, month] = parts(bounds);
  return year ? [month ? monthName(month) : null, year].filter(Boolean).join(" ") : "";
}

function chip(state, text, patch) {
  return el("a.chip", { ...state.anchor({ ...patch, page: null }), "aria-label": t("Remove filter {filter}", { filter: text }) },
    text, el("span.quiet", { "aria-hidden": "true" }, " ×"));
}
