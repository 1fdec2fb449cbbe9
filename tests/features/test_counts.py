"""Counting: a worked example, the order of the vocabulary, and empty documents."""

from __future__ import annotations

import numpy as np
import pytest

from klsa_search.features import CountsBuilder, Vocabulary
from tests.worlds import counts_of


def test_a_worked_example():
    counts = counts_of("wing flow wing", "flow", "")
    assert list(counts.vocabulary.terms) == ["flow", "wing"]
    assert counts.matrix.toarray().tolist() == [[1, 2], [1, 0], [0, 0]]
    assert counts.lengths.tolist() == [3, 1, 0]
    assert counts.document_frequencies.tolist() == [2, 1]


def test_the_vocabulary_is_sorted_whatever_the_order_of_arrival():
    one = counts_of("b a", "c")
    other = counts_of("c", "a b")
    assert one.vocabulary.terms == other.vocabulary.terms
    assert np.array_equal(one.matrix.toarray(), other.matrix.toarray()[::-1])


def test_no_document_is_a_collection_too():
    counts = CountsBuilder().finish()
    assert counts.matrix.shape == (0, 0)
    assert counts.lengths.tolist() == []


def test_pairs_stand_side_by_side_in_either_order_and_in_two_documents():
    builder = CountsBuilder()
    builder.add(["wing", "flow"], ["drag", "wing", "wing"])  # a title and a text
    builder.add(["flow", "wing", "drag"])
    counts = builder.finish()
    # flow-wing: once in both. drag-wing: once in both. wing-wing is no pair; flow-drag is across
    # the title's end in the first, and not adjacent in the second.
    assert counts.pairs.toarray().tolist() == [[1, 1], [1, 1]]
    assert counts.matrix.toarray().tolist() == [[1, 1, 3], [1, 1, 1]]


def test_a_pair_of_one_document_only_is_left_out():
    assert counts_of("wing flow", "flow drag").pairs.shape == (2, 0)


@pytest.mark.parametrize("terms", [["b", "a"], ["a", "a"]])
def test_a_vocabulary_is_sorted_and_without_repeats(terms):
    with pytest.raises(ValueError, match="sorted"):
        Vocabulary(terms)
