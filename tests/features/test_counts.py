"""Counting: a worked example, the order of the vocabulary, and empty documents."""

from __future__ import annotations

import numpy as np
import pytest

from klsa_search.features import CountsBuilder, Vocabulary, counts
from tests.worlds import counts_of, random_documents


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


@pytest.mark.parametrize("block", [1, 7, 50])
def test_blocks_change_nothing(block, monkeypatch):
    documents = ["", *random_documents(40, 12), "", "once never"]

    def counted():
        builder = CountsBuilder()
        for document in documents:
            builder.add(document.split()[:4], [], document.split()[4:], [])
        return builder.finish()

    whole = counted()
    monkeypatch.setattr(counts, "_BLOCK", block)
    blocks = counted()
    for one, other in ((whole.matrix, blocks.matrix), (whole.pairs, blocks.pairs)):
        assert one.shape == other.shape
        assert one.dtype == other.dtype == np.int32
        for name in ("indptr", "indices", "data"):
            assert np.array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize("terms", [["b", "a"], ["a", "a"]])
def test_a_vocabulary_is_sorted_and_without_repeats(terms):
    with pytest.raises(ValueError, match="sorted"):
        Vocabulary(terms)
