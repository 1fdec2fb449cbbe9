"""Plug-ins over HTTP: by name in requests, and in the schema of a service that has them."""

import subprocess
import sys

import pytest

from klsa_search.service.open_indexes import OpenIndexes
from tests.support.application import app_of_indexes
from tests.support.client import AppClient
from tests.support.plugins import forget, use, write_package, write_template
from tests.support.waiting import PATIENCE

from .conftest import build_tiny, failure_of


@pytest.fixture
def client(tmp_path, monkeypatch):
    site = tmp_path / "site"
    write_package(site, "faulty", "1", {"klsa_search.rankers": {"absent": "no_such_module:rank"}})
    use(monkeypatch, *write_template(site))
    build_tiny(tmp_path / "home")
    with OpenIndexes(tmp_path / "home") as open_indexes:
        yield AppClient(app_of_indexes(open_indexes), raise_server_exceptions=False)
    forget()


def test_a_search_ranks_by_a_plug_in_and_explains_it(client):
    body = {"q": "wing layer", "ranker": "dph", "explain": True, "k": 1}
    answer = client.post("/indexes/tiny/search", json=body).json()
    assert answer["ranker"] == "dph"
    (hit,) = answer["hits"]
    explained = hit["explanation"]
    assert explained["undivided"] is None
    assert explained["lexical"]["value"] == pytest.approx(hit["score"])


def test_rankers_are_compared_with_a_plug_in(client):
    body = {
        "queries": {"1": "wing"},
        "judgements": {"1": {"1": 1}},
        "rankers": ["bm25", "bm25-plus", "dph"],
    }
    answer = client.post("/indexes/tiny/evaluate", json=body).json()
    assert [each["ranker"] for each in answer["rankers"]] == body["rankers"]


@pytest.mark.slow
def test_the_schema_has_the_names_of_the_service(client):
    schema = client.get("/openapi.json").json()
    parameters = schema["paths"]["/search"]["get"]["parameters"]
    (ranker,) = [each["schema"] for each in parameters if each["name"] == "ranker"]
    (names,) = [part["enum"] for part in (ranker, *ranker.get("anyOf", ())) if "enum" in part]
    assert names[0] == "klsa"
    assert names[-5:] == ["absent", "bm25-plus", "bm25l", "dph", "lm-dirichlet"]


@pytest.mark.slow
def test_starting_a_service_reads_no_metadata_of_packages():
    code = (
        "from klsa_search.core import plugins\n"
        "del plugins.entry_points_of\n"
        "import klsa_search.service.application, klsa_search.cli.search, klsa_search.cli.index\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=PATIENCE)


def test_a_plug_in_that_cannot_be_imported_is_named(client):
    answer = client.get("/search", params={"q": "wing", "ranker": "absent"})
    error = failure_of(answer, 500)
    assert error["code"] == "plugin_failed"
    assert "`absent` of faulty 1 cannot be imported" in error["message"]
