"""No response exceeds the size limit."""

import re
import time
from typing import get_args

import pytest
from pydantic import BaseModel, TypeAdapter

from klsa_search.collection.model import MAX_ID_BYTES
from klsa_search.core.service_reports import ListName
from klsa_search.errors import QueryError
from klsa_search.service.analytics.recorder import MAX_QUERY as MAX_RECORDED
from klsa_search.service.analytics.recorder import Recorder
from klsa_search.service.analytics.store import ID_BITS, EventRow, SearchRow, Store
from klsa_search.service.application import ROUTERS
from klsa_search.service.routes import analytics, evaluation, search
from klsa_search.service.routes.mining import (
    MAX_CLASSIFIED,
    MAX_LABEL,
    MAX_LABELS,
    MAX_RELATED,
    MAX_SCORES,
    MAX_STRONG,
    MAX_TEXTS,
)
from klsa_search.service.schemas import base, search_answers
from klsa_search.service.schemas.base import MAX_ANSWER, MAX_HITS, MAX_QUERY, encoded
from tests.support.application import app_of_indexes
from tests.support.client import AppClient
from tests.support.endpoints import ENDPOINTS

from .conftest import build_tiny, failure_of
from .test_scopes import BY_NAME

COUNT = MAX_HITS + 50
WIDE = "\x01" * MAX_LABEL  # six bytes each in JSON
KINDS = [f"{n:03}{WIDE[3:]}" for n in range(MAX_LABELS)]
MOST = MAX_SCORES // MAX_LABELS


def ids(count):
    return [str(n % COUNT) for n in range(count)]


LABELS = {str(n): KINDS[n % MAX_LABELS] for n in range(COUNT)}
TWO = {str(n): KINDS[n % 2] for n in range(COUNT)}
CLASSIFY = "/indexes/heavy/classify"
QUESTIONS = {
    ("GET", "/"): [("/", None)],
    ("GET", "/health"): [("/health", None)],
    ("GET", "/health/live"): [("/health/live", None)],
    ("GET", "/health/ready"): [("/health/ready", None)],
    ("GET", "/aliases"): [("/aliases", None)],
    ("GET", "/indexes"): [("/indexes", None)],
    ("GET", "/indexes/{name}/synonyms"): [("/indexes/heavy/synonyms", None)],
    ("GET", "/indexes/{name}"): [("/indexes/heavy", None)],
    ("GET", "/search"): [
        (f"/search?q=wing&k={MAX_HITS}&index={name}&exact={exact}", None)
        for name in ("heavy", "wide")
        for exact in (True, False)
    ],
    ("POST", "/search"): [
        ("/search", {"q": "wing " * (MAX_QUERY // 5), "k": MAX_HITS, "index": name})
        for name in ("heavy", "wide")
    ],
    ("POST", "/indexes/{name}/search"): [
        (f"/indexes/{name}/search", {"q": "wing", "k": MAX_HITS, "fields": ["text"]})
        for name in ("heavy", "wide")
    ],
    ("POST", "/multi-search"): [
        ("/multi-search", {"queries": [{"q": "wing", "k": k, "index": "heavy"}] * 100})
        for k in (3, 100)
    ],
    ("POST", "/indexes/{name}/evaluate"): [
        (
            "/indexes/heavy/evaluate",
            {
                "queries": {str(n): "wing " * (MAX_QUERY // 50) for n in range(500)},
                "judgements": {str(n): {str(n): 1} for n in range(500)},
            },
        )
    ],
    ("GET", "/indexes/{name}/judgements"): [("/indexes/heavy/judgements", None)],
    ("GET", "/indexes/{name}/judgements.qrels"): [("/indexes/heavy/judgements.qrels", None)],
    ("GET", "/indexes/{name}/judgements.tsv"): [("/indexes/heavy/judgements.tsv", None)],
    ("POST", "/indexes/{name}/analyze"): [
        ("/indexes/heavy/analyze", {"text": "w " * (MAX_QUERY // 2)})
    ],
    ("GET", "/indexes/{name}/spectrum"): [("/indexes/heavy/spectrum", None)],
    ("GET", "/metrics"): [("/metrics", None)],
    ("GET", "/indexes/{name}/explain/{id:whole}"): [
        (f"/indexes/heavy/explain/0?q={'wing%20' * 300}", None)
    ],
    ("POST", "/indexes/{name}/explain/{id:whole}"): [
        ("/indexes/heavy/explain/0", {"q": "wing " * 300})
    ],
    ("GET", "/suggest"): [("/suggest?q=é&index=heavy&k=20", None)],
    ("GET", "/indexes/{name}/suggest"): [
        (f"/indexes/{name}/suggest?q={'wing%20' * 300}&k=20", None) for name in ("heavy", "wide")
    ],
    ("POST", "/indexes/{name}/suggest"): [
        (f"/indexes/{name}/suggest", {"q": "wing " * 300, "k": 20, "match": "any"})
        for name in ("heavy", "wide")
    ],
    ("POST", "/indexes/{name}/facet-search"): [
        ("/indexes/heavy/facet-search", {"field": "kind", "k": 1_000})
    ],
    ("GET", "/documents/{id:whole}"): [
        ("/documents/0?index=heavy", None),
        ("/documents/0?index=large", None),
        ("/documents/1?index=large", None),
    ],
    ("GET", "/indexes/{name}/documents/{id:whole}"): [
        ("/indexes/large/documents/0", None),
        ("/indexes/large/documents/1", None),
    ],
    ("GET", "/indexes/{name}/documents/{id:whole}/terms"): [
        (f"/indexes/{name}/documents/0/terms?k={MAX_STRONG}", None) for name in ("heavy", "wide")
    ],
    ("GET", "/indexes/{name}/documents/{id:whole}/similar"): [
        (f"/indexes/{name}/documents/0/similar?k={MAX_HITS}&kernel={kernel}", None)
        for name in ("heavy", "wide")
        for kernel in ("latent", "document")
    ],
    ("GET", "/indexes/{name}/terms/{term:whole}/related"): [
        (f"/indexes/heavy/terms/wing/related?k={MAX_RELATED}", None)
    ],
    ("GET", "/indexes/{name}/map"): [(f"/indexes/{name}/map", None) for name in ("heavy", "wide")],
    ("POST", "/indexes/{name}/map"): [("/indexes/heavy/map", {"ids": ids(MAX_HITS)})],
    ("POST", "/indexes/{name}/classify"): [
        (CLASSIFY, {"labels": LABELS, "ids": ids(MOST)}),
        (CLASSIFY, {"labels": LABELS, "texts": ["wing"] * min(MOST, MAX_TEXTS)}),
        (CLASSIFY, {"labels": LABELS, "k": MOST}),
        (CLASSIFY, {"labels": TWO, "ids": ids(MAX_CLASSIFIED)}),
        (CLASSIFY, {"labels": LABELS, "ids": ids(MAX_CLASSIFIED)}),
    ],
}

SMALL = {
    ("GET", "/session"), ("POST", "/session"), ("DELETE", "/session"), ("POST", "/sign-in"),
    ("POST", "/tenant-tokens"), ("POST", "/indexes/{name}/events"),
    ("GET", "/indexes/{name}/export"), ("POST", "/indexes/{name}/export"),
}  # fmt: skip
"""Reading routes whose answers do not grow with the index, or are streamed."""

SUMMARIES = {
    "GET /", "GET /aliases", "GET /health", "GET /health/live", "GET /health/ready", "GET /indexes",
    "GET /indexes/{name}", "GET /metrics",
}  # fmt: skip
"""Operations whose answers are short for any documents and request, and not compared."""


@pytest.fixture(scope="module")
def heavy_home(tmp_path_factory):
    """Documents of long titles and metadata: `heavy` ones fit in an answer, `wide` ones do not."""
    home = tmp_path_factory.mktemp("heavy")
    for name, size in (("heavy", 9_000), ("wide", 40_000)):
        documents = [
            {
                "id": str(n),
                "title": "é" * (size // 2),
                "text": f"wing of an aircraft {n % 7} {n % 11} {n % 13}",
                "kind": f"{n} {'é' * 100}",
                "notes": ["x" * size, {"more": "\t" * (size // 2)}],
            }
            for n in range(COUNT)
        ]
        build_tiny(home, name, documents)
    large = [{"id": str(n), "text": "wing", "notes": "x" * size}
             for n, size in enumerate((25_000_000, 35_000_000))]  # fmt: skip
    build_tiny(home, "large", large)
    return home


def test_every_reading_route_has_a_question():
    reading = {
        (method, route.path)
        for router in ROUTERS
        for route in router.routes
        for method in route.methods
        if {"write", "users"}.isdisjoint(route.scopes) or "search" in route.scopes
    }
    assert reading - SMALL == QUESTIONS.keys(), "add a question to QUESTIONS, or remove one"


def test_every_route_compares_the_size_of_its_answer_with_the_limit(
    client_of, two_home, monkeypatch
):
    client = client_of(two_home)
    for module in (base, search_answers, evaluation, search):
        monkeypatch.setattr(module, "MAX_ANSWER", -1)
    asked = {
        str(endpoint): endpoint
        for endpoint in ENDPOINTS
        if (endpoint.method, BY_NAME[str(endpoint)].path) in QUESTIONS
    }
    assert asked.keys() >= SUMMARIES
    for name in asked.keys() - SUMMARIES:
        error = failure_of(client.request(**asked[name].request("first")), 422)
        assert "the answer is larger than -1 bytes" in error["message"], name


@pytest.mark.slow
def test_every_endpoint_at_its_limits_answers_within_the_bound(client_of, heavy_home):
    client = client_of(heavy_home)
    sizes, refused = [], 0
    for (method, _), questions in QUESTIONS.items():
        for path, body in questions:
            answer = client.request(method, path, json=body)
            assert len(answer.content) <= MAX_ANSWER
            if answer.status_code == 200:
                sizes.append(len(answer.content))
            else:
                refused += 1
                failure_of(answer, 422)
    assert max(sizes) > MAX_ANSWER / 2
    assert 3 < refused < len(sizes)


@pytest.mark.slow
def test_analytics_at_their_limits_answer_within_the_bound(indexes_of, tmp_path):
    """Queries and IDs of the greatest length, in each list as many as it may have."""
    build_tiny(tmp_path, "first")
    now, rows, store = time.time_ns() // 1_000_000, 10_000, Store(tmp_path)
    searches = [
        SearchRow(
            (now << ID_BITS) + n, "first", f"{n:05}{'🛩' * (MAX_RECORDED - 5)}", 0, False, True,
            True, 10**9, "counted",
        )
        for n in range(rows)
    ]  # fmt: skip
    store.add(
        searches,
        [
            EventRow(each.id, "first", "click", f"{n:05}{'🛩' * ((MAX_ID_BYTES - 5) // 4)}", 10_000)
            for n, each in enumerate(searches)
        ],
    )
    store.close()
    recorder = Recorder(tmp_path, days=90, min_searches=1)
    client = AppClient(app_of_indexes(indexes_of(tmp_path), recorder=recorder))
    reading = {route.path for route in analytics.router.routes if "GET" in route.methods}
    path = "/indexes/{name}/analytics"
    assert reading == {path, f"{path}.csv", f"{path}/synonyms"}
    url, sizes = "/indexes/first/analytics", []
    tables = [f"{url}.csv?list={name}&days=3650&k={rows}" for name in get_args(ListName)]
    for each in (f"{url}?days=3650&k=1000", f"{url}/synonyms?days=3650&k=50", *tables):
        answer = client.get(each)
        assert answer.status_code == 200
        assert len(answer.content) <= MAX_ANSWER
        sizes.append(len(answer.content))
    assert max(sizes) > rows * 4 * (MAX_RECORDED - 5)
    recorder.close()


@pytest.mark.slow
def test_too_large_responses_are_refused(client_of, heavy_home):
    client = client_of(heavy_home)
    error = failure_of(client.get(f"/search?q=wing&k={MAX_HITS}&index=wide"), 422)
    assert (error["code"], error["field"]) == ("bad_query", None)
    assert "larger than 33,554,432 bytes; request less at a time" in error["message"]
    assert client.get("/search?q=wing&k=100&index=wide").status_code == 200


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "field", "said"),
    [
        ({"labels": {"0": "a", "1": "b" * 101}}, "labels", "at most 100 characters"),
        ({"labels": LABELS, "ids": ids(MOST + 1)}, "ids", "1001 times 100 .* at most 1000"),
        ({"labels": LABELS, "k": MOST + 1}, "k", "1001 times 100 different labels is more than"),
    ],
)
def test_labels_and_their_scores_are_limited(client_of, heavy_home, body, field, said):
    error = failure_of(client_of(heavy_home).post(CLASSIFY, json=body), 422)
    assert error["field"] == field
    assert re.search(said, error["message"])


class Told(BaseModel):
    value: object


@pytest.mark.slow
@pytest.mark.parametrize("text", ["雪", "\x01"])
def test_answers_above_the_limit_are_refused(text):
    width = len(TypeAdapter(str).dump_json(text)) - 2
    most = (MAX_ANSWER - 100) // width
    assert len(encoded(Told(value=text * most))) <= MAX_ANSWER
    with pytest.raises(QueryError, match="larger than"):
        encoded(Told(value=text * (most + 100)))
