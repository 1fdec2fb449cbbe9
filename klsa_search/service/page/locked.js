// What is shown where the key at hand is not for what is asked.

import { useKey } from "./api.js";
import { el } from "./dom.js";

/** Whether another key would help. */
export function isLocked(failure) {
  return failure.code === "insufficient_scope";
}

/** A notice of such a failure, with a place for another key; `again` is called once it is given. */
export function locked(failure, again) {
  const field = el("input", {
    id: "other-key", type: "password", autocomplete: "off", required: true, pattern: "[!-~]+",
  });
  const send = (event) => {
    event.preventDefault();
    useKey(field.value.trim());
    again();
  };
  return el("section.notice.locked", { role: "alert" },
    el("h1", "Another API key is needed"),
    el("p", failure.message),
    el("p.quiet", "The operator of the service creates one with ",
      el("code", "klsa-keys add NAME --scope search --scope write"), "."),
    el("form.inline", { on: { submit: send } },
      el("label", { for: "other-key" }, "Key"), field,
      el("button.primary", { type: "submit" }, "Continue")));
}
