// From files to documents, as lines of JSON that the service takes.

import { kindOf, lines, markOf, rows, Unreadable, whole } from "./reading.js";

const KNOWN = {
  id: ["_id", "id", "docno", "docid", "key"],
  title: ["title", "name", "headline", "subject"],
  text: ["text", "contents", "content", "body", "abstract", "description"],
};

/** Look at a file: {file, kind, columns, mark, parted, columnOf, sample}. */
export async function opened(file) {
  const kind = kindOf(file);
  if (kind !== "table") return { file, kind };
  const { mark, words } = await markOf(file);
  const found = [];
  for await (const { cells } of rows(file, mark)) {
    if (cells) found.push(cells);
    if (found.length > 3) break;
  }
  const columns = (found[0] ?? []).map((name) => name.trim());
  if (!columns.length || columns.includes("") || new Set(columns).size < columns.length) {
    throw new Unreadable(`${file.name}: the first line must have a different name for each column`);
  }
  const named = (role) => columns.find((each) => KNOWN[role].includes(each.toLowerCase())) ?? "";
  const columnOf = { id: named("id"), title: named("title"), text: named("text") };
  return { file, kind, mark, parted: words, columns, columnOf, sample: found.slice(1) };
}

/** Documents of an opened file: {number, line} to be sent, or {number, fault}. */
export async function* documents(source, read) {
  const { file, kind } = source;
  if (kind === "lines") {
    for await (const { number, text } of lines(file, read)) yield { number, line: text.trim() };
  } else if (kind === "table") {
    yield* ofTable(source, read);
  } else {
    const text = await whole(file, read);
    const title = file.name.replace(/\.[^.]*$/, "");
    yield { number: 1, line: JSON.stringify({ id: file.name, title, text }) };
  }
}

async function* ofTable({ file, mark, columns, columnOf }, read) {
  let isHeader = true;
  for await (const { number, cells, fault } of rows(file, mark, read)) {
    if (isHeader) {
      isHeader = false;
    } else if (fault) {
      yield { number, fault };
    } else if (cells.length !== columns.length) {
      yield { number, fault: `${cells.length} cells, but the header has ${columns.length}` };
    } else {
      yield { number, line: JSON.stringify(documentOf(file, number, columns, cells, columnOf)) };
    }
  }
}

function documentOf(file, number, columns, cells, columnOf) {
  const value = Object.fromEntries(columns.map((name, at) => [name, cells[at]]));
  const chosen = (role) => (columnOf[role] ? value[columnOf[role]] : "");
  const taken = new Set(Object.values(columnOf));
  const rest = Object.entries(value).filter(([name]) => !taken.has(name));
  return {
    id: columnOf.id ? value[columnOf.id] : `${file.name}:${number}`,
    title: chosen("title"),
    text: chosen("text"),
    metadata: Object.fromEntries(rest),
  };
}
