"""Laws of the document kernel."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klsa_search.features import bm25, tfidf
from klsa_search.kernel import explicit_gram, implicit_gram
from tests.worlds import counts_of, random_documents

words = st.sampled_from("abcdefg")
collections = st.lists(st.lists(words, max_size=12).map(" ".join), min_size=1, max_size=12)
KERNELS = {
    "bm25": lambda counts: bm25.document_features(counts, k1=1.2, b=0.75),
    "bm25, paper": lambda counts: bm25.document_features(counts, k1=2.0, b=0.75),
    "tfidf": tfidf.document_features,
}


@pytest.mark.parametrize("kernel", KERNELS)
@given(documents=collections)
def test_k_is_symmetric_and_positive_semi_definite(kernel, documents):
    K = explicit_gram(KERNELS[kernel](counts_of(*documents)))
    assert np.array_equal(K, K.T)
    assert np.linalg.eigvalsh(K).min() >= -1e-9 * max(1.0, np.abs(K).max())


@pytest.mark.parametrize("kernel", KERNELS)
@given(documents=collections, seed=st.integers(0, 2**32 - 1))
def test_implicit_is_explicit(kernel, documents, seed):
    Phi = KERNELS[kernel](counts_of(*documents))
    x = np.random.default_rng(seed).standard_normal((Phi.shape[0], 3))
    K = explicit_gram(Phi)
    scale = max(1.0, np.abs(K).max())
    assert np.abs(implicit_gram(Phi) @ x - K @ x).max() < 1e-8 * scale
    assert np.abs(implicit_gram(Phi) @ x[:, 0] - K @ x[:, 0]).max() < 1e-8 * scale


def test_the_kernel_does_not_depend_on_the_order_of_documents():
    documents = random_documents()
    order = np.random.default_rng(3).permutation(len(documents))
    K = explicit_gram(KERNELS["bm25"](counts_of(*documents)))
    shuffled = explicit_gram(KERNELS["bm25"](counts_of(*(documents[i] for i in order))))
    assert shuffled == pytest.approx(K[np.ix_(order, order)])
