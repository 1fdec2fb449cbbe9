// What is shown if the key does not allow what is needed.

import { askToSignIn } from "./session.js";
import { el, notice } from "./dom.js";
import { t } from "./words.js";

/** Whether another key would help. */
export function isLocked(failure) {
  return failure.code === "insufficient_scope";
}

/** A notice of such a failure, with a button to sign in with another key or name. */
export function locked(failure) {
  const again = () => askToSignIn().then(() => location.reload(), () => null); // null: cancelled
  return notice(t("Not allowed"), failure,
    el("button.primary", { type: "button", on: { click: again } }, t("Sign in as another user")));
}
