// What is shown if the key does not allow what is needed.

import { signIn } from "./session.js";
import { alertOf, el, fill, reasonOf } from "./dom.js";
import { t } from "./words.js";

/** Whether another key would help. */
export function isLocked(failure) {
  return failure.code === "insufficient_scope";
}

/** A notice of such a failure, with a field for another key. */
export function locked(failure) {
  const field = el("input", {
    id: "other-key", type: "password", autocomplete: "off", required: true, pattern: "[!-~]+",
  });
  const trouble = el("div");
  const send = async (event) => {
    event.preventDefault();
    try {
      await signIn(field.value);
    } catch (refused) {
      return fill(trouble, alertOf(refused));
    }
    return location.reload();
  };
  return el("section.notice.locked", { role: "alert" },
    el("h1", t("Another API key is needed")),
    el("p", reasonOf(failure)),
    el("form.inline", { on: { submit: send } },
      el("label", { for: "other-key" }, t("Key")), field,
      el("button.primary", { type: "submit" }, t("Sign in"))), trouble);
}
