// The frame: boot, the choice of the index, the choice of the view.

import { ask, onKeyNeeded, segment } from "./api.js";
import { installBox } from "./box.js";
import { el, fill } from "./dom.js";
import { state } from "./state.js";

/* The views, one row each. `label` puts it into the navigation; the module has
 *   show(root, context)  fill the main element; a promise, or nothing
 *   leave()              end what is under way; optional
 *   update(changed)      the address changed, these parameters; without it, show is called again
 * context: {state, index, details(), say(text), title(text)}, see `contextOf`.
 * `box`: the search box changes what the view shows; elsewhere Enter leads to the search.
 * `writes`: the view is only in the navigation if the user may write.
 */
const VIEWS = {
  search: { label: "Search", box: true, load: () => import("./views/search.js") },
  map: { label: "Map", box: true, load: () => import("./views/map.js") },
  judge: { label: "Judge", box: true, writes: true, load: () => import("./views/judge.js") },
  admin: { label: "Admin", writes: true, load: () => import("./views/admin.js") },
  document: { load: () => import("./views/document.js") },
};

const root = document.getElementById("main");
const status = document.getElementById("status");
const chooser = document.getElementById("index");
const pageTitle = document.getElementById("title").textContent; // of the page, a setting of the service
let shown = null; // {name, index, module}
let indexes = [];
let mayWrite = false;
const known = new Map(); // details by name of index, promised

/** What a view is handed. */
function contextOf(index) {
  return {
    state,
    index,
    details: () => detailsOf(index),
    say: (text) => (status.textContent = text),
    title: (text) => (document.title = text ? `${text} · ${pageTitle}` : pageTitle),
  };
}

/** Promise the details of an index, requested once. */
function detailsOf(name) {
  if (!known.has(name)) {
    const asked = ask(`indexes/${segment(name)}`);
    asked.catch(() => known.delete(name));
    known.set(name, asked);
  }
  return known.get(name);
}

/** The index that is asked: that of the address, else the first that can be. */
function indexChosen() {
  return state.get("index") || (indexes.find((each) => each.ok) ?? indexes[0])?.name || "";
}

function drawNavigation() {
  const rows = Object.entries(VIEWS).filter(([each, view]) =>
    view.label && (!view.writes || mayWrite || state.view === each));
  const nav = document.getElementById("views");
  nav.hidden = rows.length < 2 || !indexChosen();
  const kept = { id: null, page: null };
  fill(
    nav,
    rows.map(([name, view]) =>
      el(
        "a",
        {
          ...state.anchor({ ...kept, view: name === "search" ? null : name }),
          "aria-current": state.view === name ? "page" : null,
        },
        view.label,
      ),
    ),
  );
}

function drawChooser() {
  const index = indexChosen();
  const names = indexes.map((each) => each.name);
  if (index && !names.includes(index)) names.push(index); // an alias, or a deleted index
  fill(chooser, names.map((name) => el("option", { value: name }, name)));
  chooser.value = index;
  chooser.parentElement.hidden = names.length === 0;
}

async function draw(changed = new Set()) {
  const name = state.view in VIEWS ? state.view : "search";
  const index = indexChosen();
  drawNavigation();
  drawChooser();
  document.getElementById("box").hidden = !index;
  if (!index) {
    showNothing();
    return;
  }
  if (shown?.name === name && shown.index === index && shown.module?.update) {
    await shown.module.update(changed);
    return;
  }
  shown?.module?.leave?.();
  const mine = { name, index, module: null };
  shown = mine;
  const module = await VIEWS[name].load();
  if (shown !== mine) return;
  mine.module = module;
  root.dataset.view = name;
  root.replaceChildren();
  await module.show(root, contextOf(index));
}

function showNothing() {
  fill(
    root,
    el(
      "section.notice",
      el("h1", "No index yet"),
      el("p", "There is nothing to search yet. Build an index on the machine of this service, " +
        "then reload this page:"),
      el("pre", "klsa-index build FILE-OR-FOLDER --name NAME"),
      mayWrite ? overHttp() : null,
    ),
  );
}

function overHttp() {
  const address = new URL("indexes", location.href.replace(/[?#].*/s, "")).href;
  const post = (url, body) =>
    `curl -X POST '${url}' -H 'Content-Type: application/json' -d '${JSON.stringify(body)}'\n`;
  return [
    el("p", "Or create an empty index over HTTP and add documents to it, with your API key if this " +
      "service has keys:"),
    el("pre", post(address, { name: "NAME" }),
      post(`${address}/NAME/documents`, [{ id: "1", title: "TITLE", text: "TEXT" }])),
    el("p", "See the ", el("a", { href: "docs" }, "HTTP API"), "."),
  ];
}

function showFailure(failure) {
  shown = null;
  const again = el("button.primary", { type: "button", on: { click: boot } }, "Try again");
  fill(root, el("section.notice", { role: "alert" }, el("h1", "Something went wrong"),
    el("p", failure.message), again));
}

function keyAsked(why) {
  const dialog = document.getElementById("key");
  const value = document.getElementById("key-value");
  document.getElementById("key-why").textContent = why;
  value.value = "";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", function closed() {
      const key = value.value.trim();
      if (!key || /[^\x21-\x7e]/.test(key)) return void dialog.showModal(); // no header can carry it
      dialog.removeEventListener("close", closed);
      resolve(key);
    });
  });
}

async function boot() {
  try {
    const listed = ask("indexes").then((answer) => {
      indexes = answer.indexes;
      mayWrite = answer.writable;
    });
    if (!state.get("index")) await listed; // where the address names one, the list need not be waited for
    await Promise.all([draw(), listed]);
    drawNavigation();
    drawChooser();
  } catch (failure) {
    showFailure(failure);
  }
}

onKeyNeeded(keyAsked);
installBox({ state, indexChosen, isLive: () => VIEWS[state.view]?.box ?? false });
chooser.addEventListener("change", () => {
  const kept = { q: state.get("q"), view: state.get("view") };
  const left = Object.fromEntries(state.entries().map(([name]) => [name, null]));
  state.change({ ...left, ...kept, index: chooser.value });
});
document.getElementById("brand").addEventListener("click", (event) => {
  const left = Object.fromEntries(state.entries().map(([name]) => [name, null]));
  state.follow(event, { ...left, index: state.get("index") });
  document.getElementById("q").focus();
});
addEventListener("unhandledrejection", (event) => {
  event.preventDefault();
  showFailure(event.reason);
});
state.subscribe((changed) => draw(changed).catch(showFailure));
boot();
