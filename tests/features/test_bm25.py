"""BM25: figures worked by hand, and bm25s as an oracle."""

from __future__ import annotations

import math

import bm25s
import numpy as np
import pytest
from scipy import sparse

from klsa_search.features import bm25, tfidf
from klsa_search.kernel import Postings
from tests.worlds import counts_of, random_documents


def test_saturation_and_idf_worked_by_hand():
    counts = counts_of("flow wing wing", "flow")  # lengths 3 and 1, average 2
    sat = bm25.saturations(counts, k1=2.0, b=0.75).toarray()
    # K_0 = 2 (.25 + .75 · 3/2) = 2.75, K_1 = 2 (.25 + .75 · 1/2) = 1.25
    assert sat == pytest.approx(np.array([[3 / 3.75, 6 / 4.75], [3 / 2.25, 0]]))
    idf = bm25.inverse_document_frequencies(counts)
    assert idf == pytest.approx([math.log(1 + 0.5 / 2.5), math.log(1 + 1.5 / 1.5)])


def test_the_features_are_the_square_root_of_what_a_shared_term_gives():
    counts = counts_of("flow wing", "wing drag", "drag drag flow")
    Phi = bm25.document_features(counts, k1=1.2, b=0.75).toarray()
    sat = bm25.saturations(counts, k1=1.2, b=0.75).toarray()
    idf = bm25.inverse_document_frequencies(counts)
    expected = sum(idf[t] * sat[0, t] * sat[1, t] for t in range(3))
    assert (Phi @ Phi.T)[0, 1] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("k1", "b"), [(1.2, 0.75), (2.0, 0.75), (0.9, 0.4), (0.5, 0.0), (1.5, 1.0)]
)
def test_the_query_kernel_agrees_with_bm25s(k1, b):
    documents = [document.split() for document in random_documents()]
    oracle = bm25s.BM25(method="lucene", k1=k1, b=b)
    oracle.index(documents, show_progress=False)
    counts = counts_of(*(" ".join(document) for document in documents))
    postings = Postings.of(bm25.query_impacts(counts, k1=k1, b=b))
    for query in (["t00"], ["t03", "t11", "t25"], ["t01", "t01", "t39"]):
        numbers, asked = np.unique(
            [counts.vocabulary.numbers[term] for term in query], return_counts=True
        )
        ours = postings.query_row(numbers, asked.astype(np.float32))
        theirs = oracle.get_scores(query)
        # bm25s writes the formula without the constant factor k1 + 1 of its numerator.
        assert ours == pytest.approx(theirs * (k1 + 1), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("documents", [("",), ("", ""), ("flow",), ("flow", "flow")])
def test_degenerate_collections_have_finite_features(documents):
    counts = counts_of(*documents)
    for features in (
        bm25.document_features(counts, k1=1.2, b=0.75),
        bm25.query_impacts(counts, k1=0.0, b=0.0),
        tfidf.document_features(counts),
    ):
        assert np.isfinite(features.toarray()).all()
        assert (features.toarray() >= 0).all()


def test_tfidf_worked_by_hand():
    counts = counts_of("flow wing wing", "flow", "drag")
    weights = tfidf.document_features(counts).toarray()
    drag, flow, wing = range(3)
    assert weights[0, wing] == pytest.approx(math.log(3) * math.log(3))
    assert weights[1, flow] == pytest.approx(math.log(2) * math.log(1.5))
    assert weights[2, drag] == pytest.approx(math.log(2) * math.log(3))


def test_impacts_on_the_grid_are_whole_steps_and_add_up_in_any_order():
    counts = counts_of(*random_documents(200, 40))
    impacts = bm25.query_impacts(counts, k1=1.2, b=0.75)
    rounded, step = bm25.on_grid(impacts)
    steps = rounded.data / step
    assert np.array_equal(steps, np.rint(steps))
    assert math.log2(step).is_integer()
    assert 2**19 <= steps.max() <= 2**20
    assert np.abs(rounded.data - impacts.data).max() <= step / 2
    postings = Postings.of(rounded)
    assert np.array_equal(postings.weights, postings.weights.astype(np.float64))
    forth, back = np.arange(40), np.arange(40)[::-1]
    once = np.ones(16, dtype=np.float32)
    assert np.array_equal(
        postings.query_row(forth[:16], once), postings.query_row(back[-16:], once)
    )


def test_the_smallest_impact_stays_above_0():
    rounded, _ = bm25.on_grid(sparse.csr_array([[1000.0, 1e-9]]))
    assert (rounded.data > 0).all()
    nothing, step = bm25.on_grid(sparse.csr_array((0, 3)))
    assert nothing.shape == (0, 3)
    assert step > 0
