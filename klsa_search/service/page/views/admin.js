// Admin: statistics, adding and deleting documents, settings, refit. For keys that may write.

import { client, pathOf } from "../session.js";
import { adding } from "../admin/adding.js";
import { deleting } from "../admin/deleting.js";
import { drawFacts, drawSpectrum, factsOf } from "../admin/facts.js";
import { refitting } from "../admin/refit.js";
import { usersPanel } from "../admin/users.js";
import { settingsPanel } from "../admin/settings.js";
import { el, fill, notice } from "../dom.js";
import { isLocked, locked } from "../locked.js";

let leaving = [];

export async function show(root, context) {
  const { index, title } = context;
  const mine = (leaving = []);
  title("Admin");
  try {
    await client.request("GET", "/jobs", { query: { index } }); // needs scope write, so nothing else is requested before
  } catch (failure) {
    if (!["insufficient_scope", "writing_refused"].includes(failure.code)) throw failure;
    if (mine === leaving) {
      fill(root, isLocked(failure) ? locked(failure) : notice("Changes are not allowed", failure));
    }
    return;
  }
  const [details, spectrum, session] = await Promise.all([
    factsOf(index), client.request("GET", `${pathOf(index)}/spectrum`), client.request("GET", "/session"),
  ]);
  const users = session.scopes.includes("users") ? await client.request("GET", "/users") : null;
  if (mine === leaving) draw(root, index, { details, spectrum, users }, mine);
}

export function leave() {
  for (const each of leaving) each();
  leaving = [];
}

function draw(root, index, { details, spectrum, users }, mine) {
  const facts = el("section.sheet", { "aria-labelledby": "facts-title" });
  const spectral = el("section.sheet", { "aria-labelledby": "spectrum-title" });
  const place = el("div.place");
  let settings = null;

  const refresh = async () => drawFacts(facts, await factsOf(index));
  const renew = async () => {
    const [now, values] = await Promise.all([
      factsOf(index), client.request("GET", `${pathOf(index)}/spectrum`),
    ]);
    drawFacts(facts, now);
    drawSpectrum(spectral, values);
    drawSettings(now);
  };
  const refit = refitting(index, renew);
  const add = adding(index, refresh);
  mine.push(refit.leave, add.leave, () => settings.leave());

  function drawSettings(now) {
    settings?.leave();
    settings = settingsPanel(index, now.settings, refit.begin);
    fill(place, settings.node);
  }

  drawFacts(facts, details);
  drawSpectrum(spectral, spectrum);
  drawSettings(details);
  fill(root, el("h1.unseen", `Admin of ${index}`), el("div.admin",
    el("div.lane", facts, refit.node, add.node, deleting(index, refresh)),
    el("div.lane", spectral, place, users && usersPanel(users.users))));
  return refit.look();
}
