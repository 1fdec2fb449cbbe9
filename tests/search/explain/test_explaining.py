"""Explanations of any document, and what they name."""

import numpy as np
import pytest

from klsa_search import build
from klsa_search.errors import DocumentNotFound, QueryError
from tests.search.explain.test_adding_up import assert_adds_up
from tests.support.worlds import random_documents, topic_documents

QUERIES = ["t00", "t25 t25 t07", "t02 t05 t09 t14 t20 t31"]
WAYS = {
    "cut": {},
    "paper": {"preset": "paper"},
    "squashed": {"spectral": "squashing"},
    "written": {},
}


def records(seed=0, size=80):
    documents = random_documents(size, 40, seed)
    return [
        {"id": f"{seed}-{at:03d}", "title": f"No {at}", "text": text}
        for at, text in enumerate(documents)
    ]


@pytest.fixture(scope="module", params=WAYS)
def index(request, tmp_path_factory):
    home = tmp_path_factory.mktemp(request.param)
    opened = build(records(), name="random", home=home, language="none", **WAYS[request.param])
    if request.param == "written":
        opened.add(records(seed=7, size=30))
        opened.delete([f"0-{at:03d}" for at in range(0, 80, 5)])
    yield opened
    opened.close()


@pytest.mark.parametrize("exact", [False, True])
def test_any_document_can_be_explained(index, exact):
    for query in QUERIES:
        scores = index.scores(query, exact=True)
        for id_ in index.ids(np.flatnonzero(index.arrays.live_docs())[::9]):
            found = index.explain(query, id_, exact=exact)
            assert found.id == id_
            assert_adds_up(found, 1)
            if exact and found.score > 0:
                (position,) = index.doc_ids([id_])
                assert found.score == pytest.approx(float(scores[position]), rel=1e-5)


def test_an_explanation_needs_a_known_id_and_valid_parameters(index):
    with pytest.raises(DocumentNotFound, match="nowhere"):
        index.explain("t01", "nowhere")
    with pytest.raises(QueryError, match="alpha"):
        index.explain("t01", "0-001", alpha=2)


def test_a_document_that_nothing_leads_to_scores_nothing(index):
    found = index.explain("unheard of", "0-001")
    assert found.score == found.bm25 == 0
    assert_adds_up(found, 1)


@pytest.fixture(scope="module")
def cars(index_of):
    """Two documents speak of cars by both their names, one by one name only."""
    cars = {
        "both": "car automobile engine wheel brake",
        "again": "car automobile engine brake wheel gear",
        "other": "automobile engine wheel brake",
    }
    documents = [{"id": id_, "text": text} for id_, text in cars.items()]
    documents += [{"id": f"else-{at}", "text": text} for at, text in enumerate(topic_documents())]
    return index_of(documents, language="none")


def test_an_explanation_names_what_brought_a_document(cars):
    found = cars.explain("car", "other")
    assert found.bm25 == 0
    assert found.lexical.value == 0
    assert {seed.id for seed in found.expansion.seeds} == {"both", "again"}
    for seed in found.expansion.seeds:
        assert seed.value > 0
        assert {"automobile", "engine"} <= {shared.term for shared in seed.shared}
        assert "car" not in {shared.term for shared in seed.shared}
    (term,) = found.coverage.terms
    assert term.term == "car"
    assert term.in_document == 0
    assert term.near > 0
    assert {neighbour.id for neighbour in term.neighbours} == {"both", "again"}
    assert found.alpha == pytest.approx(0.7 * (1 - 0.7))


def test_terms_of_feedback_are_distinguished_from_query_terms(cars):
    found = cars.explain("car", "other", ranker="rm3")
    assert set(found.feedback) == {"both", "again"}
    added = {term.term: term.added for term in found.lexical.terms}
    assert added["car"] is False
    assert added["engine"] is True
