// Adding documents: files are dropped, looked at, and sent in batches.

import { client, pathOf } from "../session.js";
import { alertOf, el, fill, reasonOf } from "../dom.js";
import { count, many } from "../words.js";
import { Unreadable } from "./reading.js";
import { documents, opened } from "./source.js";

const LINES = 200; // of a batch
const CHARACTERS = 400_000; // of a batch, from which on it is sent
const SHOWN = 100; // maximum number of errors shown one by one
const TRIES = 20; // of a batch that the service has no room for, a second apart
const KINDS = { lines: "lines of JSON", table: "table", text: "text, one document" };
const ROLES = { id: "Id", title: "Title", text: "Text" };

/** The panel: {node, leave()}. `changed` is called when documents were added. */
export function adding(index, changed) {
  let stopping = null;
  const input = el("input.unseen", { id: "files", type: "file", multiple: true,
    accept: ".jsonl,.ndjson,.csv,.tsv,.txt,.md", on: { change: () => take(input.files) } });
  const place = el("div.drop", {
    on: {
      dragover: (event) => (event.preventDefault(), (place.dataset.over = "yes")),
      dragleave: () => delete place.dataset.over,
      drop: (event) => {
        event.preventDefault();
        delete place.dataset.over;
        take(event.dataTransfer.files);
      },
    },
  }, input, el("label.button", { for: "files" }, "Choose files"),
  el("span", " or drop them here"),
  el("p.quiet.small", "JSON lines (.jsonl), tables with a header (.csv, .tsv), or text " +
    "files, one document each. A document with an existing ID is replaced."));
  const plan = el("div");
  const node = el("section.sheet", { "aria-labelledby": "adding-title" },
    el("h2", { id: "adding-title" }, "Add documents"), place, plan);

  async function take(files) {
    const given = [...files];
    input.value = "";
    if (!given.length || stopping) return;
    fill(plan, el("p.quiet", "Reading …"));
    try {
      const sources = [];
      for (const file of given) sources.push(await opened(file));
      drawPlan(sources);
    } catch (failure) {
      tell(failure);
    }
  }

  function tell(failure) {
    fill(plan, alertOf(failure));
  }

  function drawPlan(sources) {
    const button = el("button.primary", { type: "submit" },
      `Add ${sources.length === 1 ? sources[0].file.name : many(sources.length, "file")}`);
    const send = (event) => (event.preventDefault(), add(sources));
    fill(plan, el("form.plan", { on: { submit: send } }, sources.map(planOf),
      el("div.buttons", button,
        el("button", { type: "button", on: { click: () => fill(plan) } }, "Cancel"))));
    button.focus();
  }

  async function add(sources) {
    stopping = new AbortController();
    const total = sources.reduce((sum, { file }) => sum + file.size, 0);
    const sending = new Sending(index, stopping.signal);
    const bar = el("progress", { max: total || 1, value: 0, "aria-label": "Added so far" });
    const status = el("p.quiet", { role: "status" });
    const stop = el("button", { type: "button", on: { click: () => stopping.abort() } }, "Stop");
    const faults = el("div");
    fill(plan, bar, status, el("div.buttons", stop), faults);
    const draw = (bytes) => {
      bar.value = bytes;
      status.textContent = `${many(sending.added, "document")} added, ` +
        `${Math.floor((100 * bytes) / (total || 1))}%`;
    };
    let before = 0;
    let end = "The file was read completely.";
    try {
      for (const source of sources) {
        await sending.all(source, (bytes) => draw(before + bytes));
        before += source.file.size;
      }
      draw(total);
    } catch (failure) {
      end = failure.name === "AbortError" ? "Stopped; added documents are kept." : reasonOf(failure);
    }
    stopping = null;
    stop.remove();
    const refused = sending.refused ? `, ${count(sending.refused)} refused` : "";
    status.textContent = `${many(sending.added, "document")} added${refused}. ${end}`;
    fill(faults, drawnFaults(sending));
    changed();
  }

  return { node, leave: () => stopping?.abort() };
}

function planOf(source, number) {
  const { file, kind, columns, columnOf, sample, parted } = source;
  const size = `${count(Math.ceil(file.size / 1024))} KiB`;
  const about = [KINDS[kind], ...(kind === "table" ? [`cells separated by ${parted}`] : []), size];
  const head = el("p", el("strong", file.name), " ", el("span.quiet", about.join(", ")));
  if (kind !== "table") return el("div.file", head);
  const choice = (role) => {
    const id = `column-${number}-${role}`;
    const none = role === "id" ? "the number of its line" : "nothing";
    const select = el("select", { id, on: { change: () => (columnOf[role] = select.value) } },
      el("option", { value: "" }, none),
      columns.map((name) => el("option", { value: name, selected: columnOf[role] === name }, name)));
    return el("div", el("label", { for: id }, ROLES[role]), select);
  };
  return el("div.file", head, el("div.roles", Object.keys(ROLES).map(choice)),
    el("p.quiet.small", "All other columns become metadata."),
    el("div.scroller", { tabindex: "0", role: "region", "aria-label": `First rows of ${file.name}` },
      el("table.sample", el("thead", el("tr", columns.map((name) =>
        el("th", { scope: "col" }, name)))),
      el("tbody", sample.map((cells) => el("tr", cells.map((cell) =>
        el("td", cell.length > 60 ? `${cell.slice(0, 60)}…` : cell))))))));
}

function drawnFaults({ faults, refused }) {
  if (!refused) return null;
  return el("div.faults", el("h3", `Not added: ${many(refused, "line")}`),
    el("ul", faults.map(({ where, message }) => el("li", el("strong", where), ` ${message}`))),
    refused > faults.length ? el("p.quiet", "and more") : null);
}

/** Sends documents in batches, one after the other, and keeps count of what became of them. */
class Sending {
  added = 0;
  refused = 0;
  faults = [];
  #held = [];
  #size = 0;

  constructor(index, signal) {
    this.path = `${pathOf(index)}/documents`;
    this.signal = signal;
  }

  /** Send all documents of one file. */
  async all(source, read) {
    let bytes = 0;
    try {
      for await (const { number, line, fault } of documents(source, (now) => (bytes = now))) {
        this.signal.throwIfAborted();
        if (fault) {
          this.#refuse(source, number, fault);
          continue;
        }
        this.#held.push({ number, line });
        this.#size += line.length;
        if (this.#held.length === LINES || this.#size > CHARACTERS) {
          await this.#send(source);
          read(bytes);
        }
      }
      if (this.#held.length) await this.#send(source);
    } catch (failure) {
      if (!(failure instanceof Unreadable)) throw failure;
      if (this.#held.length) await this.#send(source);
      this.#refuse(source, 0, reasonOf(failure));
    }
  }

  async #send(source) {
    const held = this.#held;
    [this.#held, this.#size] = [[], 0];
    const body = held.map(({ line }) => line).join("\n");
    const answer = await this.#tried(body);
    for (const line of answer.split("\n").filter(Boolean)) {
      const status = JSON.parse(line);
      if (status.ok) this.added += 1;
      else this.#refuse(source, held[status.line - 1].number, status.error.message);
    }
  }

  async #tried(body) {
    const contentType = "application/x-ndjson";
    for (let left = TRIES; ; left -= 1) {
      try {
        return await client.text("POST", this.path, { body, contentType, signal: this.signal });
      } catch (failure) {
        const isBusy = ["too_many_writes", "busy", "index_busy", "rate_exceeded"];
        if (!left || !isBusy.includes(failure.code)) throw failure;
        await new Promise((resolve) => setTimeout(resolve, 1000));
      }
    }
  }

  #refuse({ file }, number, message) {
    this.refused += 1;
    const where = number ? `${file.name}, line ${count(number)}:` : `${file.name}:`;
    if (this.faults.length < SHOWN) this.faults.push({ where, message });
  }
}
