// Refit of an index, with progress.

import { ask, segment } from "../api.js";
import { alertOf, count, el, fill } from "../dom.js";

const OFTEN = 700; // ms between two looks
const PHASES = ["documents", "counts", "postings", "eigenvectors", "neighbours", "expansion", "files"];

/** The panel: {node, begin(settings), look(), leave()}. `done` is called when a refit has ended. */
export function refitting(index, done) {
  const place = `indexes/${segment(index)}`;
  const path = `${place}/refit`;
  const status = el("div", { "aria-live": "polite" });
  const button = el("button", { type: "button", on: { click: () => begin({}) } }, "Refit now");
  const node = el("section.sheet", { "aria-labelledby": "refit-title" },
    el("h2", { id: "refit-title" }, "Refit"),
    el("p.quiet.small", "Rebuilds the index from its documents, so that added documents are fully " +
      "included. Searches continue meanwhile."),
    status, el("div.buttons", button));
  let waiting = null;
  let left = false;

  async function begin(settings) {
    try {
      const begun = Object.keys(settings).length
        ? ask(place, { method: "PATCH", body: { settings } }) : ask(path, { body: {} });
      draw((await begun).refit, true);
      node.scrollIntoView({ block: "nearest" });
    } catch (failure) {
      tell(failure);
    }
  }

  async function look() {
    draw((await ask(path)).refit, waiting !== null);
  }

  function draw(refit, isFollowed) {
    clearTimeout(waiting);
    waiting = null;
    if (left) return;
    const runs = refit !== null && refit.seconds === null;
    const isElsewhere = refit === null && isFollowed; // another worker of the service has it
    button.disabled = runs || isElsewhere;
    if (runs || isElsewhere) {
      waiting = setTimeout(() => look().catch(tell), OFTEN);
      if (runs) fill(status, drawn(refit));
    } else if (refit !== null) {
      fill(status, ended(refit));
      if (isFollowed) done();
    }
  }

  function tell(failure) {
    fill(status, alertOf(failure));
  }

  function leave() {
    left = true;
    clearTimeout(waiting);
  }

  return { node, begin, look, leave };
}

function drawn({ phase, done, total }) {
  if (phase === null) return [el("progress", { "aria-label": "Refit" }), el("p.quiet", "Waiting …")];
  const step = Math.max(0, PHASES.indexOf(phase));
  const within = total ? Math.min(1, done / total) : 0;
  const amount = total ? ` ${count(done)} of ${count(total)}` : "";
  return [
    el("progress", { max: PHASES.length, value: step + within, "aria-label": "Refit" }),
    el("p.quiet", `${step + 1} of ${PHASES.length}: ${phase}${amount}`),
  ];
}

function ended({ begun, seconds, error }) {
  const when = new Date(begun).toLocaleString();
  return error
    ? el("p.trouble", { role: "alert" }, `The refit failed: ${error}`)
    : el("p", `Refitted in ${seconds.toLocaleString("en")} s (started ${when}).`);
}
