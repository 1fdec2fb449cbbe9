"""Batch search and evaluation by given judgements."""

import pytest

from klsa_search import build
from klsa_search.service.open_indexes import OpenIndexes
from tests.service.conftest import failure_of
from tests.support.application import app_of_indexes
from tests.support.client import AppClient

TEXTS = {
    "a": "Coolant leaks from the hose.",
    "b": "The pump leaks, and leaks again.",
    "c": "Bald tyres slip on wet roads.",
    "d": "A hose of rubber.",
}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    home = tmp_path_factory.mktemp("many")
    documents = [
        {"id": id_, "title": id_.upper(), "text": text, "metadata": {"n": 1}}
        for id_, text in TEXTS.items()
    ]
    build(documents, name="one", home=home).close()
    build(documents[:2], name="two", home=home).close()
    return home


@pytest.fixture(scope="module")
def client(home):
    with OpenIndexes(home, interval=0) as open_indexes:
        yield AppClient(app_of_indexes(open_indexes), raise_server_exceptions=False)


def without_time(answer):
    return {name: value for name, value in answer.items() if name != "time_ms"}


def test_a_batch_answers_each_search_as_it_is_alone(client):
    searches = [
        {"q": "leaks", "index": "one"},
        {"q": "hose", "index": "two", "k": 1, "facets": ["n"]},
        {"filter": "n = 1", "index": "one", "page": 1},
    ]
    answers = client.post("/multi-search", json={"queries": searches}).json()["results"]
    alone = [client.post("/search", json=each).json() for each in searches]
    assert [without_time(answer) for answer in answers] == [without_time(each) for each in alone]


def federated(client, queries, **page):
    answer = client.post("/multi-search", json={"queries": queries, "federation": page})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_merged_hits_are_ordered_by_weight_and_rank(client):
    searches = [
        {"q": "leaks hose", "index": "one"},
        {"q": "pump", "index": "two", "weight": 2},
        {"q": "rubber", "index": "one", "weight": 2},  # finds documents of the first, too
    ]
    alone = [
        client.post("/search", json={k: v for k, v in each.items() if k != "weight"}).json()
        for each in searches
    ]
    scored = sorted(
        (-each.get("weight", 1) / hit["rank"], number, each["index"], hit["id"])
        for number, (each, answer) in enumerate(zip(searches, alone, strict=True))
        for hit in answer["hits"]
    )
    expected = list(dict.fromkeys((index, id_) for _, _, index, id_ in scored))
    answer = federated(client, searches)
    hits = answer["hits"]
    assert [(hit["federation"]["index"], hit["id"]) for hit in hits] == expected
    assert [hit["rank"] for hit in hits] == list(range(1, len(expected) + 1))
    assert len(expected) < len(scored)
    for hit in hits:
        origin = hit["federation"]
        (same,) = [h for h in alone[origin["query"]]["hits"] if h["rank"] == origin["rank"]]
        assert (same["id"], same["score"]) == (hit["id"], hit["score"])
        weight = searches[origin["query"]].get("weight", 1)
        assert origin["weighted_score"] == weight / origin["rank"]
    assert answer["total"] == sum(each["total"] for each in alone)
    assert [each["total"] for each in answer["results"]] == [each["total"] for each in alone]
    assert all(each["hits"] == [] for each in answer["results"])
    paged = [federated(client, searches, limit=2, offset=n)["hits"] for n in range(0, 6, 2)]
    assert [hit for page in paged for hit in page] == hits


def test_merged_searches_keep_their_budgets(client):
    queries = [
        {"q": "leaks hose", "index": "one", "group": "passage", "max_tokens": 4},
        {"q": "pump", "index": "two"},
    ]
    alone = client.post("/search", json=queries[0]).json()
    answer = federated(client, queries)
    first, second = answer["results"]
    assert alone["truncated"]
    assert (first["tokens"], first["truncated"]) == (alone["tokens"], alone["truncated"])
    assert "tokens" not in second
    places = {hit["federation"]["query"]: hit.get("span") for hit in answer["hits"]}
    assert places[1] is None
    assert (0 in places) == bool(alone["hits"])


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"queries": [{"q": "x", "index": "one", "weight": 2}]}, "queries[0]: weight"),
        (
            {"queries": [{"q": "x", "index": "one", "k": 3}], "federation": {}},
            "queries[0]: k: leave it out",
        ),
        (
            {"queries": [{"q": "x", "index": "one", "page": 3}], "federation": {}},
            "queries[0]: page",
        ),
        ({"queries": [{"q": "x", "index": "one"}], "federation": {"limit": 0}}, "federation"),
        (
            {"queries": [{"q": "x", "index": "one"}], "federation": {"offset": 990}},
            "hit 1,010 is beyond the last",
        ),
        (
            {
                "queries": [{"q": "x", "index": "one", "explain": True}],
                "federation": {"limit": 200},
            },
            "at most 100 hits can be explained",
        ),
        ({"queries": [{"q": "x", "weight": 0}], "federation": {}}, "at least"),
    ],
)
def test_merged_searches_that_are_refused(client, body, reason):
    error = failure_of(client.post("/multi-search", json=body), 422)
    assert reason in str(error), error


@pytest.mark.parametrize(
    ("searches", "status", "reason"),
    [
        ([], 422, "at least 1"),
        ([{"q": "x", "index": "one"}] * 101, 422, "at most 100"),
        ([{"q": "x", "index": "one"}, {"q": "x", "index": "none"}], 404, "queries[1]: no index"),
        (
            [{"q": "x", "index": "one", "filter": "no = 1"}],
            422,
            "queries[0]: filter: unknown field",
        ),
        ([{"q": "x", "zzz": "y"}], 422, "unknown parameter 'zzz'; the parameters are: "),
        ([{"q": "x", "facet": "y"}], 422, "unknown parameter 'facet'; did you mean `facets`?"),
    ],
)
def test_a_batch_that_cannot_be_answered_names_the_search(client, searches, status, reason):
    error = failure_of(client.post("/multi-search", json={"queries": searches}), status)
    assert reason in error["message"]


def test_rankers_are_judged_by_the_callers_own_queries(client):
    asked = {
        "queries": {"q1": "leaks of coolant", "q2": "wet roads", "q3": "not judged"},
        "judgements": {"q1": {"a": 2, "b": 1, "zz": 1}, "q2": {"c": 1, "a": 0}},
        "rankers": ["bm25", "klsa", "rm3"],
    }
    answer = client.post("/indexes/one/evaluate", json=asked).json()
    assert (answer["index"], answer["judged"], answer["unknown"]) == ("one", 2, 1)
    first, *others = answer["rankers"]
    assert (first["ranker"], first["against_first"]) == ("bm25", None)
    # Both relevant documents that there are come first; the third is not there.
    assert first["queries"]["q1"]["map"] == pytest.approx(2 / 3)
    assert first["queries"]["q2"]["map"] == 1
    assert first["measures"]["map"] == pytest.approx(5 / 6)
    for other in others:
        against = other["against_first"]
        assert against["wins"] + against["losses"] + against["ties"] == 2
        assert 0 < against["randomisation_test"]["holm"] <= 1


@pytest.mark.parametrize(
    ("changes", "field", "reason"),
    [
        ({"judgements": {"q9": {"a": 1}}}, "judgements", "query 'q9'"),
        ({"rankers": ["bm25", "bm25"]}, "rankers", "given twice"),
        ({"rankers": ["bm52"]}, "rankers", "bm52"),
        ({"queries": {}}, "queries", "at least 1"),
        (
            {"judgements": {"q1": {str(n): 1 for n in range(20_001)}}},
            "judgements",
            "more than 20,000",
        ),
    ],
)
def test_judgements_that_do_not_fit_are_explained(client, changes, field, reason):
    asked = {"queries": {"q1": "leaks"}, "judgements": {"q1": {"a": 1}}, **changes}
    error = failure_of(client.post("/indexes/one/evaluate", json=asked), 422)
    assert error["field"] == field
    assert reason in error["message"]


def test_without_the_packages_for_it_judging_says_what_to_install(client, monkeypatch):
    def missing(name):
        raise MissingExtra(name)

    from klsa_search.errors import MissingExtra

    monkeypatch.setattr("klsa_search.evaluation.measures.require", missing)
    asked = {"queries": {"q1": "leaks"}, "judgements": {"q1": {"a": 1}}}
    failure_of(client.post("/indexes/one/evaluate", json=asked), 501)


def test_feedback_over_http(client):
    answer = client.get("/search?index=one&positive=c&k=1").json()
    assert answer["hits"][0]["id"] == "c"
    failure_of(client.get("/search?index=one&q=leaks&positive=nobody"), 404)
