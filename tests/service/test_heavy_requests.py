"""Heavy requests have threads of their own and do not delay light ones."""

import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from klsa_search import build
from klsa_search.search import costs
from klsa_search.search.index import Index, open_index
from klsa_search.search.query.query import Query
from klsa_search.service.admission import Admission
from klsa_search.service.index_service import MAX_LIGHT_COST, cost_for
from klsa_search.service.routes import mining
from klsa_search.service.schemas.search_requests import (
    MAX_INLINE_COST,
    ExplainRequest,
    SearchRequest,
)
from tests.support.application import app_of_indexes
from tests.support.client import AppClient
from tests.support.states import part_states
from tests.support.waiting import PATIENCE, wait_until

from .sockets import serving


class Held:
    """Work that begins when it is let."""

    def __init__(self):
        self.begun = threading.Semaphore(0)
        self.let = threading.Event()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.let.set()

    def before(self, work, applies=lambda *arguments, **parameters: True):
        def held(*arguments, **parameters):
            if applies(*arguments, **parameters):
                self.begun.release()
                assert self.let.wait(PATIENCE)
            return work(*arguments, **parameters)

        return held


@pytest.fixture
def held(monkeypatch):
    held = Held()

    def is_expensive(index, query, *_, **parameters):
        if isinstance(query, Query):
            parameters = query.parameters
        return "exact" in parameters

    monkeypatch.setattr(Index, "search", held.before(Index.search, is_expensive))
    monkeypatch.setattr(Index, "rank", held.before(Index.rank, is_expensive))
    monkeypatch.setattr(mining, "related", held.before(mining.related))
    yield held
    held.let.set()


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    ["/search?q=wing&exact=true", "/indexes/tiny/terms/wing/related"],
    ids=["search", "related"],
)
def test_light_requests_are_answered_while_heavy_ones_run(indexes_of, tiny_home, held, path):
    with serving(indexes_of(tiny_home), running=1, heavy=(1, 2)) as served, held:
        heavy = [served.client() for _ in range(3)]
        for client in heavy:
            client.ask(path)
        assert held.begun.acquire(timeout=PATIENCE)
        wait_until(lambda: sum(served.heavy.load()) == 3)
        for _ in range(3):
            assert served.get("/search?q=wing")[0] == 200
            assert served.get("/documents/1")[0] == 200
        assert served.get(path)[0] == 503
        assert served.heavy.load() == (1, 2)
        held.let.set()
        for client in heavy:
            assert client.answer()[0] == 200
            client.close()
        assert served.heavy.refused()["full"] == 1


def test_each_search_of_a_batch_is_admitted_by_its_own_cost(indexes_of, tiny_home, held):
    open_indexes = indexes_of(tiny_home)
    light, heavy = Admission(running=1), Admission(running=1, waiting=0)
    app = app_of_indexes(open_indexes, admission=light, heavy=heavy)
    searches = [{"q": "wing"}, {"q": "wing", "exact": True}]
    with AppClient(app) as client, ThreadPoolExecutor(1) as thread, held:
        answer = thread.submit(client.post, "/multi-search", json={"queries": searches})
        assert held.begun.acquire(timeout=PATIENCE)
        wait_until(lambda: heavy.load() == (1, 0))  # a thread may begin before it is counted
        assert sum(light.load()) == 0
        held.let.set()
        assert answer.result(PATIENCE).status_code == 200


@pytest.fixture(scope="module")
def tiny(tiny_home):
    with open_index(tiny_home / "tiny") as index:
        yield index


@pytest.mark.parametrize(
    ("asked", "heavy"),
    [
        ({}, False),
        ({"k": 100}, False),
        ({"exact": False, "ranker": "bm25"}, False),
        ({"k": 150}, True),
        ({"offset": 140}, True),
        ({"page": 15}, True),
        ({"explain": True, "k": 1}, False),
        ({"explain": True, "k": 90}, True),
        ({"highlight": True, "quality": True}, False),
        ({"highlight": True, "k": 50}, False),
        ({"positive": ["1"]}, True),
        ({"q": "wing heat layer in the slipstream of an aircraft"}, False),
        ({"q": '"boundary layer" -heat +wing title:odd win*'}, False),
        ({"q": '"a wing" ' * 20}, True),
        ({"q": '"a wing" ' * 20, "operators": False}, False),
        ({"q": '"odd" "wing" "an" "aircraft" "the" "heat" "odd" ' + "layer " * 12}, False),
        ({"q": '"odd" "wing" "an" "aircraft" "the" "heat" "odd" layer', "operators": True}, True),
        ({"q": "wing " * 200}, True),
        ({"q": "wing slipstraem"}, False),
        ({"q": "wnig slipstraem"}, True),
        ({"q": "wnig slipstraem", "spelling": "off"}, False),
        ({"q": "雪が降る" * 200}, True),
        ({"exact": True}, True),
        ({"vector": {"m": [0.5, 0.5]}}, False),
        ({"min_score": 0.0}, True),
        ({"ranker": "lsi"}, True),
        ({"spectral": "exponential"}, True),
        ({"filter": "year > 1950 AND NOT year IN [1960, 1961]"}, False),
        ({"filter": " OR ".join(f"kind CONTAINS {n}" for n in range(450))}, True),
        ({"filter": {"or": [{"field": "year", "=": n} for n in range(500)]}}, True),
        ({"facets": ["year", "kind"]}, False),
        ({"facets": ["a", "b", "c", "d"], "max_facet_values": 1000}, True),
        ({"sort": ["year:desc"], "distinct": "year"}, False),
    ],
)
def test_expensive_searches_are_heavy(tiny, asked, heavy):
    body = SearchRequest(**{"q": "wing"} | asked)
    assert (body.cost(tiny) > MAX_LIGHT_COST) == heavy


@pytest.mark.parametrize(
    ("asked", "heavy"),
    [
        ({}, False),
        ({"exact": True}, True),
        ({"boosts": "title^2"}, True),
        ({"z": 1501}, True),
        ({"gamma": 0.5}, True),
    ],
)
def test_scoring_every_document_is_heavy(tiny, asked, heavy):
    for request in (SearchRequest, ExplainRequest):
        assert (request(q="wing", **asked).cost(tiny) > MAX_LIGHT_COST) == heavy


def test_filters_cost_what_their_conditions_documents_and_texts_do():
    class Masks(dict):
        def __init__(self, documents, **sizes):
            self.size = documents
            self.fields = {
                name: SimpleNamespace(value_count=values, content=texts)
                for name, (values, texts) in sizes.items()
            }

    def cost(text, documents=20_000, values=20_000, texts=100_000):
        masks = Masks(documents, code=(values, texts), other=(10**9, 10**9))
        return costs.filter_cost(masks, text)

    assert cost("code CONTAINS 1") < 1
    assert cost("code CONTAINS 1", texts=10**7) > MAX_LIGHT_COST
    assert cost("code = 1", texts=10**7) < 1
    assert cost("code = 1", documents=10**7) > MAX_LIGHT_COST
    assert cost("code = 1", values=10**7) > MAX_LIGHT_COST  # many lists
    assert cost("code = 1 AND code = 2") > 1.9 * cost("code = 1")
    assert costs.filter_cost(Masks(10**6), {"field": "code", "=": 1, ">": 2}) > 4


def test_a_filter_whose_mask_is_cached_costs_nothing(tiny_home):
    body = SearchRequest(q="wing", filter=" OR ".join(["year = 1"] * 400))
    with open_index(tiny_home / "tiny") as index:
        assert body.cost(index) > MAX_LIGHT_COST
        index.search("wing", filter=body.filter)
        assert body.cost(index) < MAX_LIGHT_COST


def test_facets_of_a_common_query_are_counted_in_the_event_loop(tiny_home, monkeypatch):
    """Counting the values of two fields in all 21,578 stories of Reuters takes 1 ms."""
    counts = costs.QueryCounts(words=8, matches=21_578)
    monkeypatch.setattr(costs, "counts_of", lambda *_: counts)
    body = SearchRequest(q="wing", highlight=True, facets=["year", "kind"])
    with open_index(tiny_home / "tiny") as index:
        assert body.cost(index) <= MAX_INLINE_COST
        counts = costs.QueryCounts(words=8, matches=1_000_000)
        assert body.cost(index) > MAX_LIGHT_COST


def test_matches_count_if_all_of_them_are_needed(tiny_home, monkeypatch):
    monkeypatch.setattr(costs, "COUNTED_MATCH", 10.0)
    with open_index(tiny_home / "tiny") as index:
        assert SearchRequest(q="wing", facets=["year"]).cost(index) > MAX_LIGHT_COST
        assert SearchRequest(q="nothing", facets=["year"], spelling="off").cost(index) < 10
        assert SearchRequest(q="", sort=["year"], facets=["year"]).cost(index) > MAX_LIGHT_COST
        assert SearchRequest(q="wing").cost(index) < MAX_LIGHT_COST


def test_misspelt_words_cost_more_among_more_terms(tiny_home, monkeypatch):
    with open_index(tiny_home / "tiny") as index:
        body = SearchRequest(q="wnig")
        assert body.cost(index) < MAX_LIGHT_COST
        monkeypatch.setattr(costs, "MISSPELT_TERMS", len(index.arrays.vocabulary) / 3)
        assert body.cost(index) > MAX_LIGHT_COST


def test_suggestions_for_a_long_text_are_heavy(tiny_home):
    with open_index(tiny_home / "tiny") as index:
        for text, is_heavy in (("win", False), ("wing " * 150, True)):
            cost = index.search_cost(Query(text, 1)) + costs.suggestions_cost(text, 10)
            assert (cost > MAX_LIGHT_COST) == is_heavy


def test_the_ranker_of_the_index_counts(tmp_path):
    documents = [{"id": str(n), "text": f"wing {n}"} for n in range(3)]
    with build(documents, name="lsi", home=tmp_path, ranker="lsi", dimensions=2) as index:
        assert SearchRequest(q="wing").cost(index) > MAX_LIGHT_COST
        assert SearchRequest(q="wing", ranker="bm25").cost(index) < MAX_LIGHT_COST


def test_phrases_of_frequent_words_count(tiny_home, monkeypatch):
    monkeypatch.setattr(costs, "PHRASE_DOCUMENT", 100.0)
    with open_index(tiny_home / "tiny") as index:
        assert SearchRequest(q='"boundary layer"', operators=True).cost(index) > MAX_LIGHT_COST
        assert SearchRequest(q='"wing"', operators=True).cost(index) < MAX_LIGHT_COST
        assert SearchRequest(q='"boundary slipstraem"', spelling="off").cost(index) < MAX_LIGHT_COST


def test_the_texts_of_hits_count(tiny_home, monkeypatch):
    body = SearchRequest(q="wing")
    with open_index(tiny_home / "tiny") as index:
        short = body.cost(index)
        monkeypatch.setattr(costs, "HIT_BYTE", 0.1)
        assert body.cost(index) > MAX_LIGHT_COST > short


def test_vectors_cost_by_their_number_and_dimensions(tiny_home, monkeypatch):
    with_vector = Query("wing", vector={"space": [1.0]})
    with open_index(tiny_home / "tiny") as index:
        (state,) = part_states(index)

        def cost(values, query=with_vector):
            monkeypatch.setattr(costs, "_vector_values", lambda _: values)
            return sum(costs.search_cost(state, query, embeds=True))

        assert cost(6_000 * 384) < MAX_LIGHT_COST
        assert cost(6_000 * 384, Query("wing")) > cost(6_000 * 384) + 5
        for documents, dimensions in ((300_000, 384), (6_000, 8_192)):
            assert cost(documents * dimensions) > MAX_LIGHT_COST


@pytest.mark.parametrize("partitions", [1, 3])
def test_making_the_view_of_a_tenant_is_charged_once(tmp_path, monkeypatch, partitions):
    texts = ("wing", "flow", "heat")
    documents = [
        {"id": f"{text}{n}", "text": f"{text} {n}", "tenant": text}
        for text in texts
        for n in range(9)
    ]
    options = {} if partitions == 1 else {"partitions": partitions, "workers": 1}
    monkeypatch.setattr(costs, "VIEW_DOCUMENT", 1.0)

    def cost(q):
        return cost_for(index, "tenant = wing", SearchRequest(q=q).cost)

    with build(documents, name="views", home=tmp_path, **options) as index:
        assert cost("flow") > 27
        index.restricted("tenant = wing")
        assert cost("wing") < 5
        # By the words of the view: the other tenants' ones are misspelt there.
        assert cost("flow") > SearchRequest(q="flow").cost(index) + costs.MISSPELT / 2
        assert cost_for(index, None, SearchRequest(q="wing").cost) < 5
