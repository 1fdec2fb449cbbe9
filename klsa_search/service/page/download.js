// Files of the service, fetched with the key, as a plain link could not.

import { client } from "./session.js";
import { alertOf, el, fill, pretty } from "./dom.js";
import { t } from "./words.js";

const COLUMNS = ["id", "title", "score", "snippet"]; // besides the fields of metadata

/** Save a text as a file; promises that it was fetched. */
async function save(name, fetched) {
  const address = URL.createObjectURL(new Blob([await fetched]));
  el("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

/** The results of a search as files: a panel with the columns to choose from.
 *
 * search  parameters of the search
 */
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
      // A byte order mark is lost on the way through a text, and Excel needs it.
      const text = await client.index(index).export(q, { ...options, columns, format });
      await save(`${index}.${format}`, format === "csv" ? `\ufeff${text.replace(/^\ufeff/, "")}` : text);
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
