// The search box: what is typed goes to the state, and may become one of the suggestions.

import { Latest, STALE } from "./latest.js";
import { optional } from "./session.js";
import { el, fill } from "./dom.js";
import { count, many, t } from "./words.js";

const MOST = 7; // suggestions
const REST = 50; // ms without a letter after which they are asked for, behind the search itself
const KINDS = { title: "title", correction: "did you mean" };

/** Make the box work. `isLive` says whether the view follows what is typed, `restriction` promises
 * filter and match of the searches that follow. Returns what offers suggestions for what was typed before there was an index to ask. */
export function installBox({ state, indexChosen, isLive, restriction }) {
  const input = document.getElementById("q");
  const list = document.getElementById("suggestions");
  const latest = new Latest();
  let offered = [];
  let active = -1;

  function take(text, typing) {
    const patch = { q: text, page: null, spelling: null, operators: null };
    if (isLive()) state.change(patch, { typing });
    else if (!typing) state.change({ ...patch, view: null, id: null });
  }

  function close() {
    latest.cancel();
    offered = [];
    active = -1;
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  }

  function choose(number) {
    input.value = offered[number].query;
    close();
    take(input.value, false);
  }

  function mark(number) {
    active = number;
    for (const [at, row] of [...list.children].entries()) row.setAttribute("aria-selected", at === active);
    if (active < 0) input.removeAttribute("aria-activedescendant");
    else {
      input.setAttribute("aria-activedescendant", `suggestion-${active}`);
      list.children[active].scrollIntoView({ block: "nearest", inline: "nearest" });
    }
  }

  async function offer() {
    const index = indexChosen();
    if (!input.value.trim() || !index) return close();
    // Without suggestions the box still searches: the search itself reports failures.
    const answer = await latest
      .run(async (signal) => {
        await new Promise((resolve) => setTimeout(resolve, REST));
        signal.throwIfAborted();
        return optional.index(index).suggest(input.value, { ...await restriction(index), k: MOST, signal });
      })
      .catch(() => []);
    if (answer === STALE || document.activeElement !== input) return;
    offered = answer.filter((each) => each.query !== input.value.trim()).slice(0, MOST);
    fill(list, offered.map(row));
    mark(-1);
    list.hidden = offered.length === 0;
    input.setAttribute("aria-expanded", String(!list.hidden));
  }

  function row({ kind, text, query, documents }, number) {
    const shown = kind === "title" ? text : query;
    return el(
      "li",
      {
        id: `suggestion-${number}`,
        role: "option",
        "aria-selected": "false",
        data: { kind },
        on: {
          // Not click: the box would lose the focus first, and the list be gone.
          pointerdown: (event) => (event.preventDefault(), choose(number)),
          pointermove: () => mark(number),
        },
      },
      el("span.said", shown),
      kind in KINDS ? el("span.kind", t(KINDS[kind])) : null,
      ["title", "id"].includes(kind) ? null
        : el("span.kind", { title: many(documents, "document") }, count(documents)),
    );
  }

  function typed() {
    take(input.value, true);
    offer();
  }

  // An input method composes a word first: its keys are not ours, and its letters not yet a query.
  input.addEventListener("input", (event) => event.isComposing || typed());
  input.addEventListener("compositionend", typed);
  input.addEventListener("keydown", (event) => {
    if (event.isComposing || event.keyCode === 229) return; // Safari ends composing before the key
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && !list.hidden) {
      event.preventDefault();
      const places = offered.length + 1; // the last one is the box itself
      mark(((active + 1 + step + places) % places) - 1);
    } else if (event.key === "Enter") {
      event.preventDefault();
      if (active >= 0) choose(active);
      else close(), take(input.value, false);
    } else if (event.key === "Escape" && !list.hidden) {
      event.preventDefault();
      close();
    }
  });
  input.addEventListener("blur", close);
  // The little cross that browsers show empties the box without a key.
  input.addEventListener("search", () => take(input.value, false));
  document.getElementById("box").addEventListener("submit", (event) => event.preventDefault());
  addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input, textarea, select, dialog, [contenteditable]");
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      input.focus();
      input.select();
    }
  });
  state.subscribe((changed) => {
    if (changed.has("q") && state.get("q") !== input.value) input.value = state.get("q");
  });
  input.value = state.get("q");
  return () => document.activeElement === input && list.hidden && offer();
}
