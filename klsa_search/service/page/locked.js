// What is shown if the key does not allow what is needed.

import { askToSignIn } from "./session.js";
import { el, reasonOf } from "./dom.js";
import { t } from "./words.js";

/** Whether another key would help. */
export function isLocked(failure) {
  return failure.code === "insufficient_scope";
}

/** A notice of such a failure, with a button to sign in with another key or name. */
export function locked(failure) {
  const again = () => askToSignIn().then(() => location.reload(), () => null); // null: cancelled
  return el("section.notice.locked", { role: "alert" },
    el("h1", t("Not allowed")),
    el("p", reasonOf(failure)),
    el("button.primary", { type: "button", on: { click: again } }, t("Sign in as another user")));
}
