/** Types of klsa.js, a client of a klsa-search service. Names are those of the HTTP API. */

export class KlsaError extends Error {
  constructor(
    message: string,
    facts: {
      code: string;
      field?: string | null;
      added?: number;
      status?: number;
      cause?: unknown;
    },
  );
  /** Stable code, as in docs/reference/error-codes.md; `service_failed` without a usable answer. */
  readonly code: string;
  /** The parameter at fault, or null. */
  readonly field: string | null;
  /** Documents of a file that were added before it failed. */
  readonly added: number;
  /** HTTP status; 0 without an answer. */
  readonly status: number;
}

export interface ClientOptions {
  /** API key. */
  key?: string;
  /** Times that a request is repeated after 429, 503 or a failed connection; 3 by default. What would
   * give another result if it was processed twice is repeated only if it was refused for now, a Blob never. */
  retries?: number;
  /** Sends requests, instead of the global `fetch`. */
  fetch?: typeof fetch;
}

export interface RequestOptions {
  signal?: AbortSignal;
}

export class Client {
  /** TypeError for an invalid address or key. */
  constructor(url: string | URL, options?: ClientOptions);
  index(name: string): Index;
  indexes(options?: RequestOptions): Promise<IndexSummary[]>;
  createIndex(name: string, settings?: IndexSettings, options?: RequestOptions): Promise<Index>;
  deleteIndex(name: string, options?: RequestOptions): Promise<void>;
  multiSearch(
    queries: readonly ({ index?: string; q?: string } & SearchOptions)[],
    options?: RequestOptions,
  ): Promise<SearchAnswer[]>;
  /** Merge the hits of several searches by rank. */
  federatedSearch(
    queries: readonly ({ index?: string; q?: string; weight?: number } & SearchOptions)[],
    options?: { limit?: number; offset?: number } & RequestOptions,
  ): Promise<FederatedAnswer>;
  request<T = unknown>(
    method: string,
    path: string,
    options?: {
      query?: Record<string, unknown>;
      body?: unknown;
      contentType?: string;
      /** Whether it gives the same result if it is processed twice; by default for GET and PUT. */
      idempotent?: boolean;
    } & RequestOptions,
  ): Promise<T>;
  /** The same for an answer that is text, such as CSV. */
  text(
    method: string,
    path: string,
    options?: {
      query?: Record<string, unknown>;
      body?: unknown;
      contentType?: string;
      /** Whether it gives the same result if it is processed twice; by default for GET and PUT. */
      idempotent?: boolean;
    } & RequestOptions,
  ): Promise<string>;
}

export class Index {
  constructor(client: Client, name: string);
  readonly name: string;
  info(options?: RequestOptions): Promise<IndexDetails>;
  search(q: string, options?: SearchOptions & RequestOptions): Promise<SearchAnswer>;
  click(
    answer: SearchAnswer,
    hit: Hit,
    options?: { type?: "click" | "conversion"; previous?: SearchAnswer } & RequestOptions,
  ): Promise<void>;
  export(
    q: string,
    options?: SearchOptions & { format?: "csv" | "jsonl"; columns?: string[]; limit?: number } & RequestOptions,
  ): Promise<string>;
  suggest(
    q: string, options?: { k?: number; filter?: string; match?: "any" | "most" | "all" } & RequestOptions,
  ): Promise<Suggestion[]>;
  facetSearch(
    field: string,
    facet_query?: string,
    options?: { q?: string; filter?: string | Record<string, unknown>; k?: number } & RequestOptions,
  ): Promise<FacetSearchAnswer>;
  analytics(options?: { days?: number; k?: number } & RequestOptions): Promise<Analytics>;
  analyticsCsv(
    list?: "days" | "queries" | "no_results" | "low_quality" | "documents",
    options?: { days?: number; k?: number } & RequestOptions,
  ): Promise<string>;
  synonymProposals(
    options?: { days?: number; k?: number } & RequestOptions,
  ): Promise<SynonymProposal[]>;
  synonyms(options?: RequestOptions): Promise<Record<string, string[]>>;
  setSynonyms(
    synonyms: Record<string, readonly string[]> | readonly string[],
    options?: RequestOptions,
  ): Promise<void>;
  addSynonyms(
    synonyms: Record<string, readonly string[]> | readonly string[],
    options?: RequestOptions,
  ): Promise<void>;
  rules(options?: RequestOptions): Promise<Rule[]>;
  setRules(rules: readonly Rule[], options?: RequestOptions): Promise<string[]>;
  putRule(rule: Rule, options?: RequestOptions): Promise<string[]>;
  deleteRule(id: string, options?: RequestOptions): Promise<void>;
  document(
    id: string,
    options?: { span?: [number, number]; page?: number; vectors?: boolean } & RequestOptions,
  ): Promise<StoredDocument>;
  add(
    documents: Iterable<NewDocument> | AsyncIterable<NewDocument> | NewDocument,
    options?: RequestOptions,
  ): Promise<number>;
  addFile(
    file: Blob & { readonly name?: string },
    options?: {
      name?: string;
      id?: string;
      title?: string;
      text?: string | readonly string[];
      format?: string;
      encoding?: string;
      sections?: boolean;
      preview?: number;
    } & RequestOptions,
  ): Promise<FileAnswer>;
  patch(id: string, changes: Record<string, unknown>, options?: RequestOptions): Promise<WriteAnswer>;
  patchMany(
    changes: Iterable<{ id: string } & Record<string, unknown>>,
    options?: RequestOptions,
  ): Promise<WriteAnswer>;
  delete(ids: Iterable<string>, options?: RequestOptions): Promise<WriteAnswer>;
}

/** Settings of an index: see docs/reference/index-settings.md. */
export type IndexSettings = Record<string, unknown>;

/** `title` and `text` are searched by default; every other name is metadata. */
export interface NewDocument {
  id: string | number;
  title?: string;
  text?: string;
  [field: string]: unknown;
}

/** Options of a search: see docs/reference/http-api.md. */
export interface SearchOptions {
  k?: number;
  limit?: number;
  offset?: number;
  page?: number;
  hits_per_page?: number;
  filter?: string | Record<string, unknown>;
  sort?: string[];
  facets?: string[];
  disjunctive_facets?: string[];
  max_facet_values?: number;
  distinct?: string;
  min_score?: number;
  positive?: string[];
  negative?: string[];
  fields?: string[];
  highlight?: boolean;
  prefix?: "last";
  rules?: boolean;
  snippet_length?: number;
  quality?: boolean;
  group?: "document" | "passage";
  max_tokens?: number;
  rerank?: number;
  explain?: boolean;
  /** Vector of the query by the name of its space; `{}` keeps an embedder from making one. */
  vector?: Record<string, readonly number[]>;
  partial?: boolean;
  dimensions?: number;
  /** "typing": one of the searches of a search box while the user types. */
  analytics?: boolean | "typing";
  operators?: boolean;
  spelling?: "auto" | "suggest" | "off";
  synonyms?: boolean;
  match?: "any" | "most" | "all";
  passage_weight?: number;
  ranker?: string;
  alpha?: number;
  hold_back?: number;
  z?: number;
  sharpness?: number;
  spectral?: string;
  gamma?: number;
  head?: number;
  unit_length?: boolean;
  coverage?: number;
  latent?: number;
  lexical_sharpness?: number;
  boosts?: string | Record<string, number>;
  exact?: boolean;
}

export interface SearchAnswer {
  query: string;
  interpretation: Interpretation;
  index: string;
  generation: string;
  ranker: string;
  parameters: Record<string, boolean | number | string>;
  total: number;
  offset: number;
  /** If analytics recorded the search. */
  search_id?: string;
  page?: number;
  hits_per_page?: number;
  total_pages?: number;
  time_ms: number;
  facets?: Record<string, Facet>;
  quality?: number;
  good_match?: boolean;
  /** Size of all texts, with `max_tokens`. */
  tokens?: number;
  /** Whether passages that were found did not fit, with `max_tokens`. */
  truncated?: boolean;
  partitions?: { total: number; ok: number; failed: number };
  /** IDs of the rules that applied, if any did. */
  rules?: string[];
  /** What failed and is missing, such as a reranker, if anything. */
  warnings?: string[];
  hits: Hit[];
}

/** The merged hits of several searches; `results` are their answers without hits. */
export interface FederatedAnswer {
  hits: (Hit & {
    federation: { index: string; query: number; rank: number; weighted_score: number };
  })[];
  limit: number;
  offset: number;
  total: number;
  results: SearchAnswer[];
}

/** Figures of some searches. */
export interface SearchFigures {
  searches: number;
  /** Searches that found nothing. */
  no_results: number;
  /** Searches without a good match, among those that requested quality. */
  low_quality: number;
  corrected: number;
  expanded: number;
  /** Searches with a click. */
  clicked: number;
  clicks: number;
  conversions: number;
  /** `clicked` as a share of searches. */
  click_through: number | null;
  mean_position: number | null;
  mean_ms: number | null;
}

/** Analytics of an index: see docs/guides/analytics.md. */
export interface Analytics {
  index: string;
  /** First day (UTC). */
  since: string;
  /** Searches of a query from which it is listed. */
  min_searches: number;
  totals: SearchFigures;
  days: ({ day: string } & SearchFigures)[];
  queries: ({ query: string } & SearchFigures)[];
  no_results: ({ query: string } & SearchFigures)[];
  low_quality: ({ query: string } & SearchFigures)[];
  documents: { id: string; clicks: number; conversions: number }[];
}

/** A searched word that no or few documents contain, with synonyms for it, the best first. */
export interface SynonymProposal {
  word: string;
  searches: number;
  /** Number of documents that contain the word. */
  documents: number;
  queries: string[];
  candidates: SynonymCandidate[];
}

/** A proposed synonym: `count` of `total` searches that replaced the word alone, replaced it by this. */
export interface SynonymCandidate {
  synonym: string;
  count: number;
  total: number;
  /** Queries with it that replaced one with the word. */
  queries: string[];
}

/** A rule of searches: see docs/guides/rules.md. */
export interface Rule {
  id: string;
  when?: {
    query_is?: string;
    query_contains?: string;
    filter?: string;
    from?: string;
    until?: string;
  };
  then: {
    pin?: { id: string; position: number }[];
    hide?: string[];
    boost?: { filter: string; factor: number }[];
  };
}

export interface Hit {
  rank: number;
  id: string;
  score: number;
  title?: string;
  snippet?: string;
  text?: string;
  metadata?: Record<string, unknown>;
  /** Place of the best passage, if documents are divided into passages; `span` in characters. */
  document_id?: string;
  span?: [number, number];
  page?: number;
  heading?: string;
  more_passages?: number;
  quality?: number;
  explanation?: Record<string, unknown>;
  highlight?: Record<string, Highlight>;
  /** Score by the reranker, and rank before, if it scored the hit. */
  rerank?: { score: number; rank: number };
}

export interface Highlight {
  text: string;
  /** Start and end of each word, in code points. */
  marks: [number, number][];
  /** Escaped, with each word in <mark>. */
  html: string;
}

export interface Facet {
  type: "keyword" | "number" | "date";
  values: { value: string | number; count: number }[];
  other_count: number;
  missing: number;
  min: number | string | null;
  max: number | string | null;
}

export interface FacetSearchAnswer extends Facet {
  index: string;
  generation: string;
  field: string;
  facet_query: string;
  time_ms: number;
}

export interface Interpretation {
  words: string[];
  unknown: string[];
  stop_words: string[];
  left_out: string[];
  phrases: string[];
  required: string[];
  excluded: string[];
  fields: string[];
  boolean: string | null;
  relaxed: Record<string, string>;
  prefixes: Record<string, string[]>;
  variants: Record<string, string>;
  synonyms: Record<string, string[]>;
  corrections: Record<string, string>;
  did_you_mean: string | null;
  suggested_filters: Record<string, Record<string, number>>;
  id: string | null;
}

export interface Suggestion {
  kind: "word" | "phrase" | "title" | "id" | "correction";
  text: string;
  query: string;
  documents: number;
}

export interface StoredDocument {
  id: string;
  index: string;
  generation: string;
  title: string;
  text: string;
  metadata: Record<string, unknown>;
  /** These are set for a passage, span or page. */
  document_id?: string;
  span?: [number, number];
  page?: number;
  heading?: string;
}

export interface WriteAnswer {
  index: string;
  generation: string;
  added: number;
  changed: number;
  deleted: number;
  /** IDs to delete that no document had. */
  unknown: string[];
  log_position: number;
  warnings: { id: string; field: string; message: string }[];
  time_ms: number;
}

export interface FileAnswer {
  index: string;
  generation: string;
  format: string;
  added: number;
  skipped: { count: number; first: string[]; kinds: Record<string, number> };
  unread: { count: number; kinds: Record<string, number>; first: Record<string, string> };
  numbered: string[];
  notes: string[];
  columns: string[];
  used: { id?: string; title?: string; text?: string[] };
  documents: { id: string; title: string; text: string; metadata: Record<string, unknown> }[];
  fault: string | null;
  log_position: number;
  warnings: { count: number; first: string[]; kinds: Record<string, number> };
  time_ms: number;
}

export interface IndexSummary {
  name: string;
  /** Its setting `page_title`; blank if it has none. */
  title: string;
  ok: boolean;
  error: string | null;
  generation: string | null;
  documents: number | null;
  drift: Record<string, number> | null;
}

export interface IndexDetails extends IndexSummary {
  source: string | null;
  created: string | null;
  fingerprint: string | null;
  settings: Record<string, unknown> | null;
  /** Language of most of the text, and its share of it; null if the settings named a language. */
  detected_languages: { language: string; share: number }[];
  counts: Record<string, unknown> | null;
  /** Number of passages; null if documents are not divided into passages. */
  passages: number | null;
  fields: Record<string, Record<string, unknown>> | null;
  /** Spaces of vectors, with the numbers of vectors and of documents that have any. */
  vectors:
    | { name: string; dimension: number; vectors: number; documents: number; fingerprint: string | null }[]
    | null;
  bytes: number | null;
  spectra: Record<string, unknown> | null;
  /** ID of its waiting or running job: GET /jobs/{id}. */
  job: number | null;
}
