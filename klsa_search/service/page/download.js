// Files of the service, fetched with the key, as a plain link could not.

import { ask } from "./api.js";
import { el } from "./dom.js";

/** A link that saves what a path answers as a file; `failed` is called with a failure. */
export function download(href, name, words, failed) {
  const fetched = async (event) => {
    event.preventDefault();
    try {
      const address = URL.createObjectURL(new Blob([await ask(href, { as: "text" })]));
      el("a", { href: address, download: name }).click();
      setTimeout(() => URL.revokeObjectURL(address), 1000);
    } catch (failure) {
      failed(failure);
    }
  };
  return el("a", { href, download: name, on: { click: fetched } }, words);
}
