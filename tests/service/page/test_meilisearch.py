"""A shop of instantsearch.js and @meilisearch/instant-meilisearch, in Chromium.

KLSA_NODE_MODULES names a folder with these packages, meilisearch and esbuild: npm install.
"""

import csv
import os
import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT

from .conftest import api, watched
from .writable_service import writable

pytestmark = pytest.mark.long

SHOP = """
import { instantMeiliSearch } from "@meilisearch/instant-meilisearch";
import instantsearch from "instantsearch.js";
import { hits, pagination, refinementList, searchBox, sortBy } from "instantsearch.js/es/widgets";
import { Meilisearch } from "meilisearch";

const host = `${location.origin}/compat/meilisearch`;
window.fill = async (rows) => {
  const index = new Meilisearch({ host }).index("products");
  await index.addDocuments(rows).waitTask({ timeout: 300_000 });
  await index.updateSettings({
    filterableAttributes: ["brand", "price"], sortableAttributes: ["price"],
  }).waitTask({ timeout: 300_000 });
  return (await index.getStats()).numberOfDocuments;
};
window.change = async () => {
  const index = new Meilisearch({ host }).index("products");
  const [jacket] = (await index.search("rain jacket", { limit: 1 })).hits;
  await index.updateDocuments([{ id: jacket.id, price: 1 }]).waitTask();
  const changed = await index.getDocument(jacket.id);
  await index.deleteDocument(jacket.id).waitTask();
  const gone = await index.getDocument(jacket.id).catch((error) => error.cause.code);
  return { changed, jacket, gone };
};
window.start = () => {
  document.body.replaceChildren();
  for (const id of ["box", "brands", "hits", "order", "pages"]) {
    document.body.append(Object.assign(document.createElement("div"), { id }));
  }
  const { searchClient } = instantMeiliSearch(host, "", { finitePagination: true });
  const search = instantsearch({ indexName: "products", searchClient });
  search.addWidgets([
    searchBox({ container: "#box" }),
    refinementList({ container: "#brands", attribute: "brand" }),
    hits({
      container: "#hits",
      templates: {
        item: (hit, { html, components }) => html`<article>
          <h2>${components.Highlight({ hit, attribute: "title" })}</h2>
          <b>${hit.price}</b> <i>${hit.brand}</i></article>`,
      },
    }),
    sortBy({
      container: "#order",
      items: [
        { label: "Relevance", value: "products" },
        { label: "Price", value: "products:price:asc" },
      ],
    }),
    pagination({ container: "#pages" }),
  ]);
  search.start();
};
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    modules = os.environ.get("KLSA_NODE_MODULES")
    if modules is None:
        pytest.skip("KLSA_NODE_MODULES does not name a folder with instantsearch.js")
    folder = tmp_path_factory.mktemp("shop")
    (folder / "node_modules").symlink_to(modules)
    (folder / "shop.js").write_text(SHOP)
    bundle = [Path(modules) / ".bin" / "esbuild", "shop.js", "--bundle", "--outfile=out.js"]
    done = subprocess.run(bundle, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return (folder / "out.js").read_text(encoding="utf-8")


@pytest.fixture
def page(browser, script, tmp_path):
    (tmp_path / "indexes").mkdir()
    with writable(tmp_path / "indexes") as url, watched(browser, url, expected=["404"]) as page:
        page.goto(f"{url}/health/live")
        page.add_script_tag(content=script)
        yield page


def test_a_shop(page):
    with (ROOT / "examples" / "products.csv").open(encoding="utf-8", newline="") as file:
        rows = [
            {"id": row["sku"], "title": row["name"], "text": row["description"]}
            | {"price": float(row["price"]), "brand": row["brand"]}
            for row in csv.DictReader(file)
        ]
    assert page.evaluate("fill", rows) == len(rows)
    page.evaluate("start()")
    hits = page.locator("#hits article")
    api.expect(hits).to_have_count(20)  # a blank query finds all products
    page.locator("#pages").get_by_text("5", exact=True).click()
    api.expect(hits).to_have_count(len(rows) - 80)

    page.locator("#box input").press_sequentially("rain jack")
    api.expect(page.locator("#hits mark").first).to_have_text("Rain", ignore_case=True)
    page.locator("#brands").get_by_text("Corvo").click()
    api.expect(page.locator("#brands [class*=selected] [class*=count]")).to_be_visible()
    api.expect(page.locator("#hits i").first).to_have_text("Corvo")
    count = int(page.locator("#brands [class*=selected] [class*=count]").inner_text())
    api.expect(hits).to_have_count(min(count, 20))
    assert set(page.locator("#hits i").all_inner_texts()) == {"Corvo"}
    page.locator("#order select").select_option("products:price:asc")
    page.wait_for_function(
        """() => {
          const prices = [...document.querySelectorAll("#hits b")].map((each) => +each.textContent);
          return prices.length > 1 && prices.every((price, n) => n === 0 || prices[n - 1] <= price);
        }"""
    )

    walked = page.evaluate("change()")
    assert walked["changed"] == {**walked["jacket"], "price": 1}
    assert walked["gone"] == "document_not_found"
