"""Postings: the entries of a matrix by column, and the raw row of a query."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from klsa_search.kernel import Postings

WEIGHTS = np.array([[1.0, 0, 4], [0, 2, 0], [0, 0, 0], [3, 0, 5]])


def asked(*pairs):
    numbers, counts = zip(*pairs, strict=True)
    return np.array(numbers, np.int64), np.array(counts, np.float32)


def test_a_term_has_its_documents_in_order():
    postings = Postings.of(sparse.csr_array(WEIGHTS))
    assert [array.tolist() for array in postings.of_term(0)] == [[0, 3], [1, 3]]
    assert [array.tolist() for array in postings.of_term(1)] == [[1], [2]]
    assert (postings.size, postings.starts.tolist()) == (4, [0, 2, 3, 5])
    types = postings.starts.dtype, postings.documents.dtype, postings.weights.dtype
    assert types == (np.int64, np.int32, np.float32)


def test_a_row_adds_up_what_each_term_gives():
    postings = Postings.of(sparse.csr_array(WEIGHTS))
    assert postings.query_row(*asked((0, 1), (2, 2))).tolist() == [9, 0, 0, 13]
    assert postings.query_row(np.zeros(0, np.int64), np.zeros(0, np.float32)).tolist() == [0] * 4


def test_documents_that_hold_any_of_the_terms_are_counted_once():
    postings = Postings.of(sparse.csr_array(WEIGHTS))
    found = [postings.matches(np.array(terms, np.int64)) for terms in ([0, 2], [1, 2], [])]
    assert found == [2, 3, 0]
