// How hits are ranked: which ranker, and its sliders.

import { el, fill } from "./dom.js";
import { rankerOf, SLIDERS } from "./query.js";

const RANKERS = [
  ["klsa", "Words and related words", "Kernel LSA"],
  ["bm25", "Words only", "BM25"],
  ["compare", "Compare both", "side by side"],
];

const REST = 60; // ms that a slider has to rest

/** Draw the panel into `root` and keep it as the state is; returns what brings it up to date. */
export function rankingPanel(root, state, settings) {
  const choices = RANKERS.map(([name, label, hint]) => {
    const input = el("input", { type: "radio", name: "ranker", value: name, id: `ranker-${name}`,
      on: { change: () => state.change({ ranker: name === "klsa" ? null : name, page: null }) } });
    return { name, input, node: el("label.choice", { for: input.id }, input,
      el("span", label, el("small.quiet", hint))) };
  });
  const sliders = SLIDERS.map((slider) => drawn(slider, state, settings));
  const reset = el("button.plain", { type: "button", on: {
    click: () => state.change(Object.fromEntries(SLIDERS.map(({ name }) => [name, null]))) } },
  "Reset");
  const tuning = el("fieldset.sliders", el("legend.unseen", "Settings of Kernel LSA"),
    sliders.map((each) => each.node), reset);
  const advanced = el("details.advanced", el("summary", "Advanced"), tuning);
  advanced.open = SLIDERS.some(({ name }) => state.get(name));
  fill(root, el("fieldset.choices", el("legend", "Ranking"), choices.map((each) => each.node)), advanced);
  return function follow() {
    const ranker = rankerOf(state);
    for (const each of choices) each.input.checked = each.name === ranker;
    for (const each of sliders) each.follow();
    tuning.disabled = ranker === "bm25";
    reset.hidden = !SLIDERS.some(({ name }) => state.get(name));
  };
}

function drawn({ name, label, hint, least, most, step }, state, settings) {
  const output = el("output.number", { for: `slider-${name}` });
  let resting = null;
  const input = el("input", {
    type: "range", id: `slider-${name}`, min: least, max: most, step,
    "aria-describedby": `hint-${name}`,
    on: {
      input: () => {
        output.textContent = input.value;
        clearTimeout(resting);
        const patch = { [name]: input.value, page: null };
        resting = setTimeout(() => state.change(patch, { typing: true }), REST);
      },
    },
  });
  const node = el("div.slider", el("label", { for: input.id }, label), output, input,
    el("p.quiet", { id: `hint-${name}` }, hint));
  return {
    node,
    follow: () => {
      input.value = state.get(name) || String(settings?.[name] ?? least);
      output.textContent = input.value;
    },
  };
}
