// The frame: boot, the choice of the index, the choice of the view.

import { installBox } from "./box.js";
import { alertOf, el, fill, notice } from "./dom.js";
import { KlsaError } from "./klsa.js";
import { filterOf } from "./query.js";
import { client, onKeyNeeded, signIn, signOut } from "./session.js";
import { state } from "./state.js";
import { showsTools, switchTools } from "./tools.js";
import { loadWords, phrase, t } from "./words.js";

/* The views, one row each. `label` puts it into the navigation; the module has
 *   show(root, context)  fill the main element; a promise, or nothing
 *   leave()              end what is under way; optional
 *   update(changed)      the address changed, these parameters; without it, show is called again
 * context: {state, index, tools, named, details(), say(text), title(text)}, see `contextOf`.
 * `box`: the search box changes what the view shows; elsewhere Enter leads to the search.
 * `writes`: the view is only in the navigation if the user may write; `tool`: if tools are shown.
 */
const VIEWS = {
  search: { label: "Search", box: true, load: () => import("./views/search.js") },
  map: { label: "Map", box: true, tool: true, load: () => import("./views/map.js") },
  judge: { label: "Judge", box: true, tool: true, writes: true, load: () => import("./views/judge.js") },
  analytics: { label: "Analytics", writes: true, tool: true, load: () => import("./views/analytics.js") },
  admin: { label: "Admin", writes: true, load: () => import("./views/admin.js") },
  document: { load: () => import("./views/document.js") },
};

const root = document.getElementById("main");
const status = document.getElementById("status");
const chooser = document.getElementById("index");
const pageTitle = document.getElementById("title").textContent; // a setting of the service
let shown = null; // {name, index, tools, module}
let indexes = [];
let isListed = false; // whether `indexes` is what the service answered
let mayWrite = false;
let heading = ""; // of the view
let session = { signed_in: false };
const FRONT = document.documentElement.dataset.index ?? ""; // a setting of the service: the index to open
const LAST_INDEX = "klsa-index"; // key of what the browser remembers
const SIGNED_OUT = "signed_out"; // code of the failure after a cancelled sign-in
const known = new Map(); // details by name of index, promised

/** What a view is handed: `tools` says whether the tools are shown, `named` is "in INDEX" or "". */
function contextOf(index, tools) {
  return {
    state,
    index,
    tools,
    named: () => (titleOf(index) || indexes.length > 1 || tools ? t("in {index}", { index: titleOf(index) || index }) : ""),
    details: () => detailsOf(index),
    say: (text) => (status.textContent = text),
    title: (text) => ((heading = text), drawTitle()),
  };
}

function drawTitle() {
  document.getElementById("title").textContent = brand();
  document.title = heading ? `${heading} · ${brand()}` : brand();
}

function titleOf(index) {
  return indexes.find(({ name }) => name === index)?.title ?? "";
}

/** The title of the only index, if it has one, else that of the service. */
function brand() {
  return (indexes.length === 1 && indexes[0].title) || pageTitle;
}

/** Promise the details of an index, requested once. */
function detailsOf(name) {
  if (!known.has(name)) {
    const asked = client.index(name).info();
    asked.catch(() => known.delete(name));
    known.set(name, asked);
  }
  return known.get(name);
}

/** Promise filter and match of the searches of an index, as in the address or the settings. */
async function restriction(name) {
  const { fields, settings } = await detailsOf(name);
  const filter = filterOf(state, fields ?? {});
  return { match: state.get("match") || settings?.match || "any", ...(filter === null ? {} : { filter }) };
}

/** The index that is asked: that of the address, else the last one chosen, else that which the
 * operator chose, else the first that can be. */
function indexChosen() {
  const named = (name) => indexes.find((each) => each.name === name);
  const last = isVisitor() ? null : named(localStorage.getItem(LAST_INDEX));
  return state.get("index")
    || (last ?? named(FRONT) ?? indexes.find((each) => each.ok) ?? indexes[0])?.name || FRONT;
}

/** Whether the page is of one index for this user, who may not write. */
function isVisitor() {
  return Boolean(FRONT) && !mayWrite;
}

/** The name of the view of the address, if there is one that this user gets. */
function viewChosen() {
  const view = VIEWS[state.view];
  return view && !(view.tool && isVisitor()) ? state.view : "search";
}

function drawNavigation() {
  const tools = !isVisitor() && showsTools(state);
  const rows = Object.entries(VIEWS).filter(([each, view]) => view.label &&
    (viewChosen() === each || ((!view.writes || mayWrite) && (!view.tool || tools))));
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
          "aria-current": viewChosen() === name ? "page" : null,
        },
        t(view.label),
      ),
    ),
  );
}

function drawChooser() {
  const index = indexChosen();
  const names = indexes.map((each) => each.name);
  if (index && !names.includes(index)) names.push(index); // an alias, or a deleted index
  fill(chooser, names.map((name) => el("option", { value: name }, titleOf(name) || name)));
  chooser.value = index;
  chooser.parentElement.hidden = names.length < 2 || isVisitor();
}

function drawFoot() {
  const leave = () => signOut().then(() => location.assign(location.pathname), showFailure);
  const open = () => {
    switchTools(state);
    draw().catch(showFailure);
  };
  const isFocused = document.activeElement?.id === "tools";
  fill(document.getElementById("foot"),
    session.signed_in ? [
      el("span.quiet", phrase("Signed in as {name}", { name: el("em", session.key) })),
      session.is_user ? el("button.plain", { type: "button", on: { click: passwordAsked } }, t("Change password")) : null,
      el("button.plain", { type: "button", on: { click: leave } }, t("Sign out")),
    ] : null,
    isVisitor() ? null : el("button.plain", { type: "button", id: "tools", "aria-pressed": String(showsTools(state)),
      title: t("Ranking, explanations, feedback and map"), on: { click: open } }, t("Tools")));
  if (isFocused) document.getElementById("tools")?.focus(); // kept when redrawing
}

async function draw(changed = new Set()) {
  const name = viewChosen();
  const index = indexChosen();
  if (!index && !isListed) return; // what is typed meanwhile is searched by `boot`
  const tools = !isVisitor() && showsTools(state);
  drawNavigation();
  drawChooser();
  drawFoot();
  document.getElementById("box").hidden = !index;
  if (!index) {
    showNothing();
    return;
  }
  const same = shown?.name === name && shown.index === index && shown.tools === tools;
  if (same && shown.module?.update) {
    await shown.module.update(changed);
    return;
  }
  shown?.module?.leave?.();
  const mine = { name, index, tools, module: null };
  shown = mine;
  const module = await VIEWS[name].load();
  if (shown !== mine) return;
  mine.module = module;
  root.dataset.view = name;
  root.replaceChildren();
  await module.show(root, contextOf(index, tools));
}

function showNothing() {
  fill(
    root,
    el(
      "section.notice",
      el("h1", t("No index yet")),
      el("p", t("There is nothing to search yet. Build an index on the machine of this service, then reload this page:")),
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
    el("p", "Or create an empty index over HTTP and add the documents of a file to it, with your API key if this " +
      "service has keys:"),
    el("pre", post(address, { name: "NAME" }),
      `curl -T FILE '${address}/NAME/files/'\n`),
    el("p", "See the ", el("a", { href: "docs" }, "HTTP API"), "."),
  ];
}

function showFailure(failure) {
  shown = null;
  const [head, way, act] = {
    [SIGNED_OUT]: ["You are signed out", "Sign in", boot],
    index_not_found: ["There is no such index", "Search another index", () => location.assign(location.pathname)],
  }[failure.code] ?? ["Something went wrong", "Try again", boot];
  const again = el("button.primary", { type: "button", on: { click: act } }, t(way));
  fill(root, notice(t(head), failure, again));
}

/** Show a dialog until what it enters signs in, as `send` does; rejects when the user cancels. */
function entered(id, send) {
  const dialog = document.getElementById(id);
  const form = dialog.querySelector("form");
  const reply = dialog.querySelector(".reply");
  const before = document.activeElement;
  form.reset();
  fill(reply);
  dialog.showModal();
  return new Promise((resolve, reject) => {
    form.onsubmit = async (event) => {
      event.preventDefault();
      try {
        session = await send((name) => document.getElementById(`${id}-${name}`).value);
      } catch (failure) {
        return fill(reply, alertOf(failure));
      }
      dialog.close();
      if (before === document.body) document.getElementById("q").focus(); // else `before` has it again
      return resolve();
    };
    dialog.querySelector(".cancel").onclick = () => dialog.close();
    dialog.onclose = () => {
      form.reset(); // what was entered is kept nowhere
      reject(new KlsaError(t("Sign in to search."), { code: SIGNED_OUT, status: 401 }));
    };
  });
}

/** Ask for name and password, or for a key. */
function keyAsked() {
  return entered("key", (value) => signIn(value("name").trim(), value("value")));
}

/** Ask for the present password and another. */
function passwordAsked() {
  document.getElementById("password-name").defaultValue = session.key; // which browsers save with it
  return entered("password", (value) => signIn(session.key, value("old"), value("new")))
    .then(() => (status.textContent = t("The password was changed.")), () => null); // null: cancelled
}

async function boot() {
  try {
    await translated;
    const listed = Promise.all([client.request("GET", "/indexes"), client.request("GET", "/session")]).then(([answer, current]) => {
      indexes = answer.indexes;
      isListed = true;
      mayWrite = answer.writable;
      session = current;
    });
    if (!state.get("index") || FRONT) await listed; // else the list need not be waited for
    await Promise.all([draw(), listed]);
    drawNavigation();
    drawChooser();
    drawFoot();
    drawTitle();
    offer();
  } catch (failure) {
    showFailure(failure);
  }
}

const translated = loadWords();
onKeyNeeded(keyAsked);
const offer = installBox({ state, indexChosen, isLive: () => VIEWS[state.view]?.box ?? false, restriction });
chooser.addEventListener("change", () => {
  localStorage.setItem(LAST_INDEX, chooser.value);
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
