"""Passages over HTTP: searched, fetched by ID, span and page, and counted."""

import json
import random
from urllib.parse import quote

import pytest
from click.testing import CliRunner

from klsa_search.cli.search import klsa_search
from klsa_search.client import Client
from klsa_search.errors import DocumentNotFound, QueryError
from klsa_search.indexing.build import build
from klsa_search.search import costs
from klsa_search.search.index import open_index
from klsa_search.search.query.query import Query
from klsa_search.service.open_indexes import OpenIndexes
from tests.support.application import app_of_indexes
from tests.support.client import AppClient

from .conftest import build_tiny, failure_of
from .sockets import serving

WORDS = [f"{first}{last}" for first in ("pump", "leak", "seal") for last in "abcdefgh"]
CHANCE = random.Random(1)


def section(number):
    words = " ".join(CHANCE.choice(WORDS) for _ in range(40))
    return f"# Section {number}\n\n{words}.\n" + (f"The narwhal valve {number}.\n" * (number > 3))


MANUAL = "\f".join(section(number) for number in range(6))
LONG = [
    {"id": "manual", "title": "Manual", "text": MANUAL, "kind": "book"},
    {"id": "manual#0-10", "title": "Odd", "text": "A document whose ID is that of a passage."},
    {"id": "note", "title": "Note", "text": "A short note on pumps.", "page": 7},
]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    build(LONG, name="long", home=home, dimensions=3, passages=20).close()
    build_tiny(home)
    return home


@pytest.fixture(scope="module")
def client(home):
    open_indexes = OpenIndexes(home)
    yield AppClient(app_of_indexes(open_indexes))
    open_indexes.close()


@pytest.fixture
def index(home):
    with open_index(home / "long") as opened:
        yield opened


def search(client, **body):
    answer = client.post("/indexes/long/search", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_hits_have_the_place_of_their_best_passage(client, index):
    (expected,) = index.search("narwhal", k=1).hits
    (hit,) = search(client, q="narwhal", k=1)["hits"]
    assert hit["span"] == list(expected.span)
    assert (hit["heading"], hit["page"], hit["more_passages"]) == (
        expected.heading,
        expected.page,
        expected.more_passages,
    )
    assert "text" not in hit


def test_passages_have_texts_and_a_budget(client, index):
    found = search(client, q="narwhal valve", group="passage", max_tokens=60)
    expected = index.search("narwhal valve", group="passage", max_tokens=60)
    assert [hit["id"] for hit in found["hits"]] == [hit.id for hit in expected.hits]
    assert all(MANUAL[slice(*hit["span"])] == hit["text"] for hit in found["hits"])
    assert (found["tokens"], found["truncated"]) == (expected.tokens, expected.truncated)
    by_url = client.get("/search?index=long&q=narwhal+valve&group=passage&max_tokens=60").json()
    assert by_url["hits"] == found["hits"]
    several = client.post(
        "/multi-search",
        json={"queries": [{"index": "long", "q": "narwhal", "group": "passage", "k": 1}]},
    ).json()["results"]
    assert several[0]["hits"] == search(client, q="narwhal", group="passage", k=1)["hits"]


def test_fields_choose_what_passages_have(client):
    (hit,) = search(client, q="narwhal", group="passage", k=1, fields=[])["hits"]
    assert hit.keys() == {"rank", "id", "score"}
    (hit,) = search(client, q="narwhal", group="passage", k=1, fields=["text", "span"])["hits"]
    assert hit.keys() == {"rank", "id", "score", "text", "span"}
    (hit,) = search(client, q="note", k=1, fields=["page"])["hits"]
    assert hit["metadata"] == {"page": 7}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"group": "page"}, "group"),
        ({"max_tokens": 0, "group": "passage"}, "max_tokens"),
        ({"max_tokens": 100}, "max_tokens"),
        ({"max_tokens": 100, "group": "passage", "page": 2}, "max_tokens"),
        ({"group": "passage", "positive": ["note"]}, "group"),
    ],
)
def test_options_that_exclude_each_other_are_refused(client, body, field):
    failure = failure_of(client.post("/indexes/long/search", json={"q": "x", **body}), 422)
    assert failure["field"] == field


def test_answers_of_other_indexes_have_no_fields_of_passages(client):
    text = client.get("/search?index=tiny&q=wing").text
    document = client.get("/documents/1?index=tiny").json()
    for name in ("document_id", "span", "heading", "more_passages", "tokens", "truncated"):
        assert f'"{name}"' not in text
        assert name not in document


def test_passages_are_fetched_by_id_span_and_page(client, index):
    hit = search(client, q="narwhal", group="passage", k=1)["hits"][0]
    by_id = client.get(f"/indexes/long/documents/{quote(hit['id'], safe='')}").json()
    assert {name: by_id[name] for name in ("id", "text", "document_id", "span", "heading")} == {
        name: hit[name] for name in ("id", "text", "document_id", "span", "heading")
    }
    begin, end = hit["span"]
    assert client.get(f"/documents/manual?index=long&span={begin}-{end}").json() == by_id
    page = client.get("/indexes/long/documents/manual?page=3").json()
    assert (page["text"], page["page"]) == (MANUAL.split("\f")[2], 3)
    assert page["heading"] == "Section 2"
    whole = client.get("/indexes/long/documents/manual").json()
    assert whole["text"] == MANUAL
    assert whole == client.get("/documents/manual?index=long").json()


def test_a_document_wins_over_a_passage_with_its_id(client):
    found = client.get("/indexes/long/documents/manual%230-10").json()
    assert (found["title"], "span" in found) == ("Odd", False)
    assert client.get("/indexes/long/documents/manual%230-9").json()["text"] == MANUAL[:9]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("manual%230-99999", 404),
        ("manual%23007-9", 404),
        ("absent%230-9", 404),
        ("manual%235-9?page=1", 422),
        ("manual?span=0-99999", 422),
        ("manual?span=9-5", 422),
        ("manual?span=a-b", 422),
        ("manual?page=7", 422),
        ("note?page=1", 422),
        ("manual?page=1&span=0-9", 422),
    ],
)
def test_places_outside_of_the_text_are_refused(client, path, status):
    failure_of(client.get(f"/indexes/long/documents/{path}"), status)


def test_an_index_says_how_many_passages_it_has(client, index):
    assert client.get("/indexes/long").json()["passages"] == index.passage_count > 3
    assert client.get("/indexes/tiny").json()["passages"] is None


def test_searches_with_passages_never_run_in_the_event_loop(index):
    assert not index.is_quick("narwhal")
    without = index.search_cost(Query("", filter="id = x"))
    cost = index.search_cost(Query("narwhal", filter="id = x"))
    assert cost == pytest.approx(without + 4 * costs.WORD)


def test_the_client_returns_what_an_index_returns(home, index):
    with OpenIndexes(home) as open_indexes, serving(open_indexes) as service:
        host, port = service.address
        remote = Client(f"http://{host}:{port}")
        long = remote.index("long")
        options = {"group": "passage", "max_tokens": 100}
        assert long.search("narwhal", **options).hits == index.search("narwhal", **options).hits
        hit = long.search("narwhal")[0]
        assert hit == index.search("narwhal")[0]
        for given in ({"span": hit.span}, {"page": 2}, {}):
            assert long.excerpt("manual", **given) == index.excerpt("manual", **given)
        with pytest.raises(DocumentNotFound, match="search again"):
            long.excerpt("manual#0-99999")
        with pytest.raises(QueryError, match="count_tokens"):
            long.search("narwhal", group="passage", max_tokens=9, count_tokens=len)


def test_the_command_shows_places_and_passages(home):
    def run(*options):
        done = CliRunner().invoke(klsa_search, ["long", "narwhal", "--home", str(home), *options])
        assert done.exit_code == 0, done.output
        return done.stdout

    assert "more passage" in run()
    found = json.loads(run("--group", "passage", "--max-tokens", "60", "--json"))
    assert found["tokens"] <= 60
    assert found["hits"][0]["text"].count("narwhal") >= 1
    assert "more_passages" not in found["hits"][0]
