// Refit of an index, with progress.

import { client, pathOf } from "../session.js";
import { alertOf, el, fill } from "../dom.js";
import { count } from "../words.js";

const OFTEN = 700; // ms between two looks
const PHASES = ["documents", "counts", "postings", "eigenvectors", "neighbours", "expansion", "files"];

/** The panel: {node, begin(settings), look(), leave()}. `done` is called when a refit has ended. */
export function refitting(index, done) {
  const path = pathOf(index);
  const status = el("div", { "aria-live": "polite" });
  const button = el("button", { type: "button", on: { click: () => begin({}) } }, "Refit now");
  const cancel = el("button", { type: "button", hidden: true, on: { click: () => end() } }, "Cancel");
  const node = el("section.sheet", { "aria-labelledby": "refit-title" },
    el("h2", { id: "refit-title" }, "Refit"),
    el("p.quiet.small", "Rebuilds the index from its documents, so that added documents are fully " +
      "included. Searches continue meanwhile."),
    status, el("div.buttons", button, cancel));
  let waiting = null;
  let job = null;
  let left = false;

  async function begin(settings) {
    try {
      const begun = Object.keys(settings).length
        ? (await client.request("PATCH", path, { body: { settings } })).job
        : await client.request("POST", `${path}/refit`, { body: {} });
      if (begun === null) {
        fill(status, el("p", "The settings are in effect."));
        done();
      } else draw(begun, true);
      node.scrollIntoView({ block: "nearest" });
    } catch (failure) {
      tell(failure);
    }
  }

  async function end() {
    try {
      draw(await client.request("DELETE", `/jobs/${job.id}`), true);
    } catch (failure) {
      tell(failure);
    }
  }

  async function look() {
    const { jobs } = await client.request("GET", "/jobs", { query: { index } });
    draw(jobs.find(({ kind }) => kind === "refit") ?? null, waiting !== null);
  }

  function draw(newest, isFollowed) {
    clearTimeout(waiting);
    waiting = null;
    job = newest;
    if (left || job === null) return;
    const isOpen = ["waiting", "running"].includes(job.state);
    button.disabled = isOpen;
    cancel.hidden = !isOpen;
    if (isOpen) {
      waiting = setTimeout(() => look().catch(tell), OFTEN);
      fill(status, drawn(job));
    } else {
      fill(status, ended(job));
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
  const step = PHASES.indexOf(phase);
  const within = total ? Math.min(1, done / total) : 0;
  const amount = total ? ` ${count(done)} of ${count(total)}` : "";
  if (step < 0) { // of another pass, such as over passages
    return [el("progress", { value: within, "aria-label": "Refit" }), el("p.quiet", `${phase}${amount}`)];
  }
  return [
    el("progress", { max: PHASES.length, value: step + within, "aria-label": "Refit" }),
    el("p.quiet", `${step + 1} of ${PHASES.length}: ${phase}${amount}`),
  ];
}

function ended({ started, state, seconds, error }) {
  const when = new Date(started).toLocaleString();
  if (state === "cancelled") return el("p", "The refit was cancelled; the index is unchanged.");
  return error
    ? el("p.trouble", { role: "alert" }, `The refit failed: ${error}`)
    : el("p", `Refitted in ${seconds.toLocaleString("en")} s (started ${when}).`);
}
