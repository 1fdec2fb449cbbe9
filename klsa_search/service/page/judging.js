// Judgements of hits: stored in the index, by users who may write.

import { client, pathOf } from "./session.js";
import { el, svg } from "./dom.js";

const ICONS = { 1: "m4 10.5 4 4 8-9", 0: "M5 5l10 10M15 5 5 15" };
const WORDS = { 1: "Relevant", 0: "Not relevant" };

const path = (index) => `${pathOf(index)}/judgements`;

/** Promise the judged queries of an index, or the one that is named: [{number, q, grades, deleted}]. */
export async function judgedQueries(index, q, signal) {
  return (await client.request("GET", path(index), { query: { q: q || null }, signal })).queries;
}

/** Promise the grades of a query, {id of a document: grade}. */
export async function gradesOf(index, q, signal) {
  return (await judgedQueries(index, q, signal))[0]?.grades ?? {};
}

/** Say how relevant a document is to a query, or take it back (null); promises the grades then. */
export async function judge(index, q, id, grade) {
  const answer = grade === null
    ? await client.request("DELETE", path(index), { query: { q, id } })
    : await client.request("PUT", path(index), { body: { q, id, grade } });
  return answer.queries[0]?.grades ?? {};
}

/** Take back all that was said for a query. */
export function forget(index, q) {
  return client.request("DELETE", path(index), { query: { q } });
}

/** Two small buttons by which a hit is judged; pressing the one that is pressed takes it back.
 *
 * {index, q}  what is judged for which query
 * hit         {id, title}
 * grade       what was said of it, or undefined
 * judged      called with the grades of the query once something was kept
 * failed      called with what kept it from that
 */
export function judgeButtons({ index, q, hit, grade, judged, failed }) {
  const said = grade === undefined ? null : Number(grade > 0);
  const named = hit.title || hit.id;
  const buttons = [1, 0].map((value) => {
    const icon = svg("svg", { viewBox: "0 0 20 20", "aria-hidden": "true" },
      svg("path", { d: ICONS[value] }));
    const label = `${WORDS[value]}: ${named}`;
    return el(`button.say.${value ? "yes" : "no"}`, {
      type: "button", "aria-pressed": String(said === value), "aria-label": label,
      title: WORDS[value], on: { click: () => press(value) },
    }, icon);
  });
  let busy = false;
  async function press(value) {
    if (busy) return; // not disabled, which would take the focus away
    busy = true;
    try {
      judged(await judge(index, q, hit.id, said === value ? null : value));
    } catch (failure) {
      failed(failure);
    } finally {
      busy = false;
    }
  }
  return el("span.says", { role: "group", "aria-label": `Judge ${named}` }, buttons);
}
