"""Each stage of a search alone: rankings of scores, and orders of what they find."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klsa_search.search.engine.mask import Mask
from klsa_search.search.engine.top_docs import best_of, boosted, id_match_first, ranked
from klsa_search.search.pages.collectors import (
    SortKey,
    by_doc_id,
    by_fields,
    by_score,
    distinct,
    pinned_first,
    pinned_in_place,
)

SCORES = np.array([0.5, 0, 0.9, 0.5, 0.1, 0, 0.7, 0.2], np.float32)
RANK = partial(best_of, SCORES)
EVERY = np.ones(len(SCORES), np.bool_)


def field(values):
    """Return a field of one number for each document, NaN for none."""
    numbers = np.array(values, np.float64)
    return SimpleNamespace(starts=None, values=numbers, present=lambda: ~np.isnan(numbers))


def mask_of(*doc_ids):
    return Mask(np.isin(np.arange(len(SCORES)), doc_ids))


def test_documents_are_ranked_by_score_then_doc_id():
    top = RANK(3, None)
    assert (top.doc_ids.tolist(), top.total) == ([2, 6, 0], 6)
    assert RANK(9, mask_of(0, 1, 3)).doc_ids.tolist() == [0, 3]


def test_chosen_documents_keep_their_order_and_score_0_without_a_match():
    top = ranked(RANK, np.array([1, 6, 5, 0]), len(SCORES))
    assert top.doc_ids.tolist() == [1, 6, 5, 0]
    assert top.scores.tolist() == pytest.approx([0, 0.7, 0, 0.5])
    assert len(ranked(RANK, np.zeros(0, np.int64), len(SCORES)).doc_ids) == 0


def test_boosts_move_documents_and_keep_their_scores_before():
    factors = np.ones(len(SCORES))
    factors[4] = 20
    rank = boosted(RANK, factors)
    top = rank(2, None)
    assert (top.doc_ids.tolist(), top.total) == ([4, 2], 6)
    assert top.scores.tolist() == pytest.approx([2, 0.9])
    assert top.before is not None
    assert top.before.scores.tolist() == pytest.approx([0.1, 0.9])
    found = rank(9, mask_of(0, 1, 4))
    assert (found.doc_ids.tolist(), found.total) == ([4, 0], 2)


@pytest.mark.parametrize(
    ("named", "expected", "total"), [(4, [4, 2, 6], 6), (2, [2, 6, 0], 6), (1, [1, 2, 6], 7)]
)
def test_a_named_document_comes_first_match_or_not(named, expected, total):
    top = id_match_first(RANK, named, len(SCORES))(3, None)
    assert (top.doc_ids.tolist(), top.total) == (expected, total)
    assert top.scores[0] == SCORES[named]
    assert id_match_first(RANK, named, len(SCORES))(3, mask_of(3, 7)).doc_ids.tolist() == [3, 7]


def test_pages_of_a_ranking_that_rescores_do_not_overlap():
    def rank(k, mask):
        """Deeper rankings score the last document highest."""
        scores = SCORES.copy()
        scores[7] = 0.2 if k < 4 else 5
        return best_of(scores, k, mask)

    order = by_score(rank, None, page=2)
    assert order(2).doc_ids.tolist() == [2, 6]
    assert order(4).doc_ids.tolist() == [2, 6, 7, 0]


def test_fields_order_before_scores_and_missing_values_come_last():
    years = field([3, 3, 1, np.nan, 2, 1, 1, 2])
    order = by_fields(RANK, EVERY, [SortKey(years, descending=False)])
    assert order(9).doc_ids.tolist() == [2, 6, 5, 7, 4, 0, 1, 3]
    assert order(2).doc_ids.tolist() == [2, 6]
    order = by_fields(RANK, SCORES > 0, [SortKey(years, descending=True)])
    assert (order(9).doc_ids.tolist(), order(9).total) == ([0, 7, 4, 2, 6, 3], 6)


def test_documents_without_scores_are_in_the_order_of_doc_ids():
    top = by_doc_id(SCORES > 0)(3)
    assert (top.doc_ids.tolist(), top.scores.tolist(), top.total) == ([0, 2, 3], [0, 0, 0], 6)


def test_distinct_values_keep_the_first_of_each_and_all_without():
    colours = field([1, 1, 1, np.nan, 2, 2, 2, np.nan])
    order = distinct(by_score(RANK, None, 2), colours, SCORES > 0)
    top = order(9)
    assert (top.doc_ids.tolist(), top.total) == ([2, 6, 3, 7], 4)
    assert order(1).doc_ids.tolist() == [2]


@given(
    positions=st.dictionaries(st.integers(0, 7), st.integers(1, 9), max_size=4),
    count=st.integers(1, 9),
)
def test_pinned_documents_are_at_their_positions(positions, count):
    if len(set(positions.values())) < len(positions):
        return
    pins = np.array(list(positions), np.int64)
    pinned = ranked(RANK, pins, len(SCORES))
    of_unpinned = by_score(RANK, Mask(~np.isin(np.arange(len(SCORES)), pins)), 2)
    top = pinned_in_place(pinned_first(of_unpinned, pinned), positions)(count)
    unpinned = [doc_id for doc_id in RANK(9, None).doc_ids.tolist() if doc_id not in positions]
    assert top.total == len(unpinned) + len(positions)
    assert len(top.doc_ids) == min(count, top.total)
    found = top.doc_ids.tolist()
    assert [each for each in found if each not in positions] == unpinned[
        : len([each for each in found if each not in positions])
    ]
    for doc_id, position in positions.items():
        if position <= min(count, len(unpinned) + 1):
            assert found[position - 1] == doc_id
