// Work of which only the latest counts.

/** New work aborts the work before it: `await latest.run((signal) => ...)`. */
export class Latest {
  #sequence = 0;
  #controller = null;

  /** Return what `work` returns, or STALE if newer work has begun. */
  async run(work) {
    this.cancel();
    const mine = this.#sequence;
    this.#controller = new AbortController();
    try {
      const result = await work(this.#controller.signal);
      return mine === this.#sequence ? result : STALE;
    } catch (failure) {
      if (mine !== this.#sequence || failure.name === "AbortError") return STALE;
      throw failure;
    }
  }

  /** Abort the work under way. */
  cancel() {
    this.#sequence += 1;
    this.#controller?.abort();
  }
}

/** What `Latest.run` returns instead of an outdated answer. */
export const STALE = Symbol("stale");
