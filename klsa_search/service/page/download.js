// Files of the service, fetched with the key, as a plain link could not.

import { client } from "./session.js";
import { el } from "./dom.js";

/** A link that saves what a path of the service answers as a file; `failed` is called with a failure. */
export function download(path, name, words, failed) {
  const fetched = async (event) => {
    event.preventDefault();
    try {
      const address = URL.createObjectURL(new Blob([await client.text("GET", path)]));
      el("a", { href: address, download: name }).click();
      setTimeout(() => URL.revokeObjectURL(address), 1000);
    } catch (failure) {
      failed(failure);
    }
  };
  return el("a", { href: path.slice(1), download: name, on: { click: fetched } }, words);
}
