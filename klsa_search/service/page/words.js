// The words of the page in the language of its reader. English texts are the keys of words/*.json.

export const LANGUAGES = ["de", "es", "fr", "ja", "pt", "zh"]; // that have a file; English needs none

let words = {};
let locale = "en";

/** Promise the words of the first language of these that there is, and translate the frame. */
export async function loadWords(wanted = navigator.languages) {
  const chosen = wanted.map((each) => each.slice(0, 2).toLowerCase())
    .find((each) => each === "en" || LANGUAGES.includes(each)) ?? "en";
  if (chosen === "en") return;
  const answer = await fetch(`page/words/${chosen}.json`);
  if (!answer.ok) return; // the page works in English
  use(await answer.json(), chosen);
  document.documentElement.lang = chosen;
  for (const node of document.querySelectorAll("[data-words]")) node.textContent = t(node.textContent);
  for (const name of ["aria-label", "placeholder"]) {
    for (const node of document.querySelectorAll(`[${name}]`)) node.setAttribute(name, t(node.getAttribute(name)));
  }
}

/** Write from now on in these words. */
export function use(translated, language) {
  [words, locale] = [translated, language];
}

/** A text in the language of the reader: t("{name} of {title}", {name, title}). */
export function t(text, values = {}) {
  return phrase(text, values).join("");
}

/** The same with elements among its values, as parts for `el`. */
export function phrase(text, values) {
  return (words[text] ?? text).split(/\{(\w+)\}/).map((part, at) => (at % 2 ? values[part] : part));
}

/** 1234567 as the reader writes it. */
export function count(number) {
  return number.toLocaleString(locale);
}

/** 1234.5 as the reader writes it, without signs between thousands: it may be a year or a code. */
export function plainNumber(number) {
  return number.toLocaleString(locale, { useGrouping: false, maximumFractionDigits: 20 });
}

/** The name of a month as the reader writes it, from 1. */
export function monthName(month) {
  return new Date(Date.UTC(2000, month - 1)).toLocaleString(locale, { month: "short", timeZone: "UTC" });
}

/** "1 document", "2 documents": the nouns are translated with their number. */
export function many(number, one, more = `${one}s`) {
  return number === 1 ? t(`1 ${one}`) : t(`{count} ${more}`, { count: count(number) });
}

/** The same in English, in sentences that are not translated. */
export function manyInEnglish(number, one, more = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : more}`;
}
