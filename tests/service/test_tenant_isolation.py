"""Tenant tokens: no byte of an answer depends on documents that their filter hides.

Three worlds have the same visible documents; hidden ones are different, or there are none. They are
written after the build and of the same length, so that what tenants share by design, the statistics
of the build and the mean length, is equal. Every route of the application is called.
"""

import json
import random
import re
import shutil
from functools import partial
from types import SimpleNamespace
from urllib.parse import quote, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klsa_search.indexing.build import build
from klsa_search.search.index import open_index
from klsa_search.service.admission import Writes
from klsa_search.service.analytics.recorder import Recorder
from klsa_search.service.application import ROUTERS
from klsa_search.service.keys import add_key
from klsa_search.service.middleware.auth import Keys
from klsa_search.service.open_indexes import OpenIndexes
from tests.support.application import app_of_indexes
from tests.support.client import AppClient
from tests.support.endpoints import ENDPOINTS

INDEX = "first"
LONG = "long"  # the same documents, three times as long and divided into passages
PARTS = "parts"  # the same documents as the first, in partitions
KINDS = {INDEX: {}, LONG: {"passages": 10}, PARTS: {"partitions": 3, "workers": 1}}
FILTER = 'tenant = "visible"'
LENGTH = 8
VECTORS = {"m": 6, "zqxspace": 4}  # dimensions of vectors by space
SPACES = ("m",)  # spaces of visible documents
REPEATED = 3
VISIBLE_WORDS = [
    f"{a}{b}" for a in ("lamp", "torn", "grav", "pelt") for b in ("ing", "ed", "ox", "um")
]
HIDDEN_WORDS = ["zqxmarker", "zqxmarkers", "lampzqx", "wi-zqx"]
SHARED = ("lamping", "graved", "peltox")  # words that hidden documents contain as well
HIDDEN_IDS = ("zqx-1", "zqx-2", "zqx-3")
RULES = [
    {
        "id": "pins",
        "when": {"query_contains": "lamping"},
        "then": {
            "pin": [
                {"id": id_, "position": place}
                for place, id_ in enumerate(("zqx-1", "other-1", "seen-5"), 1)
            ]
        },
    },
    {
        "id": "pin-of-a-hidden-document",
        "when": {"query_contains": "graved"},
        "then": {"pin": [{"id": "zqx-2", "position": 1}]},
    },
    {
        "id": "boosts",
        "when": {"query_contains": "peltox"},
        "then": {
            "boost": [
                {"filter": 'tenant = "hidden"', "factor": 10},
                {"filter": "year > 2005", "factor": 3},
            ],
            "hide": ["zqx-3", "other-3", "seen-7"],
        },
    },
    {
        "id": "of-a-filter",
        "when": {"filter": FILTER},
        "then": {"pin": [{"id": "zqx-1", "position": 2}, {"id": "seen-9", "position": 3}]},
    },
]
"""Pins come first whatever their score, so they are what would cross a filter most easily."""


GONE = {"id": "gone", "text": " ".join(VISIBLE_WORDS[:LENGTH]), "tenant": "hidden"}
"""In the world without hidden documents, so that it has writes, too: a small index has no
eigenvectors after the first one, and then K comes from its stored entries, which are rounded.
"""


def documents(seed, prefix, words, tenant, count):
    """Documents of equal length; every field of hidden ones is about what is hidden."""
    chance = random.Random(seed)
    result = []
    for number in range(count):
        text = chance.choices(words, k=LENGTH)
        result.append(
            {
                "id": f"{prefix}-{number + 1}",
                "title": " ".join(text[:2]),
                "text": " ".join(text[2:]),
                "tenant": tenant,
                "kind": chance.choice(
                    ["red", "blue"] if tenant == "visible" else ["red", ["blue", "zqxkind"]]
                ),
                "year": chance.randrange(2000, 2010) + 1000 * (tenant != "visible"),
                "_vectors": {
                    space: [chance.gauss(0, 1) for _ in range(VECTORS[space])]
                    for space in (SPACES if tenant == "visible" else VECTORS)
                },
            }
        )
    return result


def _lengths(query, texts):
    return [len(text) for text in texts]


def lengthened(name, made):
    times = REPEATED if name == LONG else 1
    return [{**each, "text": f"{each['text']} " * times} for each in made]


def built(tmp_path_factory, kinds):
    """A home with an index of each of these kinds, of the visible documents only."""
    home = tmp_path_factory.mktemp("built")
    seen = documents(1, "seen", VISIBLE_WORDS, "visible", 110)
    for name in kinds:
        build(lengthened(name, seen), name=name, home=home, dimensions=8, **KINDS[name]).close()
    return home


def world(built, folder, hidden):
    """A service with the visible and these hidden documents, and tokens for it."""
    home, file = shutil.copytree(built, folder / "home"), folder / "keys.json"
    kinds = {name: more for name, more in KINDS.items() if (home / name).exists()}
    for name in kinds:
        later = lengthened(name, hidden)
        with open_index(home / name) as index:
            index.add(later or [GONE])
            index.delete([] if later else [GONE["id"]])
            index.set_synonyms({"torning": ["zqxmarker", "peltum"]})
            index.set_rules(RULES)
            assert (index.passage_count is not None) == (name == LONG)
    keys = {
        name: add_key(file, name, scopes.split())
        for name, scopes in {
            "search": "search",
            "write": "write",
            "all": "search write metrics",
        }.items()
    }
    open_indexes = OpenIndexes(home, interval=0, opener=partial(open_index, reranker=_lengths))
    recorder = Recorder(home, days=90, min_searches=1)
    app = app_of_indexes(open_indexes, writes=Writes(), keys=Keys(file, ()), recorder=recorder)
    client = AppClient(app, raise_server_exceptions=False)
    answer = client.post(
        "/tenant-tokens",
        json={"filters": dict.fromkeys(kinds, FILTER)},
        headers={"Authorization": f"Bearer {keys['all']}"},
    )
    assert answer.status_code == 201, answer.text
    tenant = answer.json()["token"]
    return SimpleNamespace(
        client=client, tenant=tenant, keys=keys, open_indexes=open_indexes, home=home
    )


def worlds_of(tmp_path_factory, kinds):
    """Worlds without hidden documents, and with two different sets."""
    home = built(tmp_path_factory, kinds)
    folder = tmp_path_factory.mktemp("worlds")
    contents = (
        [],
        documents(2, "zqx", [*HIDDEN_WORDS[:3], *SHARED], "hidden", 40),
        documents(3, "other", [*SHARED, "unrelated", "lampings"], "hidden", 25),
    )
    made = [world(home, folder / str(number), hidden) for number, hidden in enumerate(contents)]
    yield made
    for each in made:
        each.open_indexes.close()


@pytest.fixture(scope="module")
def worlds(tmp_path_factory):
    """With one index, which is not divided."""
    yield from worlds_of(tmp_path_factory, [INDEX])


@pytest.fixture(scope="module")
def all_worlds(tmp_path_factory):
    yield from worlds_of(tmp_path_factory, KINDS)


def call(world, method, url, body=None):
    """Status and text of an answer to the tenant, without what differs at every call."""
    headers = {"Authorization": f"Bearer {world.tenant}"}
    if body is not None:
        headers["Content-Type"] = "application/json"
    answer = world.client.request(
        method, url, headers=headers, content=None if body is None else json.dumps(body)
    )
    assert answer.status_code < 500, answer.text
    return answer.status_code, re.sub(
        r'"(time_ms|search_id)":("\w+"|[\d.e-]+)', r'"\1":0', answer.text
    )


def assert_same(worlds, method, url, body=None):
    """Assert that the answer is the same in all worlds, and return status and text."""
    first, *others = (call(each, method, url, body) for each in worlds)
    for other in others:
        assert other == first, (method, url, body)
    return first


def routes():
    return {
        f"{method} {route.path.replace(':whole', '')}": route
        for router in ROUTERS
        for route in router.routes
        for method in route.methods
    }


word = st.sampled_from(
    [*VISIBLE_WORDS, *HIDDEN_WORDS, *SHARED, "unrelated", "lampingg", "gravedd", "zqxmarkr"]
)
query = st.one_of(
    st.lists(word, min_size=1, max_size=3).map(" ".join),
    st.lists(word, min_size=2, max_size=3).map(lambda words: f'"{" ".join(words)}"'),
    st.tuples(word, st.integers(2, 5)).map(lambda pair: f"{pair[0][: pair[1]]}*"),
    st.tuples(word, word).map(lambda pair: f"+{pair[0]} -{pair[1]}"),
    st.sampled_from(
        ["", "zqx*", "seen-1", "SEEN-2", "zqx-1", "ZQX-2", "other-1", "title:zqxmarker"]
    ),
)
id_ = st.sampled_from(["seen-1", "seen-50", *HIDDEN_IDS, "other-1", "nothing"])
filter_ = st.sampled_from(
    [
        FILTER, 'tenant = "hidden"', 'NOT tenant = "visible"', 'tenant = "hidden" OR year > 0',
        "year > 2500", {"not": {"field": "kind", "=": "zqxkind"}}, {"or": []}, {"and": []},
        "absent = 1", '") OR (tenant = "hidden"',
    ]
)  # fmt: skip
vector = st.one_of(
    st.lists(st.sampled_from([-1.0, 0.0, 0.5, 2.0]), min_size=6, max_size=6).map(
        lambda numbers: {"m": numbers}
    ),
    st.sampled_from([{"m": [1.0]}, {"zqxspace": [1.0, 0.0, 0.0, 0.0]}, {"zqxspace": [1.0]}]),
)
options = st.fixed_dictionaries(
    {},
    optional={
        "k": st.sampled_from([1, 10, 200]),
        "offset": st.sampled_from([0, 5, 105]),
        "filter": filter_,
        "sort": st.sampled_from([["year:desc"], ["kind:asc", "tenant:asc"]]),
        "facets": st.just(["tenant", "kind", "year"]),
        "distinct": st.sampled_from(["kind", "tenant"]),
        "min_score": st.sampled_from([0.0, 0.5]),
        "positive": st.lists(id_, min_size=1, max_size=2),
        "negative": st.lists(id_, min_size=1, max_size=1),
        "highlight": st.just(True),
        "quality": st.just(True),
        "prefix": st.just("last"),
        "ranker": st.sampled_from(["klsa", "bm25", "bm25-rm3"]),
        "exact": st.booleans(),
        "operators": st.booleans(),
        "spelling": st.sampled_from(["suggest", "off"]),
        "synonyms": st.booleans(),
        "rules": st.booleans(),
        "match": st.sampled_from(["all", "most"]),
        "boosts": st.just("title^3"),
        "fields": st.just(["text", "metadata", "title"]),
        "group": st.just("passage"),
        "max_tokens": st.sampled_from([10, 1000]),
        "rerank": st.sampled_from([1, 5]),
        "vector": vector,
    },
)


def explained(given):
    return {"explain": True} if given.get("k", 10) <= 100 else {}


def requests_of(q, chosen, an_id, a_filter, kernel, explain, index):
    """Return a request of every route for tenants: {route: (URL, body)}."""
    body = {"q": q, **chosen, **(explained(chosen) if explain else {}), "index": index}
    unpaged = {name: body[name] for name in body.keys() - {"k", "offset"}}
    in_path = quote(an_id, safe="")
    name = f"/indexes/{index}"
    return {
        "POST /search": ("/search", body),
        "POST /indexes/{name}/search": (f"{name}/search", body),
        "GET /search": (f"/search?{urlencode({'index': index, 'q': q, 'explain': 'true'})}", None),
        "POST /multi-search": (
            "/multi-search",
            {"queries": [body, {"index": index, "q": "lamping"}]},
        ),
        "POST /multi-search, merged": (
            "/multi-search",
            {
                "queries": [unpaged, {"index": INDEX, "q": "lamping", "weight": 2}],
                "federation": {"limit": 100},
            },
        ),
        "POST /indexes/{name}/facet-search": (
            f"{name}/facet-search",
            {"field": "kind", "facet_query": "", "q": q, "filter": a_filter, "k": 100},
        ),
        "GET /indexes/{name}/suggest": (f"{name}/suggest?{urlencode({'q': q})}", None),
        "POST /indexes/{name}/suggest": (f"{name}/suggest", {"q": q, "filter": a_filter}),
        "GET /indexes/{name}/export": (f"{name}/export?{urlencode({'q': q})}", None),
        "POST /indexes/{name}/export": (
            f"{name}/export",
            {"q": q, "filter": a_filter, "format": "jsonl", "columns": ["id", "score", "text"]},
        ),
        "GET /suggest": (f"/suggest?{urlencode({'index': index, 'q': q[:4]})}", None),
        "GET /documents/{id}": (f"/documents/{in_path}?index={index}&vectors=true", None),
        "GET /indexes/{name}/documents/{id}": (f"{name}/documents/{in_path}?span=0-9", None),
        "GET /indexes/{name}/explain/{id}": (
            f"{name}/explain/{in_path}?{urlencode({'q': q})}",
            None,
        ),
        "POST /indexes/{name}/explain/{id}": (
            f"{name}/explain/{in_path}",
            {"q": q, "vector": chosen.get("vector", {"m": [1.0] * 6})},
        ),
        "GET /indexes/{name}/documents/{id}/similar": (
            f"{name}/documents/{in_path}/similar?kernel={kernel}&k=40",
            None,
        ),
        "GET /indexes/{name}/documents/{id}/terms": (f"{name}/documents/{in_path}/terms", None),
        "POST /indexes/{name}/analyze": (f"{name}/analyze", {"text": q}),
        "POST /indexes/{name}/events": (
            f"{name}/events",
            {"type": "click", "search_id": "0" * 16, "id": an_id, "position": 1},
        ),
    }


OPEN = ("/", "/health", "/health/live", "/health/ready")


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_no_route_depends_on_hidden_documents(worlds, method):
    asked = requests_of("lamping", {"facets": ["kind"]}, "seen-1", FILTER, "latent", True, INDEX)
    assert {name.partition(",")[0] for name in asked} == {
        name for name, route in routes().items() if route.tenants
    }, "add a row to `requests_of`"
    asked |= {f"GET {path}": (path, None) for path in OPEN}
    assert {route.split()[0] for route in asked} == {"GET", "POST"}
    for route, (url, content) in asked.items():
        if route.startswith(method):
            assert_same(worlds[:2], method, url, content)


def assert_scores_are_the_same(worlds, index):
    """The last words have other maximum impacts in the third world."""
    for q, options in (
        ("lamping lampox torning", {"k": 50, "explain": True}),
        ("lamping", {"distinct": "kind"}),
    ):
        body = {"q": q, "index": index, **options}
        status, _ = assert_same(worlds, "POST", "/search", body)
        assert status == 200


def test_hidden_documents_change_no_bit_of_a_score(worlds):
    assert_scores_are_the_same(worlds, INDEX)


@pytest.mark.slow
@pytest.mark.parametrize("index", [LONG, PARTS])
def test_hidden_documents_change_no_bit_in_passages_and_partitions(all_worlds, index):
    assert_scores_are_the_same(all_worlds, index)


@pytest.mark.slow  # the routes that it draws differ in cost; those of each are asked above
@given(
    st.integers(0, 99),
    query,
    options,
    st.tuples(id_, st.sampled_from(["", "#0-9"])).map("".join),
    filter_,
    st.sampled_from(["latent", "document", "gvsm"]),
    st.booleans(),
    st.sampled_from([INDEX, LONG, PARTS]),
    st.sampled_from([1, 2]),
)
def test_no_answer_depends_on_hidden_documents(
    all_worlds, number, q, chosen, an_id, a_filter, kernel, explain, index, other
):
    asked = requests_of(q, chosen, an_id, a_filter, kernel, explain, index)
    route, (url, content) = [*asked.items()][number % len(asked)]
    assert_same([all_worlds[0], all_worlds[other]], route.split()[0], url, content)


REFUSING = [
    endpoint
    for endpoint in ENDPOINTS
    if routes()[str(endpoint)].scopes and not routes()[str(endpoint)].tenants
]


def test_every_other_route_refuses_tenant_tokens(worlds):
    for endpoint in REFUSING:
        asked = endpoint.request(INDEX)
        headers = asked.get("headers", {}) | {"X-API-Key": worlds[1].tenant}
        answer = worlds[1].client.request(**asked | {"headers": headers})
        assert answer.status_code == 403, (endpoint, answer.text)
        assert "tenant token" in answer.text
        assert "zqx" not in answer.text
