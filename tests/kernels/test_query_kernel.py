"""The query kernel: bm25s as an oracle, and fixed statistics."""

import math
from dataclasses import replace
from typing import get_args

import bm25s
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klsa_search.core.build_settings import MAX_BURSTINESS, IdfName
from klsa_search.kernels.bm25 import idf_of, quantised_length
from klsa_search.kernels.postings import UNIT, Postings
from klsa_search.kernels.query_kernel import DocumentCounts, QueryKernel, TermWeighting
from tests.support.worlds import counts_of, idf_of_counts, query_kernel, random_documents


def every(kernel):
    """Return the numbers of all terms."""
    return np.arange(len(kernel.counts.frequencies))


def bursts(frequencies, occurrences, documents, limit):
    """Return b(t) of terms with these counts."""
    counts = DocumentCounts(documents, frequencies, occurrences)
    kernel = replace(query_kernel(counts_of("a")), counts=counts, weighting=TermWeighting(limit))
    return kernel.burstiness(every(kernel))


@pytest.mark.parametrize(
    ("k1", "b"), [(1.2, 0.75), (2.0, 0.75), (0.9, 0.4), (0.5, 0.0), (1.5, 1.0), (100.0, 0.3)]
)
def test_the_query_kernel_agrees_with_bm25s(k1, b):
    """To the grid the mean length lies on: documents of one length have one on it."""
    documents = [document.split()[:8] for document in random_documents() if len(document) > 32]
    oracle = bm25s.BM25(method="lucene", k1=k1, b=b)
    oracle.index(documents, show_progress=False)
    counts = counts_of(*(" ".join(document) for document in documents))
    assert quantised_length(8.0) == 8.0
    kernel = query_kernel(counts, k1=k1, b=b)
    for query in (["t00"], ["t03", "t11", "t25"], ["t01", "t01", "t39"]):
        known = [counts.vocabulary.numbers[t] for t in query if t in counts.vocabulary.numbers]
        numbers, asked = np.unique(known, return_counts=True)
        ours = kernel.query_row(numbers, asked.astype(np.float32))
        theirs = oracle.get_scores(query)
        # bm25s writes the formula without the constant factor k1 + 1 of its numerator.
        off = 4 * len(query) * (k1 + 1) / UNIT
        assert ours == pytest.approx(theirs * (k1 + 1), rel=1e-4, abs=off)


@pytest.mark.parametrize(("idf", "factor"), [("robertson", 2.2), ("atire", 1.0)])
def test_other_idfs_are_those_of_a_peer(idf, factor):
    documents = [document.split()[:8] for document in random_documents() if len(document) > 32]
    oracle = bm25s.BM25(method=idf, k1=1.2, b=0.75)
    oracle.index(documents, show_progress=False)
    counts = counts_of(*(" ".join(document) for document in documents))
    kernel = query_kernel(counts, k1=1.2, b=0.75, weighting=TermWeighting(idf=idf))
    for term, number in counts.vocabulary.numbers.items():
        ours = kernel.query_row(np.array([number]), np.ones(1, np.float32))
        theirs = oracle.get_scores([term])
        assert ours == pytest.approx(theirs * factor, rel=1e-4, abs=4 * 2.2 / UNIT)


@pytest.mark.parametrize("idf", get_args(IdfName))
def test_no_idf_forgets_what_matches(idf):
    """Held by all of three documents, by more than half, by one, and by none."""
    kernel = query_kernel(counts_of("a b", "a b", "a c"), weighting=TermWeighting(idf=idf))
    assert (kernel.term_weights(every(kernel)) > 0).all()
    assert (kernel.weights(every(kernel)) > 0).all()
    assert kernel.unseen > 0
    assert (idf_of(np.zeros(1), 0, idf) > 0).all()


def test_a_score_worked_by_hand():
    """Three documents of two terms: K_d = k1, and the first term is in two of them."""
    counts = counts_of("a b", "a a", "c d")
    kernel = query_kernel(counts, k1=1.0, b=0.75)
    w = math.log(1 + 1.5 / 2.5)
    row = kernel.query_row(np.array([0]), np.array([2.0]))
    assert row == pytest.approx([2 * w * 2 * 1 / 2, 2 * w * 2 * 2 / 3, 0], abs=1e-4)
    documents, impacts = kernel.impacts_of(0)
    assert documents.tolist() == [0, 1]
    assert impacts == pytest.approx([w * 2 * 1 / 2, w * 2 * 2 / 3], abs=1e-4)


def test_the_mean_length_stands_still_on_a_grid_of_one_percent():
    lengths = np.exp(np.random.default_rng(0).uniform(0, 8, 1000))
    standing = np.array([quantised_length(length) for length in lengths])
    assert (np.abs(np.log2(standing / lengths)) <= 1 / 128 + 1e-12).all()
    assert [quantised_length(length) for length in standing] == pytest.approx(standing)
    assert quantised_length(84.0) == quantised_length(84.1)


def test_a_term_of_tiny_weight_still_matches():
    """A term of all documents: each scores one step at least, however many there are."""
    kernel = query_kernel(counts_of(*["a"] * 3000), k1=1.2, b=0.75)
    assert (kernel.query_row(np.array([0]), np.ones(1)) > 0).all()


def test_the_largest_query_stays_within_32_bits():
    """256 terms, each in one of 2^32 documents, in the largest bursts there are."""
    worth = max(idf_of(np.array([1]), 2**32, idf)[0] for idf in get_args(IdfName))
    weight = int(np.rint(MAX_BURSTINESS * worth * UNIT))
    assert 256 * (1 + (weight * (UNIT - 1) >> 16)) < 2**31


def test_weights_do_not_depend_on_the_postings():
    counts = counts_of(*random_documents())
    postings = Postings.of(counts.matrix, np.ones(counts.matrix.shape[0]), 1.2)
    kernel = QueryKernel.of(postings)
    term_weights, weights, burstiness = kernel.native.of(every(kernel))
    assert term_weights == pytest.approx(idf_of_counts(counts), rel=1e-6)
    assert np.abs(weights / UNIT - term_weights).max() <= 1 / UNIT
    assert (burstiness == 1).all()


def test_bursts_worked_by_hand():
    """a is eight times in one of four documents, b once in each of two, c never, d is common."""
    weighting = TermWeighting(burstiness=2.0, common=np.array([2]), common_weight=0.5)
    kernel = query_kernel(counts_of("a a a a a a a a b", "b", "d", "d"), weighting=weighting)
    by_chance = 4 * (1 - math.exp(-8 / 4))
    term_weights, weights, burstiness = kernel.native.of(every(kernel))
    assert burstiness == pytest.approx([math.sqrt(by_chance), 1, 1])
    idf = [math.log(1 + 3.5 / 1.5), math.log(1 + 2.5 / 2.5), math.log(1 + 2.5 / 2.5)]
    assert term_weights == pytest.approx(idf * burstiness * [1, 1, 0.5])
    assert weights == pytest.approx(term_weights * UNIT, abs=1)


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1),
    st.integers(50, 10**6),
    st.floats(1, 4),
)
def test_bursts_stay_within_their_limits_and_grow_with_occurrences(held, documents, limit):
    frequencies = np.array([n for n, _ in held])
    occurrences = frequencies + np.array([more for _, more in held])
    found = bursts(frequencies, occurrences, documents, limit)
    assert ((found >= 1) & (found <= np.float32(limit))).all()
    assert (bursts(frequencies, occurrences + 1, documents, limit) >= found).all()
    assert (bursts(frequencies, frequencies, documents, limit) == 1).all()


def test_the_share_of_a_query_that_a_document_holds():
    kernel = query_kernel(counts_of("a b", "b c", "c", "c"))
    terms, counts = np.array([0, 1, 2]), np.array([1.0, 1.0, 2.0])
    weights = kernel.weights(every(kernel)) * [1, 1, 2]
    assert kernel.matched_share(terms, counts, 0) == weights[:2].sum() / weights.sum()
    assert kernel.matched_share(terms[1:], counts[1:], 1) == 1
    assert kernel.matched_share(terms[:1], counts[:1], 2) == 0
