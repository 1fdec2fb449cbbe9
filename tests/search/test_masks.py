"""Masks restrict the hits of every ranker."""

import numpy as np
import pytest

from klsa_search.errors import QueryError
from klsa_search.search.parts.reading import positions_of
from tests.support.worlds import random_documents

RANKERS = [{}, {"ranker": "bm25"}, {"alpha": 0.0}, {"exact": True}]
OF_ONE_PART = [{"ranker": "lsi"}, {"spectral": "exponential"}]
"""Rankers that need the eigenvectors of all documents."""


@pytest.fixture(scope="module", params=[1, 4])
def index(index_of, request):
    texts = random_documents(300, 40)
    documents = [{"id": str(number), "text": text} for number, text in enumerate(texts)]
    options = {} if request.param == 1 else {"partitions": request.param, "workers": 1}
    return index_of(documents, **options)


@pytest.fixture(params=[0.02, 0.5])
def mask(request, index):
    return np.random.default_rng(7).random(len(index)) < request.param


def places(index, doc_ids):
    """Return the places of doc ids in arrays of all doc ids."""
    return positions_of(doc_ids, [part.max_doc for part in index.partitions])


def test_a_mask_does_not_change_scores(index, mask):
    query = "t01 t02 t05 nothing"
    for ranker in RANKERS + OF_ONE_PART:
        if ranker in OF_ONE_PART and len(index.partitions) > 1:
            with pytest.raises(QueryError, match=r"partitions|eigenvectors"):
                index.rank(query, mask=mask, **ranker)
            continue
        scores = index.scores(query, **ranker) * mask
        doc_ids, values = index.rank(query, len(index), mask=mask, **ranker)
        found = places(index, doc_ids)
        assert len(found) > 0
        assert mask[found].all()
        # The default rounds E, and ranks only candidates, but in a small index of one part.
        is_exact = len(index.partitions) == 1 or bool(ranker)
        assert values == pytest.approx(scores[found], rel=1e-5 if is_exact else 1e-2)
        if is_exact:
            assert len(found) == np.count_nonzero(scores > 0)
        for other, same in index.rank_many([query] * 2, len(index), mask=mask, **ranker):
            assert np.array_equal(other, doc_ids)
            assert np.array_equal(same, values)


def test_a_mask_may_be_doc_ids(index, mask):
    expected = index.rank("t03 t07", 50, mask=mask, ranker="bm25")
    every = np.array(index.doc_ids([str(number) for number in range(300)]))
    chosen = every[np.isin(places(index, every), np.flatnonzero(mask))]
    for given in (chosen, chosen.astype(np.uint32)):
        found = index.rank("t03 t07", 50, mask=given, ranker="bm25")
        assert [each.tolist() for each in found] == [each.tolist() for each in expected]
    hits = index.search("t03 t07", 300, mask=chosen, ranker="bm25").hits
    assert {hit.id for hit in hits} <= set(index.ids(chosen))
    assert not index.search("t03", mask=chosen[:0]).hits


@pytest.mark.parametrize("query", ["", "nothing"])
def test_nothing_is_found_within_a_mask_either(index, query):
    assert len(index.rank(query, mask=np.ones(len(index), np.bool_))[0]) == 0


def test_a_mask_of_nothing_has_no_answer(index):
    nothing = np.zeros(len(index), np.bool_)
    for ranker in RANKERS + (OF_ONE_PART if len(index.partitions) == 1 else []):
        assert not len(index.rank("t03", mask=nothing, **ranker)[0])
        assert index.search("t03", mask=nothing, **ranker).total == 0


def test_invalid_masks_are_refused(index):
    for wrong in (
        np.ones(3, np.bool_), np.ones(300), np.ones((300, 1), np.bool_), [True] * 300,
        np.array([-1]), np.array([300 + 2**30]), np.array([290, 290]), np.ones(300, np.int64),
    ):  # fmt: skip
        with pytest.raises(QueryError, match=r"mask is .*max_doc = 300"):
            index.rank("t03", mask=wrong)
