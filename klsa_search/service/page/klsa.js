// @ts-self-types="./klsa.d.ts"
/** Client of a klsa-search service, for browsers and Node.js 18 or newer, without dependencies.
 *
 *     const client = new Client(address, { key: "klsa_..." });
 *     const shop = await client.createIndex("shop", { fields: ["price:number"] });
 *     await shop.add([{ id: "1", title: "Red bicycle", price: 300 }]);
 *     const { total, hits } = await shop.search("bicycle", { filter: "price < 500" });
 *
 * Options and answers have the names of the HTTP API. Each method takes `signal`, of an
 * AbortController, and rejects with KlsaError, or with the reason of the signal.
 */

const BATCH = 1_000; // documents of a request, at most
const BATCH_LENGTH = 2 ** 22; // characters of JSON after which such a request is sent
const MAX_PAUSE = 30_000; // ms between two attempts, at most
const BUSY = new Set([429, 503]); // statuses after which the same request may succeed

/** An error that the service reported, or that it gave no usable answer. */
export class KlsaError extends Error {
  constructor(message, { code, field = null, added = 0, status = 0, cause }) {
    super(message, { cause });
    this.name = "KlsaError";
    this.code = code; // docs/reference/error-codes.md; `service_failed` without a usable answer
    this.field = field; // the parameter at fault, or null
    this.added = added; // documents of a file that were added before
    this.status = status; // of the answer; 0 without one
  }
}

/** A service. */
export class Client {
  #url;
  #headers;
  #retries;
  #fetch;

  /** TypeError for an invalid address or key.
   * @param {string | URL} url address of the service; in a page also relative to it, as "/"
   * @param {{key?: string, retries?: number, fetch?: typeof fetch}} [options] API key; how often a
   *   request is repeated after 429, 503 or a failed connection, when `Retry-After` allows it: what
   *   would give another result if it was processed twice is repeated only if the service refused it
   *   for now, and a Blob never; what sends requests instead of `fetch`
   */
  constructor(url, { key, retries = 3, fetch = (...sent) => globalThis.fetch(...sent) } = {}) {
    this.#url = new URL(url, globalThis.location?.href).href.replace(/\/+$/, "");
    this.#headers = new Headers(key === undefined ? {} : { Authorization: `Bearer ${key}` });
    this.#retries = retries;
    this.#fetch = fetch;
  }

  /** Return an index or alias by its name; nothing is sent. @param {string} name */
  index(name) {
    return new Index(this, name);
  }

  /** List all indexes that the key may see. */
  async indexes({ signal } = {}) {
    return (await this.request("GET", "/indexes", { signal })).indexes;
  }

  /** Create an empty index. @param {string} name @param {object} [settings] */
  async createIndex(name, settings = {}, { signal } = {}) {
    await this.request("POST", "/indexes", { body: { name, settings }, signal });
    return this.index(name);
  }

  /** Delete an index with all its documents. @param {string} name */
  async deleteIndex(name, { signal } = {}) {
    await this.request("DELETE", `/indexes/${part(name)}`, { signal });
  }

  /** Run several searches, of any indexes, in one request: all succeed or none does.
   * @param {object[]} queries parameters of each: `index`, `q` and the options of a search
   */
  async multiSearch(queries, { signal } = {}) {
    const options = { body: { queries }, idempotent: true, signal };
    return (await this.request("POST", "/multi-search", options)).results;
  }

  /** Run several searches in one request, and merge their hits by rank.
   * @param {object[]} queries parameters of each: `index`, `q`, `weight` and the options of a search
   * @param {{limit?: number, offset?: number}} [options] the page of the merged hits
   */
  federatedSearch(queries, { limit = 20, offset = 0, signal } = {}) {
    const body = { queries, federation: { limit, offset } };
    return this.request("POST", "/multi-search", { body, idempotent: true, signal });
  }

  /** Send any request of the HTTP API, and return the JSON of its answer.
   * @param {string} method @param {string} path such as "/indexes"
   * @param {{query?: object, body?: unknown, contentType?: string, idempotent?: boolean,
   *   signal?: AbortSignal}} [options] parameters of the URL, without those that are null or
   *   undefined; the body: JSON, as value or as text, or text or a Blob of another content type;
   *   whether it gives the same result if it is processed twice, by default for GET and PUT
   */
  request(method, path, options) {
    return this.#send(method, path, contentOf, options);
  }

  /** Send a request whose answer is text, such as CSV, and return it. Arguments are those of `request`.
   * @param {string} method @param {string} path @param {object} [options]
   */
  text(method, path, options) {
    const read = (answer) => (answer.ok ? answer.text() : contentOf(answer));
    return this.#send(method, path, read, options);
  }

  async #send(method, path, read, options = {}) {
    const { query = {}, body, contentType = "application/json", signal } = options;
    const { idempotent = method === "GET" || method === "PUT" } = options;
    const given = Object.entries(query).filter(([, value]) => (value ?? null) !== null);
    const address = this.#url + path + (given.length ? `?${new URLSearchParams(given)}` : "");
    const headers = new Headers(this.#headers);
    if (body !== undefined) headers.set("Content-Type", contentType);
    const isWritten = body === undefined || typeof body === "string" || body instanceof Blob;
    const content = isWritten ? body : JSON.stringify(body);
    const retries = body instanceof Blob ? 0 : this.#retries; // a file may have gigabytes
    for (let attempt = 0; ; attempt += 1) {
      let answer, failure;
      try {
        answer = await this.#fetch(address, { method, headers, body: content, signal });
        const refused = BUSY.has(answer.status) && (idempotent || answer.headers.has("Retry-After"));
        if (!refused || attempt >= retries) return await read(answer);
      } catch (error) {
        if (signal?.aborted || error instanceof KlsaError) throw error;
        failure = error;
      }
      if (failure && (!idempotent || attempt >= retries)) {
        const hint = "check that klsa-serve runs there and, in a browser, allows this origin";
        const message = `no answer from \`${this.#url}\`: ${failure.message}; ${hint}`;
        throw new KlsaError(message, { code: "service_failed", cause: failure });
      }
      await answer?.body?.cancel();
      const seconds = Number(answer?.headers.get("Retry-After") ?? Number.NaN);
      const pause = Number.isNaN(seconds) ? 100 * 2 ** attempt : 1_000 * seconds;
      await wait(Math.min(pause, MAX_PAUSE), signal);
    }
  }
}

/** An index of a service, by `Client.index`. */
export class Index {
  #client;
  #path;

  /** @param {Client} client @param {string} name */
  constructor(client, name) {
    this.name = name;
    this.#client = client;
    this.#path = `/indexes/${part(name)}`;
  }

  /** Return its number of documents, fields and settings. */
  info({ signal } = {}) {
    return this.#client.request("GET", this.#path, { signal });
  }

  /** Rank the documents by a query. @param {string} q @param {object} [options] */
  search(q, { signal, ...options } = {}) {
    const body = { q, ...options };
    return this.#client.request("POST", `${this.#path}/search`, { body, idempotent: true, signal });
  }

  /** Record that the visitor opened a hit; nothing is sent unless the service records analytics.
   * @param {object} answer of `search` @param {object} hit of it
   * @param {{type?: string, previous?: object}} [options] "conversion" if the hit was what the
   *   visitor wanted, such as a purchase; answer of the search that the visitor replaced by this one
   */
  async click(answer, hit, { type = "click", previous, signal } = {}) {
    if (!answer.search_id) return;
    const { search_id } = answer;
    const body = { type, search_id, id: hit.id, position: hit.rank, previous: previous?.search_id };
    await this.#client.request("POST", `${this.#path}/events`, { body, signal });
  }

  /** Return the hits of a search as CSV or JSON lines, a text of up to 10,000 rows.
   * @param {string} q @param {object} [options] format, columns, limit and options of `search`
   */
  export(q, { signal, ...options } = {}) {
    return this.#client.text("POST", `${this.#path}/export`, { body: { q, ...options }, idempotent: true, signal });
  }

  /** Complete typed text. @param {string} q */
  async suggest(q, { signal, ...options } = {}) {
    const path = `${this.#path}/suggest`;
    return (await this.#client.request("GET", path, { query: { q, ...options }, signal })).suggestions;
  }

  /** Find the values of a metadata field that contain typed text.
   * @param {string} field @param {string} [facet_query] @param {object} [options] q, filter and k
   */
  facetSearch(field, facet_query = "", { signal, ...options } = {}) {
    const body = { field, facet_query, ...options };
    const path = `${this.#path}/facet-search`;
    return this.#client.request("POST", path, { body, idempotent: true, signal });
  }

  /** Return figures by day, frequent and failing queries, and clicked documents.
   * @param {{days?: number, k?: number}} [options] the period, and the length of each list
   */
  analytics({ signal, ...query } = {}) {
    return this.#client.request("GET", `${this.#path}/analytics`, { query, signal });
  }

  /** Return a list of the analytics as CSV.
   * @param {string} [list] days, queries, no_results, low_quality or documents
   * @param {{days?: number, k?: number}} [options]
   */
  analyticsCsv(list = "queries", { signal, ...options } = {}) {
    const path = `${this.#path}/analytics.csv`;
    return this.#client.text("GET", path, { query: { list, ...options }, signal });
  }

  /** Return synonyms for words that no or few documents contain; nothing is set.
   * @param {{days?: number, k?: number}} [options] the period, and the number of words
   */
  async synonymProposals({ signal, ...query } = {}) {
    const path = `${this.#path}/analytics/synonyms`;
    return (await this.#client.request("GET", path, { query, signal })).proposals;
  }

  /** Return the synonyms of the index by word. */
  async synonyms({ signal } = {}) {
    return (await this.#client.request("GET", `${this.#path}/synonyms`, { signal })).synonyms;
  }

  /** Replace all synonyms. @param {object | string[]} synonyms by word, or rules */
  async setSynonyms(synonyms, { signal } = {}) {
    await this.#client.request("PUT", `${this.#path}/synonyms`, { body: { synonyms }, signal });
  }

  /** Add synonyms to those that words have. @param {object | string[]} synonyms by word, or rules */
  async addSynonyms(synonyms, { signal } = {}) {
    const options = { body: { synonyms }, idempotent: true, signal };
    await this.#client.request("PATCH", `${this.#path}/synonyms`, options);
  }

  /** Return the rules of searches, in order. */
  async rules({ signal } = {}) {
    return (await this.#client.request("GET", `${this.#path}/rules`, { signal })).rules;
  }

  /** Replace all rules; return warnings. @param {object[]} rules see docs/guides/rules.md */
  async setRules(rules, { signal } = {}) {
    const path = `${this.#path}/rules`;
    return (await this.#client.request("PUT", path, { body: { rules }, signal })).warnings;
  }

  /** Replace the rule of the same ID, or add it as the last; return warnings. @param {object} rule */
  async putRule(rule, { signal } = {}) {
    const path = `${this.#path}/rules/${part(rule.id)}`;
    return (await this.#client.request("PUT", path, { body: rule, signal })).warnings;
  }

  /** Delete a rule. @param {string} id */
  async deleteRule(id, { signal } = {}) {
    await this.#client.request("DELETE", `${this.#path}/rules/${part(id)}`, { signal });
  }

  /** Return a document, a passage by its ID, or a part of a document.
   * @param {string} id
   * @param {{span?: [number, number], page?: number, vectors?: boolean}} [options] characters, or
   *   a page from 1; whether `metadata` contains the vectors of the document
   */
  document(id, { span, page, vectors, signal } = {}) {
    const query = { index: this.name, span: span?.join("-"), page, vectors };
    return this.#client.request("GET", `/documents/${part(id)}`, { query, signal });
  }

  /** Add or replace documents, or one; return how many. Batches of 1,000 are stored whole or not.
   * @param {Iterable<object> | AsyncIterable<object> | object} documents
   */
  async add(documents, { signal } = {}) {
    let [batch, length, added] = [[], 0, 0];
    const send = async () => {
      const body = `[${batch.join(",")}]`;
      [batch, length] = [[], 0];
      const options = { body, idempotent: true, signal };
      added += (await this.#client.request("POST", `${this.#path}/documents`, options)).added;
    };
    if (typeof documents === "string") throw new TypeError("documents is a text; give a list");
    const isList = Symbol.iterator in documents || Symbol.asyncIterator in documents;
    for await (const document of isList ? documents : [documents]) {
      const text = JSON.stringify(document);
      batch.push(text);
      length += text.length;
      if (batch.length === BATCH || length > BATCH_LENGTH) await send();
    }
    if (batch.length) await send();
    return added;
  }

  /** Add the documents of a file, in any format that `klsa-index add` reads; return what was read.
   * @param {File | Blob} file
   * @param {{name?: string, id?: string, title?: string, text?: string[], format?: string,
   *   encoding?: string, sections?: boolean, preview?: number}} [options] the name of a Blob;
   *   columns; the number of documents to return, while none is added
   */
  addFile(file, { name = file.name, signal, ...query } = {}) {
    const path = `${this.#path}/files/${part(name)}`;
    const options = { query, body: file, contentType: "application/octet-stream", signal };
    return this.#client.request("PUT", path, options);
  }

  /** Merge changes into a document; null removes a field. @param {string} id @param {object} changes */
  patch(id, changes, { signal } = {}) {
    const path = `${this.#path}/documents/${part(id)}`;
    return this.#client.request("PATCH", path, { body: changes, idempotent: true, signal });
  }

  /** Merge changes into at most 1,000 documents, all or none. @param {Iterable<object>} changes with ids */
  patchMany(changes, { signal } = {}) {
    const options = { body: [...changes], idempotent: true, signal };
    return this.#client.request("PATCH", `${this.#path}/documents`, options);
  }

  /** Delete documents by ID; `unknown` of the answer lists those that no document had.
   * @param {Iterable<string>} ids */
  async delete(ids, { signal } = {}) {
    if (typeof ids === "string") throw new TypeError("ids is a text; give a list of IDs");
    const path = `${this.#path}/documents/delete-batch`;
    return this.#client.request("POST", path, { body: [...ids], signal });
  }
}

/** Return a name or an ID as one part of a path; TypeError for `.` and `..`, even encoded: browsers
 * remove them from an address, so the request would be another one. */
function part(text) {
  if (text === "." || text === "..") {
    throw new TypeError(`\`${text}\` cannot be sent in an address, which it would change; rename it`);
  }
  return encodeURIComponent(text);
}

async function contentOf(answer) {
  const { status } = answer;
  const content = await answer.json().catch((error) => {
    if (error.name === "SyntaxError") return null;
    throw error;
  });
  if (answer.ok && content !== null) return content;
  if (content?.error) throw new KlsaError(content.error.message, { ...content.error, status });
  const message = `the answer has status ${status} and is not from klsa-serve; check the address`;
  throw new KlsaError(message, { code: "service_failed", status });
}

function wait(ms, signal) {
  signal?.throwIfAborted();
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal?.addEventListener("abort", stop, { once: true });
  });
}
