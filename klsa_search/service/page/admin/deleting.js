// Deleting documents by their ids.

import { client } from "../session.js";
import { alertOf, confirming, el, fill } from "../dom.js";
import { manyInEnglish as many } from "../words.js";

/** The panel; `changed` is called when documents were deleted. */
export function deleting(index, changed) {
  const field = el("textarea", { id: "ids", rows: "3", spellcheck: "false" });
  const status = el("div", { "aria-live": "polite" });
  const ids = () => field.value.split("\n").map((each) => each.trim()).filter(Boolean);

  function confirm(event) {
    event.preventDefault();
    const wanted = [...new Set(ids())];
    if (!wanted.length) {
      fill(status, el("p.quiet", "Enter document IDs, one per line."));
      return;
    }
    confirming(status, `Permanently delete ${many(wanted.length, "document")}`, () => drop(wanted));
  }

  async function drop(wanted) {
    fill(status, el("p.quiet", "Deleting …"));
    try {
      const { deleted, unknown } = await client.index(index).delete(wanted);
      fill(status, el("p", `${many(deleted, "document")} deleted`,
        unknown.length ? `; ${many(unknown.length, "ID")} not found: ${unknown.join(", ")}.` : "."));
      field.value = "";
      changed();
    } catch (failure) {
      fill(status, alertOf(failure));
    }
  }

  return el("section.sheet", { "aria-labelledby": "deleting-title" },
    el("h2", { id: "deleting-title" }, "Delete documents"),
    el("form.stack", { on: { submit: confirm } },
      el("label", { for: "ids" }, "Document IDs, one per line"), field,
      el("div.buttons", el("button", { type: "submit" }, "Delete …"))), status);
}
