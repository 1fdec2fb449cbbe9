// Settings of searching, with what they would change shown before they are kept.

import { Latest, STALE } from "../latest.js";
import { client } from "../session.js";
import { alertOf, el, fill } from "../dom.js";
import { judgedQueries } from "../judging.js";
import { SETTINGS } from "../query.js";

const HITS = 5;
const MOST = 4; // queries
const DELAY = 250; // ms after the last move of a slider

/** The panel: {node, leave()}. `save` is called with settings that are to be kept. */
export function settingsPanel(index, present, save) {
  const latest = new Latest();
  const wanted = Object.fromEntries(SETTINGS.map(({ name }) => [name, present[name]]));
  const shown = el("div.trials", { "aria-live": "polite" });
  const queries = el("textarea", { id: "preview-queries", rows: "3",
    on: { input: () => later() } });
  const keep = el("button.primary", { type: "button", disabled: true,
    on: { click: () => save(changes()) } }, "Save these settings");
  const back = el("button", { type: "button", disabled: true, on: { click: reset } }, "Reset");
  const sliders = SETTINGS.map((each) => slider(each, present, wanted, later));
  const node = el("section.sheet.settings", { "aria-labelledby": "settings-title" },
    el("h2", { id: "settings-title" }, "Settings"),
    el("p.quiet.small", "Move a slider to preview its effect on a few queries. Nothing changes " +
      "for others until you save them."),
    el("div.knobs", sliders.map(({ node: each }) => each)),
    el("div.stack", el("label", { for: "preview-queries" }, "Queries to preview, one per line"), queries),
    shown, el("div.buttons", keep, back));
  let timer = null;

  const changes = () => Object.fromEntries(
    Object.entries(wanted).filter(([name, value]) => value !== present[name]));

  function reset() {
    for (const each of sliders) each.put();
    later();
  }

  function later() {
    const isSame = !Object.keys(changes()).length;
    keep.disabled = back.disabled = isSame;
    clearTimeout(timer);
    timer = setTimeout(preview, DELAY);
  }

  async function preview() {
    const asked = queries.value.split("\n").map((each) => each.trim()).filter(Boolean).slice(0, MOST);
    try {
      const found = await latest.run((signal) => Promise.all(asked.flatMap((q) =>
        [{}, wanted].map((given) =>
          client.index(index).search(q, { k: HITS, ...given, analytics: false, signal })))));
      if (found === STALE) return;
      fill(shown, asked.length
        ? asked.map((q, at) => drawn(q, found[2 * at].hits, found[2 * at + 1].hits))
        : el("p.hint", "Enter a query above."));
    } catch (failure) {
      fill(shown, alertOf(failure));
    }
  }

  judgedQueries(index).then((judged) => {
    if (!queries.value) queries.value = judged.slice(0, 3).map(({ q }) => q).join("\n");
    later();
  }, later); // without them the queries are written by hand

  return { node, leave: () => (clearTimeout(timer), latest.cancel()) };
}

function slider({ name, label, least, most, step }, present, wanted, moved) {
  const id = `setting-${name}`;
  const out = el("output", { for: id });
  const input = el("input", { id, type: "range", min: least, max: Math.max(most, present[name]), step,
    on: { input: () => (take(), moved()) } });
  const take = () => {
    wanted[name] = input.valueAsNumber;
    out.textContent = wanted[name] === present[name]
      ? String(present[name]) : `${present[name]} → ${wanted[name]}`;
  };
  const put = () => ((input.value = present[name]), (wanted[name] = present[name]),
    (out.textContent = String(present[name])));
  put();
  return { put, node: el("div.knob", el("label", { for: id }, `${label} (${name})`), out, input) };
}

/** One query before and after, moved hits marked, in words too. */
function drawn(q, before, after) {
  const rank = (hits) => new Map(hits.map((hit) => [hit.id, hit.rank]));
  const [was, is] = [rank(before), rank(after)];
  const same = before.every(({ id, rank: at }) => is.get(id) === at) && is.size === was.size;
  const row = (hit, mark) => el("li", el("span", hit.title || hit.id), mark);
  const old = before.map((hit) =>
    row(hit, is.has(hit.id) ? null : el("span.shift.lost", "drops out")));
  const fresh = after.map((hit) => row(hit, moved(was.get(hit.id), hit.rank)));
  return el("section.trial", el("h3", q),
    same ? el("p.quiet.small", `The first ${before.length} results do not change.`) : null,
    el("div.versus",
      el("div", same ? null : el("h4", "Now"), el("ol", old)),
      same ? null : el("div", el("h4", "After"), el("ol", fresh))));
}

function moved(before, now) {
  if (before === undefined) return el("span.shift.new", "new");
  if (before === now) return null;
  return before > now
    ? el("span.shift.up", `▲ ${before - now}`, el("span.unseen", " up"))
    : el("span.shift.down", `▼ ${now - before}`, el("span.unseen", " down"));
}
