"""docs/guides/from-meilisearch.md: its export, commands and requests are run, its names exist."""

import csv
import json
import re
import shlex
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from starlette.testclient import TestClient

from klsa_search.cli.index import klsa_index
from klsa_search.cli.keys import klsa_keys
from klsa_search.core.keywords import IndexSettings
from klsa_search.service.app import create_app
from klsa_search.service.background import Writes
from klsa_search.service.catalog import Catalog
from klsa_search.service.jobs import Jobs
from klsa_search.service.schemas.search_requests import SearchRequest
from tests.conftest import ROOT

from .test_guide import BLOCK, sent

PAGE = (ROOT / "docs" / "guides" / "from-meilisearch.md").read_text(encoding="utf-8")
SHELL = [
    shlex.split(line)
    for kind, text in BLOCK.findall(PAGE)
    if not kind
    for line in text.splitlines()
]
[EXPORT] = [text for kind, text in BLOCK.findall(PAGE) if kind == "python"]


def ours(heading):
    """The column of klsa-search in the tables below a heading."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"^\|[^|]*\|([^|]*)\|$", section, re.MULTILINE)


class Meilisearch(BaseHTTPRequestHandler):
    """Lists the products as Meilisearch does."""

    with (ROOT / "examples" / "products.csv").open(encoding="utf-8", newline="") as file:
        products = tuple(row | {"price": float(row["price"])} for row in csv.DictReader(file))

    def do_GET(self):
        url = urlsplit(self.path)
        assert url.path == "/indexes/products/documents"
        asked = parse_qs(url.query)
        first, count = int(asked["offset"][0]), int(asked["limit"][0])
        shown = self.products[first : first + min(count, 40)]
        body = json.dumps({"results": shown, "offset": first, "total": len(self.products)})
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_):
        pass


@pytest.fixture
def exported(tmp_path, monkeypatch):
    """The current folder has what the page exports."""
    monkeypatch.chdir(tmp_path)
    with ThreadingHTTPServer(("127.0.0.1", 0), Meilisearch) as server:
        threading.Thread(target=server.serve_forever).start()
        address = f"http://127.0.0.1:{server.server_port}"
        try:
            exec(EXPORT.replace("http://127.0.0.1:7700", address), {})
        finally:
            server.shutdown()


def test_what_it_shows_runs(exported):
    lines = Path("products.jsonl").read_text("utf-8").splitlines()
    assert len(lines) == len(Meilisearch.products)
    for program, *arguments in SHELL:
        if program == "klsa-index":
            klsa_index.main(arguments, standalone_mode=False)
    requests = [arguments for program, *arguments in SHELL if program == "curl"]
    assert len(requests) == len(re.findall(r"^curl ", PAGE, re.MULTILINE))
    with Catalog(Path("index"), interval=0) as catalog, Jobs(catalog, [], share=None) as jobs:
        jobs.watch.stop()
        client = TestClient(create_app(catalog, writes=Writes(), jobs=jobs))
        assert client.get("/aliases").json()["aliases"] == [
            {"name": "products", "index": "products-1"}
        ]
        _, statuses, alias, _, found, both, brands, _, document, deleted, _ = (
            sent(client, *arguments) for arguments in requests
        )
    assert all(json.loads(line)["ok"] for line in statuses.text.splitlines())
    assert alias.json() == {"name": "products", "index": "products-2"}
    assert {hit["metadata"]["brand"] for hit in found.json()["hits"]} == {"Corvo"}
    assert found.json()["facets"]["brand"]["values"][0]["count"] == found.json()["total"]
    assert all(each["total"] > 0 for each in both.json()["results"])
    assert brands.json()["values"][0]["value"] == "Corvo"
    assert document.json()["metadata"]["price"] == 79
    assert "in_stock" not in document.json()["metadata"]
    assert deleted.json()["deleted"] == 2


def test_its_endpoints_exist():
    with Catalog(ROOT / "nowhere") as catalog:
        paths = create_app(catalog).openapi()["paths"]
    shown = re.findall(r"`([A-Z]+) (/[^`? ]*)[^`]*`", "".join(ours("Requests")))
    assert len(shown) > 20
    assert not [each for each in shown if each[0].lower() not in paths.get(each[1], {})]


def test_its_commands_exist():
    shown = re.findall(r"`klsa-(index|keys) (\w+)", PAGE)
    assert {name for group, name in shown if group == "index"} <= klsa_index.commands.keys()
    assert {name for group, name in shown if group == "keys"} <= klsa_keys.commands.keys()


def test_its_parameters_and_settings_exist():
    for cell in ours("Search parameters"):
        names = set(re.findall(r"`(\w+)`", cell.partition(":")[0]))
        answer = {"hits", "score", "total", "total_pages", "time_ms", "values", "low", "high"}
        assert names - answer <= SearchRequest.model_fields.keys(), cell
    known = IndexSettings.__annotations__.keys() | SearchRequest.model_fields.keys()
    for cell in ours("Settings"):
        assert set(re.findall(r"`(\w+)`", cell)) <= known, cell
