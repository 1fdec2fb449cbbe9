"""A reranker orders the first hits; scores, totals and later hits stay."""

import json
import threading

import numpy as np
import pytest

import klsa_search as klsa
from klsa_search.cli.search import klsa_search as command
from klsa_search.client.results import ResultsJson, read
from klsa_search.embedding import model
from klsa_search.embedding.model import CheckedReranker
from klsa_search.errors import QueryError
from klsa_search.search.index import open_index
from klsa_search.service.open_indexes import OpenIndexes
from tests.support.application import app_of_indexes
from tests.support.client import AppClient

DOCUMENTS = [
    {"id": f"d{n}", "title": f"Note {n}", "text": "wet roads " * (n + 1) + "and so on"}
    for n in range(8)
]


def longest(query, texts):
    return [len(text) for text in texts]


def shortest(query, texts):
    return [-len(text) for text in texts]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    klsa.build(DOCUMENTS, name="notes", home=home, dimensions=2).close()
    return home / "notes"


@pytest.fixture
def opened(folder):
    indexes = []

    def opened(reranker):
        indexes.append(open_index(folder, reranker=reranker))
        return indexes[-1]

    yield opened
    for index in indexes:
        index.close()


def ids(results):
    return [hit.id for hit in results]


def test_the_first_hits_are_in_the_order_of_the_reranker(opened):
    index = opened(shortest)
    plain = index.search("wet roads", 8)
    found = index.search("wet roads", 8, rerank=5)
    assert ids(found) == sorted(ids(plain)[:5]) + ids(plain)[5:]
    assert [hit.rank for hit in found] == list(range(1, 9))
    scores = {hit.id: hit.score for hit in plain}
    before = {hit.id: hit.rank for hit in plain}
    for hit in found:
        assert hit.score == scores[hit.id]
    for hit in found.hits[:5]:
        whole = index.document(hit.id)
        assert hit.rerank.score == -len(f"{whole.title}\n{whole.text}")
        assert hit.rerank.rank == before[hit.id]
    assert [hit.rerank for hit in found.hits[5:]] == [None] * 3
    assert (found.total, found.warnings) == (plain.total, ())
    assert index.search("wet roads", 8, rerank=5) == found


def test_pages_continue_each_other(opened):
    index = opened(longest)
    whole = index.search("wet roads", 8, rerank=5, quality=True)
    pages = [index.search("wet roads", 3, offset=n, rerank=5, quality=True) for n in (0, 3, 6)]
    assert [hit for page in pages for hit in page] == list(whole)
    assert [page.offset for page in pages] == [0, 3, 6]
    for page in pages:
        assert page.quality == max(hit.quality for hit in page)


def test_equal_scores_keep_their_order(opened):
    index = opened(lambda query, texts: [0.0] * len(texts))
    assert ids(index.search("wet roads", 8, rerank=8)) == ids(index.search("wet roads", 8))


def test_a_pinned_document_and_one_named_by_its_id_stay_first(opened):
    index = opened(longest)
    assert ids(index.search("d3", 8, rerank=8))[0] == "d3"
    index.set_rules([{"id": "pin", "then": {"pin": [{"id": "d0", "position": 2}]}}])
    assert ids(index.search("wet roads", 8, rerank=8)) == [
        "d7",
        "d0",
        "d6",
        "d5",
        "d4",
        "d3",
        "d2",
        "d1",
    ]
    index.set_rules([])


def test_nothing_is_called_without_hits_or_words(opened):
    index = opened(lambda query, texts: pytest.fail("called"))
    assert not index.search("submarines", rerank=3).hits
    assert not index.search(" ", rerank=3).hits


def test_the_best_passage_is_what_the_reranker_gets(tmp_path):
    got = []

    def reranker(query, texts):
        got.extend(texts)
        return list(range(len(texts)))

    texts = ["dry sand " * 30 + "\n\n" + "wet roads " * 30, "wet roads are slippery"]
    records = [{"id": str(n), "title": "T", "text": text} for n, text in enumerate(texts)]
    klsa.build(records, name="long", home=tmp_path, dimensions=1, passages=20).close()
    with open_index(tmp_path / "long", reranker=reranker) as index:
        for group in ("document", "passage"):
            got.clear()
            hits = index.search("wet roads", rerank=10, group=group).hits
            assert len(got) == len(hits)
            assert all("wet roads" in text and "sand" not in text for text in got)
            assert hits[0].rerank.rank == len(hits)


WRONG = {
    "hangs": lambda query, texts: threading.Event().wait(5),
    "raises": lambda query, texts: 1 / 0,
    "nan": lambda query, texts: np.full(len(texts), np.nan),
    "too few": lambda query, texts: [1.0],
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_search_goes_on_without_a_reranker_that_fails(opened, wrong, monkeypatch):
    monkeypatch.setattr(model, "RERANK_SECONDS", 0.05)
    index = opened(CheckedReranker(WRONG[wrong], "mine"))
    for number in range(5):
        found = index.search("wet roads", 4, offset=number, rerank=6)
        assert found.hits == index.search("wet roads", 4, offset=number).hits
        (warning,) = found.warnings
        assert warning.startswith("the hits are not reranked: reranker `mine` ")


def test_a_reranker_is_needed_and_hits_sorted_by_fields_are_refused(opened):
    with pytest.raises(QueryError, match="opened without a reranker"):
        opened(None).search("wet", rerank=3)
    with pytest.raises(QueryError, match="sorted by fields"):
        opened(longest).search("wet", rerank=3, sort=["year:asc"])
    with pytest.raises(QueryError, match="must be at least 1"):
        opened(longest).search("wet", rerank=0)


def test_over_http(folder):
    def opener(path):
        return open_index(path, reranker=longest)

    with OpenIndexes(folder.parent, interval=0, opener=opener) as open_indexes:
        client = AppClient(app_of_indexes(open_indexes))
        answer = client.get("/search?q=wet+roads&k=2&rerank=8").json()
        with open_index(folder, reranker=longest) as index:
            expected = index.search("wet roads", 2, rerank=8)
        assert [hit["rerank"]["score"] for hit in answer["hits"]] == [96.0, 86.0]
        assert read(ResultsJson)(answer).hits == expected.hits
        assert "warnings" not in answer
        refused = client.get("/search?q=wet&rerank=101").json()["error"]
        assert (refused["code"], refused["field"]) == ("bad_query", "rerank")

    def failing(path):
        return open_index(path, reranker=WRONG["raises"])

    with OpenIndexes(folder.parent, interval=0, opener=failing) as open_indexes:
        answer = AppClient(app_of_indexes(open_indexes)).get("/search?q=wet+roads&rerank=8").json()
        assert "ZeroDivisionError" in answer["warnings"][0]
        assert read(ResultsJson)(answer).warnings == tuple(answer["warnings"])


def test_on_the_command_line(folder, capsys):
    options = ["--home", str(folder.parent), "--rerank", "8", "-k", "2"]

    def run(*more):
        command.main(["notes", "wet roads", *options, *more], standalone_mode=False)
        return capsys.readouterr()

    found = json.loads(run("--reranker", f"python:{__name__}:longest", "--json").out)
    assert [hit["id"] for hit in found["hits"]] == ["d7", "d6"]
    assert "warnings" not in found
    explained = run("--reranker", f"python:{__name__}:longest", "--explain").out
    assert "rerank" in explained
    warned = run("--reranker", f"python:{__name__}:raising")
    assert warned.err.startswith("warning: the hits are not reranked")


def raising(query, texts):
    return 1 / 0
