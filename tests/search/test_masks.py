"""Masks restrict the hits of every ranker."""

from __future__ import annotations

from contextlib import closing

import numpy as np
import pytest

from klsa_search.errors import QueryError
from klsa_search.indexing.build import build
from klsa_search.search.index import Index
from tests.support.worlds import random_documents

QUERIES = ["t03 t07", "t01 t02 t05 nothing"]
RANKERS = [
    {},
    {"ranker": "bm25"},
    {"ranker": "lsi"},
    {"exact": True},
    {"alpha": 0.0},
    {"spectral": "exponential"},
]


@pytest.fixture(scope="module")
def index(tmp_path_factory) -> Index:
    texts = random_documents(300, 40)
    documents = [{"id": str(number), "text": text} for number, text in enumerate(texts)]
    with closing(build(documents, name="masks", home=tmp_path_factory.mktemp("masks"))) as index:
        yield index


@pytest.fixture(params=[0.02, 0.5])
def mask(request, index):
    return np.random.default_rng(7).random(len(index)) < request.param


@pytest.mark.parametrize("ranker", RANKERS, ids=str)
@pytest.mark.parametrize("query", QUERIES)
def test_a_mask_does_not_change_scores(index, mask, ranker, query):
    scores = index.scores(query, **ranker) * mask
    positions, values = index.rank(query, len(index), mask=mask, **ranker)
    assert len(positions) > 0
    assert mask[positions].all()
    assert values == pytest.approx(scores[positions])
    assert len(positions) == np.count_nonzero(scores > 0)
    together = index.rank_many([query, query], len(index), mask=mask, **ranker)
    for other, same in together:
        assert np.array_equal(other, positions)
        assert np.array_equal(same, values)


@pytest.mark.parametrize("query", ["", "nothing"])
def test_nothing_is_found_within_a_mask_either(index, query):
    assert len(index.rank(query, mask=np.ones(len(index), np.bool_))[0]) == 0


def test_a_mask_of_nothing_has_no_answer(index):
    nothing = np.zeros(len(index), np.bool_)
    for ranker in RANKERS:
        assert not len(index.rank("t03", mask=nothing, **ranker)[0])
        assert index.search("t03", mask=nothing, **ranker).total == 0


@pytest.mark.parametrize(
    "mask", [np.ones(3, np.bool_), np.ones(300), np.ones((300, 1), np.bool_), [True] * 300]
)
def test_invalid_masks_are_refused(index, mask):
    with pytest.raises(QueryError, match=r"mask is .*max_doc = 300"):
        index.rank("t03", mask=mask)
