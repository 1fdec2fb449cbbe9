// People, who sign in by name and password: list, add, remove. For those who may manage them.

import { client } from "../session.js";
import { alertOf, confirming, el, fill } from "../dom.js";

const ROLES = { // to scopes
  reader: ["search"],
  editor: ["search", "write"],
  administrator: ["search", "write", "metrics", "people"],
};

/** The panel, of all people. */
export function peoplePanel(people) {
  const list = el("ul.people");
  const status = el("div", { "aria-live": "polite" });
  const name = el("input", { id: "person-name", type: "text", required: true, maxlength: "64",
    pattern: "[A-Za-z0-9][A-Za-z0-9._\\-]*", autocomplete: "off", autocapitalize: "none", spellcheck: "false" });
  const role = el("select", { id: "person-role" }, Object.keys(ROLES).map((each) => el("option", each)));

  function draw(all) {
    fill(list, all.map((person) => el("li", el("span", person.name), el("span.quiet", roleOf(person)),
      el("button.plain", { type: "button", on: { click: () => confirm(person) } },
        "Remove", el("span.unseen", ` ${person.name}`)))));
  }

  async function run(work, then) {
    try {
      then(await work());
    } catch (failure) {
      fill(status, alertOf(failure));
    }
  }

  function confirm({ name: whom }) {
    confirming(status, `Remove ${whom}`, () => run(
      () => client.request("DELETE", `/people/${encodeURIComponent(whom)}`),
      (answer) => (draw(answer.people), fill(status, el("p", `${whom} was removed and is signed out.`))),
    ));
  }

  function add(event) {
    event.preventDefault();
    const body = { name: name.value, scopes: ROLES[role.value] };
    run(() => client.request("POST", "/people", { body }), async (added) => {
      name.value = "";
      fill(status, el("p", "Give ", el("em", added.name), " this password, which is not shown again: ",
        el("code", added.password)));
      await run(() => client.request("GET", "/people"), (answer) => draw(answer.people));
    });
  }

  draw(people);
  return el("section.sheet", { "aria-labelledby": "people-title" },
    el("h2", { id: "people-title" }, "People"),
    el("p.quiet.small", "They sign in by name and password. Readers search, editors also change " +
      "indexes, administrators also manage people."),
    list,
    el("form.inline", { on: { submit: add } },
      el("label", { for: "person-name" }, "Name"), name,
      el("label", { for: "person-role" }, "Role"), role,
      el("button.primary", { type: "submit" }, "Add")), status);
}

function roleOf({ scopes, indexes }) {
  const role = Object.keys(ROLES).find((each) => String([...ROLES[each]].sort()) === String(scopes));
  return [role ?? scopes.join(", "), indexes && `of ${indexes.join(", ")}`].filter(Boolean).join(" ");
}
