// Users, who sign in by name and password: list, add, delete. For those who may manage them.

import { client } from "../session.js";
import { alertOf, confirming, el, fill } from "../dom.js";

const ROLES = { // to scopes
  reader: ["search"],
  editor: ["search", "write"],
  administrator: ["search", "write", "metrics", "users"],
};

/** The panel, of all users. */
export function usersPanel(users) {
  const list = el("ul.users");
  const status = el("div", { "aria-live": "polite" });
  const name = el("input", { id: "user-name", type: "text", required: true, maxlength: "64",
    pattern: "[A-Za-z0-9][A-Za-z0-9._\\-]*", title: "Letters from a to z, digits, '.', '_' and '-'", autocomplete: "off", autocapitalize: "none", spellcheck: "false" });
  const role = el("select", { id: "user-role" }, Object.keys(ROLES).map((each) => el("option", each)));

  function draw(all) {
    fill(list, all.map((user) => el("li", el("span", user.name), el("span.quiet", roleOf(user)),
      el("button.plain", { type: "button", on: { click: () => confirm(user) } },
        "Delete", el("span.unseen", ` ${user.name}`)))));
  }

  async function run(work, then) {
    try {
      then(await work());
    } catch (failure) {
      fill(status, alertOf(failure));
    }
  }

  function confirm({ name: whom }) {
    confirming(status, `Delete ${whom}`, () => run(
      () => client.request("DELETE", `/users/${encodeURIComponent(whom)}`),
      (answer) => (draw(answer.users), fill(status, el("p", `${whom} was deleted and is signed out.`))),
    ));
  }

  function add(event) {
    event.preventDefault();
    const body = { name: name.value, scopes: ROLES[role.value] };
    run(() => client.request("POST", "/users", { body }), async (added) => {
      name.value = "";
      fill(status, el("p", "Give ", el("em", added.name), " this password, which is not shown again: ",
        el("code", added.password)));
      await run(() => client.request("GET", "/users"), (answer) => draw(answer.users));
    });
  }

  draw(users);
  return el("section.sheet", { "aria-labelledby": "users-title" },
    el("h2", { id: "users-title" }, "Users"),
    el("p.quiet.small", "They sign in by name and password. Readers search, editors also change " +
      "indexes, administrators also manage users."),
    list,
    el("form.inline", { on: { submit: add } },
      el("label", { for: "user-name" }, "Name"), name,
      el("label", { for: "user-role" }, "Role"), role,
      el("button.primary", { type: "submit" }, "Add")), status);
}

function roleOf({ scopes, indexes }) {
  const role = Object.keys(ROLES).find((each) => String([...ROLES[each]].sort()) === String(scopes));
  return [role ?? scopes.join(", "), indexes && `of ${indexes.join(", ")}`].filter(Boolean).join(" ");
}
