// Requests to the service: JSON in, JSON out, with its error messages.

// Proves that the page sent the request: the service ignores its cookie without it.
const PAGE = { "X-Requested-With": "klsa-search" };

/** A failure: `message` is a sentence for people, `code` a word for programs, `field` a parameter. */
export class ServiceError extends Error {
  constructor(status, { code, message, field }) {
    super(message);
    Object.assign(this, { name: "ServiceError", status, code, field });
  }
}

let asking = null; // one dialog at a time, however many requests need it
let askForKey = null;

/** Say how to sign in: a function that promises to do so. */
export function onKeyNeeded(ask) {
  askForKey = ask;
}

/** Sign in with an API key, which is only sent here: the service remembers it by a cookie. */
export async function signIn(key) {
  const headers = { ...PAGE, Accept: "application/json", "X-API-Key": key };
  return contentOf(await sent("session", { method: "POST", headers }), "json");
}

/** Sign out; nothing to do if the session has ended already. */
export function signOut() {
  return sent("session", { method: "DELETE", headers: PAGE });
}

/** Ask the service.
 *
 * path    relative to the page, as "search" or `indexes/${segment(name)}`
 * query   parameters; those that are null, undefined or "" are left out
 * body    sent as JSON, by POST unless `method` says otherwise
 * signal  of an AbortController
 * as      "text" for an answer that is no JSON
 * Promises what was answered; ServiceError, or AbortError.
 */
export async function ask(path, { query = {}, body, method, signal, headers = {}, as = "json" } = {}) {
  const given = Object.entries(query).filter(([, value]) => (value ?? "") !== "");
  const parameters = new URLSearchParams(given);
  const address = given.length ? `${path}?${parameters}` : path;
  for (let attempt = 0; ; attempt += 1) {
    const answer = await sent(address, {
      method: method ?? (body === undefined ? "GET" : "POST"),
      body: body === undefined || typeof body === "string" ? body : JSON.stringify(body),
      headers: {
        ...PAGE,
        Accept: as === "text" ? "*/*" : "application/json",
        ...(body === undefined ? {} : { "Content-Type": "application/json" }),
        ...headers,
      },
      signal,
    });
    // A cookie that is still missing after sign-in is one that the browser does not keep.
    if (answer.status !== 401 || askForKey === null || attempt > 0) return contentOf(answer, as);
    asking ??= askForKey().finally(() => (asking = null));
    await asking;
    signal?.throwIfAborted();
  }
}

async function sent(address, options) {
  try {
    return await fetch(address, { ...options, cache: "no-store" });
  } catch (failure) {
    if (failure.name === "AbortError") throw failure;
    throw new ServiceError(0, {
      code: "unreachable",
      message: "The service does not respond. Check that it is running, then try again.",
      field: null,
    });
  }
}

async function contentOf(answer, as) {
  if (answer.ok && as === "text") return answer.text();
  const kind = answer.headers.get("content-type") ?? "";
  const content = kind.includes("json") ? await answer.json() : null;
  if (answer.ok && content !== null) return content;
  throw new ServiceError(
    answer.status,
    content?.error ?? {
      code: "unreadable",
      message: `This is not a klsa-search service (status ${answer.status}).`,
      field: null,
    },
  );
}

/** One part of a path: an id or a name, whatever it holds. */
export function segment(text) {
  return encodeURIComponent(text);
}

/** Work of which only the latest counts: each new one aborts the one before.
 *
 *     const latest = new Latest();
 *     const answer = await latest.run((signal) => ask("search", { signal }));
 *     if (answer === STALE) return;
 */
export class Latest {
  #sequence = 0;
  #controller = null;

  /** Promise what `work` gives, or STALE where something newer was begun meanwhile. */
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

  /** Forget what is under way. */
  cancel() {
    this.#sequence += 1;
    this.#controller?.abort();
  }
}

/** What `Latest.run` promises in the place of an answer that came too late. */
export const STALE = Symbol("stale");
