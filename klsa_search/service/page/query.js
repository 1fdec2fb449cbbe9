// From the state of the page to what the service is asked.

export const HITS = 10; // on a page
const LAST = 10_000; // last hit that the service returns

/** Prefixes of parameters of the address that filter by a field: chosen values, and bounds. */
export const CHOSEN = "is.";
export const FROM = "from.";
export const TO = "to.";

/** Prefix of parameters that are set for fields of which documents must have all chosen values. */
export const EVERY = "every.";

/** Whether documents must have all chosen values of a field, instead of any. */
export function takesEvery(state, name) {
  return Boolean(state.get(EVERY + name));
}

/** Ranking: "klsa", "bm25", or "compare" for both side by side. */
export function rankerOf(state) {
  const given = state.get("ranker");
  return ["bm25", "compare"].includes(given) ? given : "klsa";
}

/** The settings of the ranking, and how they may be moved. */
export const SETTINGS = [
  { name: "alpha", label: "Related words", least: 0, most: 1, step: 0.05,
    hint: "alpha: 0 ranks by the typed words only" },
  { name: "hold_back", label: "Reduce related words for complete matches", least: 0, most: 1, step: 0.05 },
  { name: "z", label: "Seeds", least: 1, most: 100, step: 1,
    hint: "z: how many of the first results by words to find similar documents of" },
  { name: "sharpness", label: "Focus", least: 1, most: 20, step: 0.5,
    hint: "sharpness: the higher, the more the very first of these count" },
  { name: "coverage", label: "Coverage by neighbours", least: 0, most: 1, step: 0.05 },
  { name: "latent", label: "Topic", least: 0, most: 1, step: 0.05 },
  { name: "lexical_sharpness", label: "Sharpness of words", least: 1, most: 20, step: 0.5 },
];

/** Those that the reader of a search may move. */
export const SLIDERS = SETTINGS.filter(({ hint }) => hint);

/** The page that is looked at, from 1. */
export function pageOf(state) {
  return Math.max(1, Math.min(Math.floor(Number(state.get("page"))) || 1, LAST / HITS));
}

/** How many pages there are to go to. */
export function pagesOf(total) {
  return Math.min(Math.ceil(total / HITS), LAST / HITS);
}

/** The names of all parameters that filter. */
export function filtering(state) {
  const names = state.entries().map(([name]) => name);
  return [...new Set(names)].filter(
    (name) => name === "filter" || [CHOSEN, EVERY, FROM, TO].some((each) => name.startsWith(each)),
  );
}

/** Whether there is anything to ask for. */
export function isAsked(state) {
  return Boolean(state.get("q").trim() || state.get("sort") || filtering(state).length
    || state.all("positive").length);
}

/** The filter in words of the service, or null. */
export function filterOf(state, fields) {
  const conditions = [];
  for (const [name, field] of Object.entries(fields)) {
    const write = (value) => (field.type === "number" ? String(Number(value)) : quoted(value));
    const values = state.all(CHOSEN + name);
    const groups = takesEvery(state, name) ? values.map((value) => [value]) : [values];
    for (const group of groups.filter(({ length }) => length)) {
      conditions.push(`${quoted(name)} IN [${group.map(write).join(", ")}]`);
    }
    for (const [prefix, sign] of [[FROM, ">="], [TO, "<="]]) {
      const bound = state.get(prefix + name);
      if (bound) conditions.push(`${quoted(name)} ${sign} ${write(bound)}`);
    }
  }
  const typed = state.get("filter");
  if (!conditions.length) return typed || null; // so that an error names what was typed
  return [...conditions, ...(typed ? [`(${typed})`] : [])].join(" AND ");
}

/** The filter that only one document passes. */
export function idFilter(id) {
  return `id = ${quoted(id)}`;
}

function quoted(text) {
  return `"${text.replace(/[\\"]/g, "\\$&")}"`;
}

/** How to rank: what of the settings is not as the index was built. */
export function rankingOf(state, ranker = rankerOf(state)) {
  if (ranker === "bm25") return { ranker };
  const moved = SLIDERS.filter(({ name }) => state.get(name) !== "");
  return {
    ranker: "klsa",
    ...Object.fromEntries(moved.map(({ name }) => [name, Number(state.get(name))])),
  };
}

/** The body of a search: what is asked and how it is ranked. */
export function searchOf(state, fields, ranker = rankerOf(state)) {
  const filter = filterOf(state, fields);
  return {
    q: state.get("q"),
    ...rankingOf(state, ranker),
    ...(filter === null ? {} : { filter }),
    ...(state.get("sort") ? { sort: [state.get("sort")] } : {}),
    ...(state.get("match") ? { match: state.get("match") } : {}),
    ...(state.get("spelling") ? { spelling: state.get("spelling") } : {}),
    ...(state.get("operators") ? { operators: true } : {}),
    ...(state.all("positive").length ? { positive: state.all("positive") } : {}),
    ...(state.all("negative").length ? { negative: state.all("negative") } : {}),
  };
}
