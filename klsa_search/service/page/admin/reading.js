// Files that are dropped, read piece by piece: lines, rows of tables, whole texts.

const MARKS = { ",": "commas", ";": "semicolons", "\t": "tabs" };

/** A file, or a line of one, that cannot be read as it is. */
export class Unreadable extends Error {}

/** What kind of file it is, by its name: "lines" of JSON, a "table" with a header, or a "text". */
export function kindOf(file) {
  if (/\.(jsonl|ndjson)$/i.test(file.name)) return "lines";
  return /\.(csv|tsv)$/i.test(file.name) ? "table" : "text";
}

/** The text of a file in pieces; `read` is called with the bytes done. Unreadable. */
async function* pieces(file, read) {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  const reader = file.stream().getReader();
  let bytes = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      const text = decoded(decoder, file, value, done);
      if (text.includes("\0")) throw new Unreadable(`${file.name} is not text`);
      if (text) yield text;
      if (done) return;
      bytes += value.length;
      read(bytes);
    }
  } finally {
    reader.cancel().catch(() => {}); // it may have failed already, and been reported
  }
}

function decoded(decoder, file, value, done) {
  try {
    return done ? decoder.decode() : decoder.decode(value, { stream: true });
  } catch {
    throw new Unreadable(`${file.name} is not UTF-8: save it as UTF-8, then add it again`);
  }
}

/** Lines that are not blank: {number, text}, numbers from 1. */
export async function* lines(file, read = () => {}) {
  let rest = "";
  let number = 1;
  for await (const piece of pieces(file, read)) {
    const parts = (rest + piece).split("\n");
    rest = parts.pop();
    for (const text of parts) {
      if (text.trim()) yield { number, text };
      number += 1;
    }
  }
  if (rest.trim()) yield { number, text: rest };
}

/** Rows of a table (RFC 4180): {number of its first line, cells} or {number, fault}. */
export async function* rows(file, mark, read = () => {}) {
  const quotes = mark !== "\t"; // where a tab parts cells, a quote is a letter
  let cells = [];
  let cell = "";
  let state = "start"; // of a cell; or bare, quoted, closed (or a quote in quotes), broken
  let line = 1;
  let began = 1;
  let fault = null;

  function* ended() {
    cells.push(cell);
    if (fault) yield { number: began, fault };
    else if (cells.length > 1 || cells[0] !== "") yield { number: began, cells };
    [cells, cell, state, fault, began] = [[], "", "start", null, line];
  }

  for await (const piece of pieces(file, read)) {
    for (const letter of piece) {
      if (letter === "\n") line += 1;
      if (state === "quoted") {
        if (letter === '"') state = "closed";
        else cell += letter;
      } else if (letter === "\n") yield* ended();
      else if (letter === "\r") continue;
      else if (letter === mark) {
        cells.push(cell);
        cell = "";
        state = "start";
      } else if (quotes && letter === '"' && state === "start") state = "quoted";
      else if (quotes && letter === '"' && state === "closed") {
        cell += '"';
        state = "quoted";
      } else {
        if (state === "closed") fault ??= "a quote is closed and more follows: double the quotes";
        cell += letter;
        state = "bare";
      }
    }
  }
  if (state === "quoted") yield { number: began, fault: "a quote is opened and never closed" };
  else if (cell !== "" || cells.length) yield* ended();
}

/** The whole text of a file. */
export async function whole(file, read = () => {}) {
  const found = [];
  for await (const piece of pieces(file, read)) found.push(piece);
  return found.join("");
}

/** How the cells of a table are parted, by its first line: {mark, words}. */
export async function markOf(file) {
  for await (const { text } of lines(file)) {
    const often = (mark) => text.split(mark).length;
    const mark = Object.keys(MARKS).reduce((one, two) => (often(two) > often(one) ? two : one));
    return { mark, words: MARKS[mark] };
  }
  throw new Unreadable(`${file.name} is empty`);
}
