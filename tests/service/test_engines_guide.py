"""docs/guides/coming-from-other-engines.md: its requests, export and commands are run."""

import csv
import json
import re
import shlex
import shutil
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

import klsa_search
from klsa_search.cli.index import klsa_index
from klsa_search.cli.keys import klsa_keys
from klsa_search.cli.search import klsa_search as klsa_search_command
from klsa_search.core.config import IndexSettings
from klsa_search.service.admission import Writes
from klsa_search.service.jobs import Jobs
from klsa_search.service.keys import add_key
from klsa_search.service.middleware.auth import Keys
from klsa_search.service.open_indexes import OpenIndexes
from tests.conftest import ROOT
from tests.support.application import app_of_indexes
from tests.support.client import AppClient

from .test_guide import BLOCK, sent

PAGE = (ROOT / "docs" / "guides" / "coming-from-other-engines.md").read_text(encoding="utf-8")


def section(heading):
    return PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def requests_of(heading):
    """The requests in the column of klsa-search below a heading: method, target and body."""
    cells = re.findall(r"^\|[^|]*\|(.*)\|$", section(heading), re.MULTILINE)
    return [
        (method, target, body or None)
        for cell in cells
        for method, target, body in re.findall(
            r"`(GET|PUT|POST|PATCH|DELETE) (/[^`]*)`(?: `([{\[][^`]*)`)?", cell
        )
    ]


def shell_of(heading):
    return [
        shlex.split(line)
        for kind, text in BLOCK.findall(section(heading))
        if not kind
        for line in text.splitlines()
    ]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with the index of the page."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder := tmp_path_factory.mktemp("page"))
        [command] = re.findall(r"`klsa-index (build examples/[^`]*)`", PAGE)
        arguments = command.replace("examples/", f"{ROOT}/examples/").split()
        klsa_index.main(arguments, standalone_mode=False)
    return folder


@pytest.fixture
def client(built, tmp_path, monkeypatch):
    """A service with that index, which takes writes and needs a key."""
    monkeypatch.chdir(shutil.copytree(built, tmp_path, dirs_exist_ok=True))
    keys = tmp_path / "keys"
    key = add_key(keys, "shop", ("search", "write"))
    with (
        OpenIndexes(Path("index"), interval=0) as open_indexes,
        Jobs(open_indexes, [], share=None) as jobs,
    ):
        jobs.watch.stop()
        app = app_of_indexes(open_indexes, writes=Writes(), jobs=jobs, keys=Keys(keys, ()))
        yield AppClient(app, headers={"Authorization": f"Bearer {key}"})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("heading", "count"), [("Meilisearch", 25), ("Elasticsearch", 35), ("Anserini and Pyserini", 6)]
)
def test_requests_of_the_tables_succeed(client, heading, count):
    requests = requests_of(heading)
    assert len(requests) >= count
    for method, target, body in requests:
        headers = {"Content-Type": "application/json"} if body else {}
        answer = client.request(method, target, content=body, headers=headers)
        assert answer.is_success, (method, target, answer.text)
        if ("search" in target and "q=" in target) or target.endswith("/search"):
            assert answer.json()["total"] > 0, (target, body)


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
            [export] = [text for kind, text in BLOCK.findall(PAGE) if kind == "python"]
            exec(export.replace("http://127.0.0.1:7700", address), {})
        finally:
            server.shutdown()


@pytest.mark.slow
def test_commands_that_move_an_index_run(exported):
    lines = Path("products.jsonl").read_text("utf-8").splitlines()
    assert len(lines) == len(Meilisearch.products)
    shell = shell_of("Meilisearch")
    for program, *arguments in shell:
        if program == "klsa-index":
            klsa_index.main(arguments, standalone_mode=False)
    with OpenIndexes(Path("index"), interval=0) as open_indexes:
        client = AppClient(app_of_indexes(open_indexes, writes=Writes()))
        assert client.get("/aliases").json()["aliases"] == [
            {"name": "products", "index": "products-1"}
        ]
        _, statuses, alias = (
            sent(client, *arguments) for program, *arguments in shell if program == "curl"
        )
    assert all(json.loads(line)["ok"] for line in statuses.text.splitlines())
    assert alias.json() == {"name": "products", "index": "products-2"}


def test_commands_for_runs_of_anserini_users_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    texts = ["rain jackets", "bright front lamps", "helmets with lamps"]
    collection = [json.dumps({"id": str(n), "contents": text}) for n, text in enumerate(texts)]
    Path("collection.jsonl").write_text("\n".join(collection))
    Path("topics.tsv").write_text("1\tlamp\n2\train\n")
    for program, *arguments in shell_of("Anserini and Pyserini"):
        command = {"klsa-index": klsa_index, "klsa-search": klsa_search_command}[program]
        command.main(arguments, standalone_mode=False)
    for run in ("klsa.run", "rm3.run"):
        lines = [line.split() for line in Path(run).read_text().splitlines()]
        assert {(query, q0) for query, q0, *_ in lines} == {("1", "Q0"), ("2", "Q0")}


def test_python_for_pyserini_users_runs(client):
    cells = re.findall(r"\|[^|]*\| `([^`]*klsa_search[^`]*|index\.[^`]*)` \|", PAGE)
    assert len(cells) == 4
    namespace = {"klsa_search": klsa_search}
    for cell in cells:
        exec(cell, namespace)
    namespace["index"].close()


def test_its_commands_exist():
    shown = re.findall(r"`klsa-(index|keys) (\w+)", PAGE)
    assert {name for group, name in shown if group == "index"} <= klsa_index.commands.keys()
    assert {name for group, name in shown if group == "keys"} <= klsa_keys.commands.keys()


def test_its_settings_exist():
    table = PAGE.partition("| setting of Meilisearch |")[2].partition("\n\n")[0]
    cells = re.findall(r"^\|[^|]*\|([^|]*)\|$", table, re.MULTILINE)
    for cell in cells:
        assert set(re.findall(r"`(\w+)`", cell)) <= IndexSettings.__annotations__.keys(), cell
