"""A search is a request, a plan and its execution, each of which can run on its own."""

import pickle
from contextlib import closing

import numpy as np
import pytest

from klsa_search import Index, Query, SearchOptions
from klsa_search.errors import QueryError
from klsa_search.search.models import NO_MODELS, Models
from klsa_search.search.pages.assembly import assemble_results
from klsa_search.search.pages.collectors import collect
from klsa_search.search.pages.hits import fetch_hits
from klsa_search.search.pages.planning import plan_search
from klsa_search.search.parts.open_parts import OpenParts
from klsa_search.search.parts.reader import Reader
from klsa_search.search.state.state import open_state

PARTS = ("pump", "leak", "seal", "oil", "valve")
DOCUMENTS = [
    {
        "id": f"d{n}",
        "title": f"Part {n}",
        "text": " ".join(
            f"{PARTS[(n * i) % 5]} {PARTS[i % 4]} w{i % 9}." for i in range(3 + 9 * n)
        ),
        "year": 2000 + n % 3,
        "_vectors": {"m": [1.0, n, n % 4]},
    }
    for n in range(12)
]


def shortest(query, texts):
    return [-len(text) for text in texts]


MODELS = Models.opened({}, shortest)


@pytest.fixture(scope="module")
def index(index_of):
    return index_of(DOCUMENTS, passages=20, dimensions=2)


@pytest.fixture(scope="module")
def state(index):
    return open_state(index.path)


def searched(state, request, models):
    """Search one state, with a plan of its own for each step, as other processes would."""
    on, plan = plan_search(state, request)
    top, facets = collect(on, plan)
    on, plan = plan_search(state, pickle.loads(pickle.dumps(request)))
    hits = fetch_hits(state, on, plan, top)
    return assemble_results(
        plan,
        plan.interpretation,
        top.total,
        facets,
        hits,
        reranker=models.reranker,
        document_of=state.documents.get,
    )


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"k": 3, "offset": 2, "filter": "year >= 2001", "sort": ["year:desc"], "facets": ["year"]},
        {"distinct": "year", "min_score": 0.1, "ranker": "bm25", "dimensions": 1},
        {"positive": ["d3"], "negative": ["d5"]},
        {"explain": True, "highlight": True, "quality": True, "snippet_length": 40},
        {"vector": {"m": [1.0, 2.0, 3.0]}, "explain": True},
        {"group": "passage", "k": 4},
        {"group": "passage", "max_tokens": 60},
        {"rerank": 4, "k": 2, "offset": 1, "quality": True},
    ],
    ids=str,
)
def test_steps_on_a_state_find_what_the_index_finds(index, state, options):
    models = MODELS if "rerank" in options else NO_MODELS
    with closing(Index(Reader(OpenParts(index.path.parent), models=models))) as opened:
        for query in ("oil valve", "d4", "leak -w3"):
            expected = opened.search(query, **options)
            assert searched(state, Query(query, **options), models) == expected, query


def test_a_query_has_every_option_of_a_search():
    assert Query.model_fields.keys() == SearchOptions.__annotations__.keys() | {"query", "k"}


def test_a_query_keeps_what_iterators_yield():
    query = Query("oil", sort=iter(["year"]), facets=iter(["year"]), positive=iter(["d1"]))
    assert (query.sort, query.facets, query.positive) == (("year",), ("year",), ("d1",))
    assert pickle.loads(pickle.dumps(query)) == query


def test_a_query_takes_numbers_of_numpy():
    query = Query("oil", np.int64(3), min_score=np.float64(0.5), alpha=np.float64(0.25))
    assert (query.k, query.min_score, query.parameters) == (3, 0.5, {"alpha": 0.25})


def test_a_query_that_is_passed_alone_finds_what_its_options_find(index):
    options = {"filter": "year >= 2001", "facets": ["year"], "alpha": 0.4, "highlight": True}
    query = Query("oil valve", 3, **options)
    expected = index.search("oil valve", 3, **options)
    assert index.search(query) == index.search_many([query])[0] == expected


@pytest.mark.parametrize("options", [{"offset": 0}, {"alpha": 0.2}])
def test_options_next_to_a_query_object_are_an_error(index, options):
    with pytest.raises(QueryError, match="cannot be passed with a Query") as refused:
        index.search(Query("oil"), **options)
    assert refused.value.field == next(iter(options))


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"k": 0}, "k"),
        ({"k": True}, "k"),
        ({"sort": [1]}, "sort"),
        ({"snippet_length": 10_001}, "snippet_length"),
        ({"alpha": 2.0}, "alpha"),
        ({"boosts": "title^0"}, "boosts"),
        ({"colour": "red"}, "colour"),
        ({"group": "page"}, "group"),
        ({"prefix": "first"}, "prefix"),
        ({"max_tokens": 10}, "max_tokens"),
        ({"max_tokens": 10, "group": "passage", "offset": 5}, "max_tokens"),
        ({"group": "passage", "positive": ["d1"]}, "group"),
        ({"explain": True, "negative": ["d1"]}, "explain"),
    ],
    ids=str,
)
def test_a_query_is_checked_without_an_index(options, field):
    with pytest.raises(QueryError) as refused:
        Query("oil", **options)
    assert refused.value.field == field
