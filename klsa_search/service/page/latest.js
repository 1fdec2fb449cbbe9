// Work of which only the latest counts.

/** Each new work aborts the one before.
 *
 *     const latest = new Latest();
 *     const answer = await latest.run((signal) => index.search(q, { signal }));
 *     if (answer === STALE) return;
 */
export class Latest {
  #sequence = 0;
  #controller = null;

  /** Promise what `work` gives, or STALE if something newer was begun meanwhile. */
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

/** What `Latest.run` promises instead of an answer that came too late. */
export const STALE = Symbol("stale");
