// The address is the state: `/?q=...&index=...&view=...` is a link to what is seen.

const REST = 1200; // ms without a change after which the next one is a step of its own to go back to

/** The parameters of the address, with those who want to know of changes. */
class State {
  #parameters = new URLSearchParams(location.search);
  #listeners = new Set();
  #settling = null;

  constructor() {
    addEventListener("popstate", () => {
      clearTimeout(this.#settling);
      this.#settling = null;
      const before = this.#parameters;
      this.#parameters = new URLSearchParams(location.search);
      this.#tell(before);
    });
  }

  /** One parameter, "" where there is none. */
  get(name) {
    return this.#parameters.get(name) ?? "";
  }

  /** All values of one. */
  all(name) {
    return this.#parameters.getAll(name);
  }

  /** [name, value] pairs of all parameters. */
  entries() {
    return [...this.#parameters];
  }

  /** The name of the view. */
  get view() {
    return this.get("view") || "search";
  }

  /** Where a change would lead: text for an href. */
  link(patch) {
    return `?${this.#with(patch)}`;
  }

  /** Attributes of a link that changes the state without a reload; `on` has further listeners. */
  anchor(patch, on = {}) {
    return { href: this.link(patch), on: { ...on, click: (event) => this.follow(event, patch) } };
  }

  /** Change the state as a click on a link asks, unless it opens another tab or window. */
  follow(event, patch) {
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.button) return;
    event.preventDefault();
    this.change(patch);
  }

  /** Change parameters: {name: value, list of values, or null to leave it out}.
   *
   * Changes that follow upon each other, as letters that are typed and sliders that are drawn, are
   * one step of the history where they are `typing`.
   */
  change(patch, { typing = false } = {}) {
    const before = this.#parameters;
    const after = this.#with(patch);
    if (String(after) === String(before)) return;
    this.#parameters = after;
    const address = String(after) ? `?${after}` : location.pathname;
    if (typing && this.#settling !== null) history.replaceState(null, "", address);
    else history.pushState(null, "", address);
    clearTimeout(this.#settling);
    this.#settling = typing ? setTimeout(() => (this.#settling = null), REST) : null;
    this.#tell(before);
  }

  /** Call a function of (changed names) at each change; returns what ends it. */
  subscribe(listener) {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #with(patch) {
    const after = new URLSearchParams(this.#parameters);
    for (const [name, value] of Object.entries(patch)) {
      after.delete(name);
      for (const each of [value].flat()) {
        if (each !== null && each !== undefined && each !== "") after.append(name, each);
      }
    }
    return after;
  }

  #tell(before) {
    const names = new Set([...before.keys(), ...this.#parameters.keys()]);
    const changed = new Set(
      [...names].filter((name) => before.getAll(name).join("\n") !== this.all(name).join("\n")),
    );
    for (const listener of [...this.#listeners]) listener(changed);
  }
}

export const state = new State();
