// On the page of search results: asks the klsa-serve that the site was built for, if it was.
const { service } = document.currentScript.dataset;

function linked(hit) {
  const item = document.createElement("li");
  const link = document.createElement("a");
  link.href = hit.id; // where the section stands in the site
  link.textContent = hit.title;
  const snippet = document.createElement("p");
  snippet.className = "context";
  snippet.innerHTML = hit.highlight.snippet.html; // escaped by the service, words in <mark>
  item.append(link, snippet);
  return item;
}

async function ask(results) {
  const query = new URLSearchParams(location.search).get("q");
  if (!query) return;
  const summary = document.createElement("p");
  const list = document.createElement("ul");
  list.className = "search";
  results.before(summary, list);
  try {
    const asked = new URLSearchParams({ q: query, index: "docs", k: 20, highlight: true });
    const answer = await fetch(`${service}/search?${asked}`);
    if (!answer.ok) throw new Error(`${answer.status} ${answer.statusText}`);
    const { hits } = await answer.json();
    summary.textContent = hits.length ? "Found by klsa-search:" : "klsa-search finds nothing.";
    list.replaceChildren(...hits.map(linked));
    results.hidden = true;
  } catch (error) {
    summary.textContent = `${service} does not answer (${error.message}): found by words alone.`;
  }
}

if (service) {
  document.addEventListener("DOMContentLoaded", () => {
    const results = document.getElementById("search-results");
    if (results) ask(results);
  });
}
