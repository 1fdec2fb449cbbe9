// Files of the service, fetched with the key, as a plain link could not.

import { client } from "./session.js";
import { alertOf, el, fill, pretty } from "./dom.js";
import { t } from "./words.js";

const COLUMNS = ["id", "title", "score", "snippet"];

/** Save a text as a file; promises that it was fetched. */
async function save(name, fetched) {
  const address = URL.createObjectURL(new Blob([await fetched]));
  el("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

/** A panel that saves the results of a search, with columns to choose from. */
export function exportPanel(index, search, fields) {
  const names = [...COLUMNS, ...Object.keys(fields)];
  const chosen = new Set(names);
  const told = el("div");
  const box = (name) => el("label", el("input", { type: "checkbox", checked: true, on: {
    change: (event) => (event.target.checked ? chosen.add(name) : chosen.delete(name)) } }), " ", pretty(name));
  const button = (format, words) => el("button", { type: "button", on: { click: async () => {
    const { q, facets: _, ...options } = search;
    const columns = names.filter((name) => chosen.has(name));
    fill(told);
    try {
      // Reading a text drops the byte order mark, which Excel needs.
      const text = await client.index(index).export(q, { ...options, columns, format });
      await save(`${index}.${format}`, format === "csv" ? `\ufeff${text}` : text);
    } catch (failure) {
      fill(told, alertOf(failure));
    }
  } } }, words);
  return el("details.export", el("summary", t("Download")), el("fieldset", el("legend.unseen", t("Columns")), names.map(box)),
    el("div.buttons", button("csv", "CSV"), button("jsonl", "JSON lines")), told);
}

/** A link that saves what a path of the service answers as a file; `failed` is called with a failure. */
export function download(path, name, words, failed) {
  const fetched = async (event) => {
    event.preventDefault();
    try {
      await save(name, client.text("GET", path));
    } catch (failure) {
      failed(failure);
    }
  };
  return el("a", { href: path.slice(1), download: name, on: { click: fetched } }, words);
}
