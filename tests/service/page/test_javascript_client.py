"""The programs of docs/guides/javascript-programs.md, in Chromium and in Node.js."""

import csv
import json
import re
import shutil

import pytest
from playwright import sync_api as api

from tests.conftest import ROOT
from tests.support.processes import run

from .conftest import watched
from .writable_service import writable

pytestmark = pytest.mark.browser

GUIDE = ROOT / "docs" / "guides" / "javascript-programs.md"
*WALK, SEARCH_BOX = re.findall(r"```js\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
FILES = ROOT / "klsa_search" / "service" / "page"
IMPORT = 'import { Client, KlsaError } from "./klsa.js";\n'
PROGRAM = """async ({ path, address, rows }) => {
  const { Client, KlsaError } = await import(path);
  %s
  const left = await client.deleteIndex("shop").then(() => client.indexes());
  const made = { added, corvo, jacket, deleted, count, job, left };
  return { ...made, found, brands, colours, suggestions, problem };
}"""


def program():
    """The guide as a function; its address becomes a parameter."""
    source = "".join(WALK)
    assert source.startswith(IMPORT)
    return PROGRAM % source.removeprefix(IMPORT).replace('"http://127.0.0.1:8000"', "address")


@pytest.fixture(scope="module")
def rows():
    with (ROOT / "examples" / "products.csv").open(encoding="utf-8", newline="") as file:
        return [
            {"id": row.pop("sku"), "title": row.pop("name"), "text": row.pop("description"), **row}
            for row in csv.DictReader(file)
        ]


@pytest.fixture
def url(tmp_path):
    (tmp_path / "indexes").mkdir()
    with writable(tmp_path / "indexes") as address:
        yield address


def assert_as_the_guide_says(result):
    assert result["added"] == 96
    found = result["found"]
    assert [hit["rank"] for hit in found["hits"]] == [1, 2, 3]
    prices = [hit["metadata"]["price"] for hit in found["hits"]]
    assert prices == sorted(prices)
    assert max(prices) < 150
    assert found["total"] > 3
    assert sum(each["count"] for each in found["facets"]["brand"]["values"]) == found["total"]
    assert "<mark>" in found["hits"][0]["highlight"]["title"]["html"]
    assert "green" in {each["value"] for each in result["colours"]["facets"]["colours"]["values"]}
    assert result["brands"]["total"] == result["colours"]["total"] > 0
    assert "jacket" in {each["text"] for each in result["suggestions"]}
    assert result["jacket"]["metadata"]["price"] == 79
    assert "in_stock" not in result["jacket"]["metadata"]
    assert (result["deleted"], result["count"], result["left"]) == (2, 94, [])
    assert result["corvo"]["values"][0]["value"] == "Corvo"
    assert (result["job"]["kind"], result["job"]["state"]) == ("refit", "done")
    assert result["problem"].startswith("422 bad_query (filter): ")


def test_the_guide_runs_in_a_browser(browser, url, rows):
    with watched(browser, url, expected=["422"]) as page:
        page.goto(f"{url}/health/live")
        given = {"path": "/page/klsa.js", "address": url, "rows": rows}
        assert_as_the_guide_says(page.evaluate(program(), given))


def test_the_guide_runs_in_node(url, rows, tmp_path):
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node.js is not installed")
    shutil.copy(FILES / "klsa.js", tmp_path)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    given = json.dumps({"path": "./klsa.js", "address": url, "rows": rows})
    (tmp_path / "walk.js").write_text(
        f"const result = await ({program().replace('console.log', 'String')})({given});\n"
        "console.log(JSON.stringify(result));\n"
    )
    done = run(node, "walk.js", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert_as_the_guide_says(json.loads(done.stdout))


def test_the_search_box_of_the_guide(browser, url, rows):
    with watched(browser, url) as page:
        page.goto(f"{url}/health/live")
        page.evaluate(
            """async ({ rows, box }) => {
              const { Client } = await import("/page/klsa.js");
              await (await new Client("/").createIndex("shop")).add(rows);
              document.body.replaceChildren(
                document.createElement("input"), document.createElement("ul"));
              new Function("Client", box)(Client);
            }""",
            {"rows": rows, "box": SEARCH_BOX},
        )
        page.locator("input").press_sequentially("rain jack")
        api.expect(page.locator("li mark").first).to_have_text("rain")
        page.locator("input").fill("helm")
        api.expect(page.locator("li mark").first).to_have_text("helmet")


def test_ids_that_an_address_cannot_contain_are_refused(browser, url):
    with watched(browser, url) as page:
        page.goto(f"{url}/health/live")
        told = page.evaluate(
            """async () => {
              const { Client } = await import("/page/klsa.js");
              const index = new Client("/").index("shop");
              const one = async (id) => index.document(id);
              return Promise.all([".", ".."].map((id) => one(id).catch((error) => error.message)));
            }"""
        )
    assert [text.partition(" cannot be sent")[0] for text in told] == ["`.`", "`..`"]


def test_a_file_is_added(browser, url):
    with watched(browser, url) as page:
        page.goto(f"{url}/health/live")
        added = page.evaluate(
            """async () => {
              const { Client } = await import("/page/klsa.js");
              const shop = await new Client("/").createIndex("shop");
              const file = new Blob(["sku;name;body\\n1;Lamp;A lamp of brass.\\n"]);
              const options = { name: "stock.csv", id: "sku", text: ["name", "body"] };
              const { added, used } = await shop.addFile(file, options);
              return [added, used, (await shop.document("1")).text];
            }"""
        )
    assert added == [1, {"id": "sku", "text": ["name", "body"]}, "Lamp\n\nA lamp of brass."]
