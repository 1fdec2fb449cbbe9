// Tools of research: closed for visitors, until a switch opens them. Only the switch is remembered.

import { SLIDERS } from "./query.js";

const KEPT = "klsa-tools";
const VIEWS = ["map", "judge", "analytics"];
const PARAMETERS = ["ranker", "positive", "negative", ...SLIDERS.map(({ name }) => name)];

/** Whether the tools are shown: they were opened, or the address uses one, as a link may. */
export function showsTools(state) {
  return localStorage.getItem(KEPT) === "open" || VIEWS.includes(state.view)
    || PARAMETERS.some((name) => state.get(name));
}

/** Open the tools, or close them, which resets what they had changed. */
export function switchTools(state) {
  if (!showsTools(state)) return void localStorage.setItem(KEPT, "open");
  localStorage.removeItem(KEPT);
  const reset = Object.fromEntries(PARAMETERS.map((name) => [name, null]));
  state.change({ ...reset, ...(VIEWS.includes(state.view) ? { view: null } : {}) });
}
