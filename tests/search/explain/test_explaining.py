"""Explanations add up to the scores, for every ranker and form of D."""

from __future__ import annotations

import numpy as np
import pytest

from klsa_search import build
from klsa_search.errors import DocumentNotFound, QueryError
from klsa_search.search.rankers import RANKERS
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


def total(found):
    parts = found.lexical, found.coverage, found.latent, found.expansion
    return sum(part.value for part in parts if part is not None)


def assert_adds_up(found):
    parts = [found.lexical, found.coverage, found.latent, found.expansion]
    scale = sum(abs(part.value) for part in parts if part is not None)
    assert total(found) == pytest.approx(found.score, rel=1e-6, abs=1e-6 * scale + 1e-12)
    for part in parts[:2]:
        if part is not None and part.terms:
            assert sum(term.value for term in part.terms) == pytest.approx(part.value, rel=1e-6)
    if found.lexical is not None:
        added = sum(term.bm25 for term in found.lexical.terms)
        assert added == pytest.approx(found.bm25, rel=1e-6)
    if found.latent is not None and found.latent.terms:
        added = sum(term.value for term in found.latent.terms)
        assert added == pytest.approx(found.latent.value, rel=1e-4, abs=1e-5)
    if found.expansion is not None:
        seeds = [seed.value for seed in found.expansion.seeds]
        assert sum(seeds) + found.expansion.others == pytest.approx(found.expansion.value)
        for seed in found.expansion.seeds:
            assert 0 <= seed.weight <= 1
            assert sum(shared.share for shared in seed.shared) <= 1 + 1e-9
    for term in found.coverage.terms if found.coverage else ():
        assert sum(lender.share for lender in term.lenders) <= 1 + 1e-9


@pytest.mark.parametrize("ranker", RANKERS)
@pytest.mark.parametrize("query", QUERIES)
def test_explanations_of_hits_add_up(index, ranker, query):
    if RANKERS[ranker].uses_lsi and not index.arrays.has_spectrum:  # it was written to
        with pytest.raises(QueryError, match="rebuild it with --ranker lsi"):
            index.search(query, 30, ranker=ranker, explain=True)
        return
    plain = index.search(query, 8, ranker=ranker)
    explained = index.search(query, 8, ranker=ranker, explain=True)
    assert [hit.id for hit in explained] == [hit.id for hit in plain]
    assert [hit.score for hit in explained] == [hit.score for hit in plain]
    assert all(hit.explanation is None for hit in plain)
    for hit in explained:
        assert hit.explanation.id == hit.id
        assert hit.explanation.score == hit.score
        assert hit.explanation.ranker == ranker
        assert_adds_up(hit.explanation)


@pytest.mark.parametrize("exact", [False, True])
def test_any_document_can_be_explained(index, exact):
    for query in QUERIES:
        scores = index.scores(query, exact=True)
        for id_ in index.ids(np.flatnonzero(index.arrays.live_docs())[::9]):
            found = index.explain(query, id_, exact=exact)
            assert found.id == id_
            assert_adds_up(found)
            if exact and found.score > 0:
                (position,) = index.doc_ids([id_])
                assert found.score == pytest.approx(float(scores[position]), rel=1e-5)


def test_parts_add_up_for_filtered_sorted_and_low_ranked_hits(index):
    mask = np.arange(index.max_doc) % 3 == 1
    for wishes in ({"mask": mask}, {"min_score": 0.01}, {"offset": 40}):
        for hit in index.search(QUERIES[-1], 40, explain=True, **wishes):
            assert_adds_up(hit.explanation)


def test_an_explanation_needs_a_known_id_and_valid_parameters(index):
    with pytest.raises(DocumentNotFound, match="nowhere"):
        index.explain("t01", "nowhere")
    with pytest.raises(QueryError, match="alpha"):
        index.explain("t01", "0-001", alpha=2)


def test_a_document_that_nothing_leads_to_scores_nothing(index):
    found = index.explain("unheard of", "0-001")
    assert found.score == found.bm25 == 0
    assert total(found) == 0


@pytest.fixture(scope="module")
def cars(tmp_path_factory):
    """Two documents speak of cars by both their names, one by one name only."""
    cars = {
        "both": "car automobile engine wheel brake",
        "again": "car automobile engine brake wheel gear",
        "other": "automobile engine wheel brake",
    }
    documents = [{"id": id_, "text": text} for id_, text in cars.items()]
    documents += [{"id": f"else-{at}", "text": text} for at, text in enumerate(topic_documents())]
    home = tmp_path_factory.mktemp("cars")
    opened = build(documents, name="cars", home=home, language="none")
    yield opened
    opened.close()


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
    assert term.own == 0
    assert term.near > 0
    assert {lender.id for lender in term.lenders} == {"both", "again"}
    assert found.alpha == pytest.approx(0.7 * (1 - 0.7))


def test_terms_of_feedback_are_distinguished_from_query_terms(cars):
    found = cars.explain("car", "other", ranker="rm3")
    assert set(found.feedback) == {"both", "again"}
    added = {term.term: term.added for term in found.lexical.terms}
    assert added["car"] is False
    assert added["engine"] is True
