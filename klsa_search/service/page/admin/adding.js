// Adding documents: files are dropped, the service looks at their beginning, and adds them.

import { client, uploading } from "../session.js";
import { alertOf, el, fill, reasonOf } from "../dom.js";
import { Latest, STALE } from "../latest.js";
import { count, manyInEnglish as many } from "../words.js";

const TABLES = /\.(csv|tsv|jsonl?|ndjson|xml|xlsx|parquet)(\.(gz|zip|zst))?$/i; // which have columns
const IN_ROWS = /\.(csv|tsv|jsonl?|ndjson|xml)$/i; // of which the beginning can be read alone
const BEGINNING = 2 ** 20; // bytes
const REFRESH = 2000; // ms, while documents are added
const ROLES = { id: "Id", title: "Title", text: "Text" };

/** The panel: {node, leave()}. `changed` is called when documents were added. */
export function adding(index, changed) {
  let stopping = null;
  const input = el("input.unseen", { id: "files", type: "file", multiple: true,
    on: { change: () => take(input.files) } });
  const target = el("div.drop", {
    on: {
      dragover: (event) => (event.preventDefault(), (target.dataset.over = "yes")),
      dragleave: () => delete target.dataset.over,
      drop: (event) => {
        event.preventDefault();
        delete target.dataset.over;
        take(event.dataTransfer.files);
      },
    },
  }, input, el("label.button", { for: "files" }, "Choose files"),
  el("span", " or drop them here"),
  el("p.quiet.small", "Tables (CSV, Excel, JSON, XML), texts, web pages, PDF, Word, mail, and ZIP " +
    "archives of these. A document with an existing ID is replaced."));
  const plan = el("div");
  const node = el("section.sheet", { "aria-labelledby": "adding-title" },
    el("h2", { id: "adding-title" }, "Add documents"), target, plan);

  async function take(files) {
    const sources = [...files].map((file) => ({ file, chosen: {} }));
    input.value = "";
    if (!sources.length || stopping) return;
    fill(plan, el("p.quiet", "Reading …"));
    try {
      for (const source of sources) await look(source);
      drawPlan(sources);
    } catch (failure) {
      fill(plan, alertOf(failure));
    }
  }

  /** Ask how the service reads a file: {columns, used, documents, notes, skipped, fault}. */
  async function look(source, signal) {
    const { file, chosen } = source;
    if (!TABLES.test(file.name)) return;
    const isCut = file.size > BEGINNING && IN_ROWS.test(file.name);
    const sent = isCut ? file.slice(0, BEGINNING) : file;
    const options = { name: file.name, ...chosen, preview: 3, signal };
    try {
      source.read = { ...await client.index(index).addFile(sent, options), isCut };
    } catch (failure) {
      if (!isCut) throw failure;
    }
  }

  function drawPlan(sources) {
    const button = el("button.primary", { type: "submit" },
      `Add ${sources.length === 1 ? sources[0].file.name : many(sources.length, "file")}`);
    const send = (event) => (event.preventDefault(), add(sources));
    fill(plan, el("form.plan", { on: { submit: send } },
      sources.map((source, number) => planOf(source, number, look)),
      el("div.buttons", button,
        el("button", { type: "button", on: { click: () => fill(plan) } }, "Cancel"))));
    button.focus();
  }

  async function add(sources) {
    stopping = new AbortController();
    const { signal } = stopping;
    const total = sources.reduce((sum, { file }) => sum + file.size, 0);
    const bar = el("progress", { max: total || 1, value: 0, "aria-label": "Sent so far" });
    const status = el("p.quiet", { role: "status" });
    const stop = el("button", { type: "button", on: { click: () => stopping.abort() } }, "Stop");
    const report = el("div");
    fill(plan, bar, status, el("div.buttons", stop), report);
    const refreshing = setInterval(changed, REFRESH);
    const result = { added: 0, refused: 0, faults: [], notes: [], isCut: false };
    let before = 0;
    let end = "The file was read completely.";
    try {
      for (const { file, chosen } of sources) {
        const sender = uploading((bytes) => {
          if (bytes < file.size) bar.value = before + bytes;
          else bar.removeAttribute("value"); // how much is left to read is not known
          status.textContent = `${file.name}: ${bytes < file.size ? "sending" : "reading and adding"} …`;
        });
        await sender.index(index).addFile(file, { ...chosen, signal })
          .then((answer) => addTo(result, answer), (failure) => refuse(result, file, failure));
        before += file.size;
      }
      bar.value = total;
      if (result.isCut) end = "The file below was not read to its end; what was stored of it is kept.";
    } catch (failure) {
      end = failure.name === "AbortError" ? "Stopped; added documents are kept." : reasonOf(failure);
    }
    clearInterval(refreshing);
    stopping = null;
    stop.remove();
    const refused = result.refused ? `, ${count(result.refused)} refused` : "";
    status.textContent = `${many(result.added, "document")} added${refused}. ${end}`;
    fill(report, drawnFaults(result), result.notes.map(drawnNote));
    changed();
  }

  return { node, leave: () => stopping?.abort() };
}

function planOf(source, number, look) {
  const { file, read, chosen } = source;
  const about = [...(read ? [read.format] : []), `${count(Math.ceil(file.size / 1024))} KiB`];
  const head = el("p", el("strong", file.name), " ", el("span.quiet", about.join(", ")));
  const sample = el("div.file");
  const selects = {};
  const latest = new Latest();
  const draw = () => {
    for (const [role, select] of Object.entries(selects)) select.value = [source.read.used[role] ?? ""].flat()[0];
    fill(sample, drawnSample(file, source.read));
  };
  const choose = async (role) => {
    Object.assign(chosen, { ...source.read.used, ...chosen, [role]: selects[role].value });
    try {
      if (await latest.run((signal) => look(source, signal)) !== STALE) draw();
    } catch (failure) {
      fill(sample, alertOf(failure));
    }
  };
  const choice = (role) => {
    const id = `column-${number}-${role}`;
    selects[role] = el("select", { id, on: { change: () => choose(role) } },
      el("option", { value: "" }, role === "id" ? "the number of its row" : "nothing"),
      read.columns.map((name) => el("option", { value: name }, name)));
    return el("div", el("label", { for: id }, ROLES[role]), selects[role]);
  };
  if (!read) return el("div.file", head);
  const roles = read.columns.length ? el("div.roles", Object.keys(ROLES).map(choice)) : null;
  draw();
  return el("div.file", head, roles, sample);
}

/** The first documents of a file, as they would be added. */
function drawnSample(file, { documents, notes, skipped, fault, isCut }) {
  const rows = documents.map(({ id, title, text, metadata }) => ({ Id: id, Title: title, Text: text, ...metadata }));
  const names = [...new Set(rows.flatMap(Object.keys))];
  const inFile = (message) => message.replace(`${file.name}: `, "");
  const cell = (value) => {
    const text = typeof value === "object" ? JSON.stringify(value) : String(value ?? "");
    return el("td", text.length > 60 ? `${text.slice(0, 60)}…` : text);
  };
  const refused = isCut
    ? ["No document can be read from the beginning of this large file alone. All of it is read when it is added."]
    : skipped.first;
  const faults = fault ? [fault] : rows.length ? [] : refused;
  return [
    faults.map((message) => el("p.trouble", { role: "alert" }, inFile(message))),
    notes.map((note) => drawnNote(inFile(note))),
    rows.length > 0 && el("div.scroller", { tabindex: "0", role: "region", "aria-label": `First documents of ${file.name}` },
      el("table.sample", el("thead", el("tr", names.map((name) => el("th", { scope: "col" }, name)))),
        el("tbody", rows.map((row) => el("tr", names.map((name) => cell(row[name]))))))),
  ];
}

function drawnNote(note) {
  return el("p.quiet.small", note);
}

function addTo(result, { added, skipped, unread, notes }) {
  result.added += added;
  result.refused += skipped.count + unread.count;
  result.notes.push(...notes);
  result.faults.push(...skipped.first,
    ...Object.entries(unread.kinds).map(([kind, number]) => `${count(number)} ${kind}: ${unread.first[kind]}`));
}

/** Note a file that cannot be read, and go on; throw other failures. */
function refuse(result, file, failure) {
  const isTooLarge = failure.status === 413; // by a proxy: the service takes 8 GiB
  if (!isTooLarge && !/^bad_(document|collection|query)$/.test(failure.code)) throw failure;
  const reason = isTooLarge ? "is larger than the proxy of this service allows" : failure.message;
  result.added += failure.added;
  result.refused += 1;
  result.isCut = true;
  result.faults.push(`${file.name}: ${reason}`);
}

function drawnFaults({ faults, refused }) {
  if (!refused) return null;
  return el("div.faults", el("h3", `Not added: ${count(refused)}`),
    el("ul", faults.map((message) => el("li", message))),
    refused > faults.length ? el("p.quiet", "and more") : null);
}
