"""BM25: worked examples."""

import math

import numpy as np
import pytest

from klsa_search.kernels.weighting import tfidf_features
from tests.support.worlds import bm25_features, counts_of, idf_of_counts


def saturations(counts, k1, b):
    return bm25_features(counts, k1=k1, b=b, idf_power=0)


def test_saturation_and_idf_worked_by_hand():
    counts = counts_of("flow wing wing", "flow")  # lengths 3 and 1, average 2
    sat = saturations(counts, 2.0, 0.75).toarray()
    # K_0 = 2 (.25 + .75 · 3/2) = 2.75, K_1 = 2 (.25 + .75 · 1/2) = 1.25
    assert sat == pytest.approx(np.array([[3 / 3.75, 6 / 4.75], [3 / 2.25, 0]]))
    idf = idf_of_counts(counts)
    assert idf == pytest.approx([math.log(1 + 0.5 / 2.5), math.log(1 + 1.5 / 1.5)])


def test_the_features_are_the_square_root_of_what_a_shared_term_gives():
    counts = counts_of("flow wing", "wing drag", "drag drag flow")
    Phi = bm25_features(counts, k1=1.2, b=0.75).toarray()
    sat = saturations(counts, 1.2, 0.75).toarray()
    idf = idf_of_counts(counts)
    expected = sum(idf[t] * sat[0, t] * sat[1, t] for t in range(3))
    assert (Phi @ Phi.T)[0, 1] == pytest.approx(expected)


@pytest.mark.parametrize("documents", [("",), ("", ""), ("flow",), ("flow", "flow")])
def test_degenerate_collections_have_finite_features(documents):
    counts = counts_of(*documents)
    for features in (
        bm25_features(counts, k1=1.2, b=0.75),
        saturations(counts, 0.0, 0.0),
        tfidf_features(counts.matrix),
    ):
        assert np.isfinite(features.toarray()).all()
        assert (features.toarray() >= 0).all()


def test_tfidf_worked_by_hand():
    counts = counts_of("flow wing wing", "flow", "drag")
    weights = tfidf_features(counts.matrix).toarray()
    drag, flow, wing = range(3)
    assert weights[0, wing] == pytest.approx(math.log(3) * math.log(3))
    assert weights[1, flow] == pytest.approx(math.log(2) * math.log(1.5))
    assert weights[2, drag] == pytest.approx(math.log(2) * math.log(3))
