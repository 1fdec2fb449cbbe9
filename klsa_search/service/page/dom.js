// Elements from data. Text only ever becomes text: nothing here parses HTML.

import { plainNumber, t } from "./words.js";

const SVG = "http://www.w3.org/2000/svg";

/** Make an element: el("p.hint", {id: "x", on: {click}}, "text", child, [more]).
 *
 * Attributes that are null, undefined or false are left out, true is an empty one; `on` has
 * listeners, `data` a dataset, `css` custom properties and styles, set one by one as the
 * Content-Security-Policy of the page asks.
 */
export function el(what, ...rest) {
  return made((tag) => document.createElement(tag), what, rest);
}

/** The same for SVG. */
export function svg(what, ...rest) {
  return made((tag) => document.createElementNS(SVG, tag), what, rest);
}

function made(create, what, rest) {
  const [tag, ...classes] = what.split(".");
  const node = create(tag);
  if (classes.length) node.setAttribute("class", classes.join(" "));
  const isNode = (each) => each instanceof Node || Array.isArray(each);
  if (rest.length && rest[0] !== null && typeof rest[0] === "object" && !isNode(rest[0])) {
    set(node, rest.shift());
  }
  add(node, rest);
  return node;
}

function set(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on") {
      for (const [kind, listener] of Object.entries(value)) node.addEventListener(kind, listener);
    } else if (name === "data") {
      Object.assign(node.dataset, value);
    } else if (name === "css") {
      for (const [property, to] of Object.entries(value)) node.style.setProperty(property, to);
    } else if (value !== null && value !== undefined && value !== false) {
      node.setAttribute(name, value === true ? "" : value);
    }
  }
}

const BUSY = "The service is busy. Try again in a moment.";
const BROKEN = "The service has a problem. Tell the person who runs it:";

/** Sentences for people, for errors whose message tells the operator what to run; a colon at the
 * end is followed by that message. */
export const FOR_PEOPLE = {
  invalid_api_key: "Invalid or expired name, password or API key. Check that you copied all of it, or ask the person who runs this service for another.",
  insufficient_scope: "Not allowed with your name or key; ask the person who runs this service.",
  index_not_found: "It was renamed or deleted, or you may not see it.",
  document_not_found: "The document was deleted, or you may not see it.",
  busy: BUSY,
  rate_exceeded: BUSY,
  timed_out: "This took too long. Request fewer results, or try again later.",
  service_failed: "The service does not answer. Check your connection and try again.",
  internal: BROKEN,
  index_unusable: BROKEN,
  index_damaged: BROKEN,
};

/** Why something failed, as a sentence. */
export function reasonOf(failure) {
  const { code, message } = failure;
  if (!(code in FOR_PEOPLE)) return message ?? String(failure);
  return FOR_PEOPLE[code] === BROKEN ? `${t(BROKEN)} ${message}` : t(FOR_PEOPLE[code]);
}

/** A failure, as a sentence that is read out. */
export function alertOf(failure) {
  return el("p.trouble", { role: "alert" }, reasonOf(failure));
}

/** A failure in the place of what it prevented, with its head and what may be done. */
export function notice(head, failure, ...ways) {
  return el("section.notice", { role: "alert" }, el("h1", head), el("p", reasonOf(failure)), ways);
}

/** Ask in a place whether to do what cannot be undone. */
export function confirming(place, label, act) {
  const sure = el("button.danger", { type: "button", on: { click: act } }, label);
  const cancel = el("button", { type: "button", on: { click: () => fill(place) } }, "Cancel");
  fill(place, el("div.buttons", sure, cancel));
  sure.focus();
}

/** Append children, which may be nodes, text, lists of these, or nothing. */
export function add(node, children) {
  for (const child of [children].flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) node.append(child);
  }
}

/** Put children in the place of what a node has. */
export function fill(node, ...children) {
  const holder = document.createDocumentFragment();
  add(holder, children);
  node.replaceChildren(holder);
}

/** Text with marks: [start, end) pairs in code points, as the service counts them. */
export function marked(text, marks) {
  const points = Array.from(text);
  const parts = [];
  let at = 0;
  for (const [start, end] of marks) {
    parts.push(points.slice(at, start).join(""), el("mark", points.slice(start, end).join("")));
    at = end;
  }
  parts.push(points.slice(at).join(""));
  return parts;
}

/** What metadata say, as people write it: of a moment its day, and the time unless it is midnight. */
export function written(value) {
  if (typeof value === "number") return plainNumber(value);
  const [, day, time] = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d)(?::[\d.]+)?Z$/.exec(value) ?? [];
  return day === undefined ? String(value) : time === "00:00" ? day : `${day} ${time} UTC`;
}

/** The name of a metadata field as a label: "release_year" is "Release year". */
export function pretty(name) {
  const words = name.replace(/([\p{Ll}\d])(\p{Lu})/gu, "$1 $2").replace(/[_.-]+/g, " ").trim();
  return words ? words[0].toUpperCase() + words.slice(1) : name;
}
