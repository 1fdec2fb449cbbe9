"""Invariants of the document kernel."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from klsa_search.kernels.document_kernel import DocumentKernel
from klsa_search.kernels.weighting import tfidf_features
from tests.support.worlds import bm25_features, counts_of, random_documents

words = st.sampled_from("abcdefg")
collections = st.lists(st.lists(words, max_size=12).map(" ".join), min_size=1, max_size=12)
FEATURES = {
    "published": lambda counts: bm25_features(counts, k1=2.0, b=0.75),
    "default": lambda counts: bm25_features(counts, k1=3.0, b=0.75, idf_power=1.0, pairs=0.5),
    "tfidf": lambda counts: tfidf_features(counts.matrix),
}


def kernel_of(documents, features="default", centred=True, normalised=True):
    Phi = FEATURES[features](counts_of(*documents))
    return DocumentKernel.of(Phi, centred=centred, normalised=normalised)


def by_definition(documents, features, centred, normalised):
    """S (Φ - 1μᵀ)(Φ - 1μᵀ)ᵀ S, written out."""
    Phi = FEATURES[features](counts_of(*documents)).toarray()
    mean = centred * Phi.mean(axis=0)
    A = Phi - mean
    if normalised:
        lengths = np.linalg.norm(A, axis=1)
        empty = ~Phi.any(axis=1) | (lengths**2 <= 1e-9 * ((Phi**2).sum(axis=1) + mean @ mean))
        A = np.where(empty[:, None], 0, A / np.sqrt(np.where(lengths > 0, lengths, 1))[:, None])
    return A @ A.T


def test_the_length_of_a_document_does_not_depend_on_the_longest():
    Phi = sparse.csr_array(np.array([[1e6, 0.0], [0, 1], [0, 0]]))
    assert DocumentKernel.of(Phi, normalised=True).diagonal == pytest.approx([1e6, 1, 0])
    same = sparse.csr_array(np.full((3, 2), 0.1))
    assert not DocumentKernel.of(same, centred=True, normalised=True).diagonal.any()


@given(collections, st.sampled_from([*FEATURES]), st.booleans(), st.booleans(), st.integers(0, 99))
def test_k_is_its_definition_however_it_is_applied(documents, features, centred, normalised, seed):
    """It is symmetric and positive semi-definite, too."""
    kernel = kernel_of(documents, features, centred, normalised)
    K = kernel.explicit()
    scale = max(1.0, np.abs(K).max())
    assert np.abs(K - by_definition(documents, features, centred, normalised)).max() < 1e-8 * scale
    assert np.abs(K - K.T).max() < 1e-12 * scale
    assert np.linalg.eigvalsh(K).min() >= -1e-9 * scale
    x = np.random.default_rng(seed).standard_normal((len(kernel), 3))
    assert np.abs(kernel.apply(x) - K @ x).max() < 1e-8 * scale
    assert np.abs(kernel.apply(x[:, 0]) - K @ x[:, 0]).max() < 1e-8 * scale
    assert np.abs(kernel.diagonal - K.diagonal()).max() < 1e-8 * scale


def test_entries_of_a_document_are_those_of_its_row():
    kernel = kernel_of(random_documents())
    others = np.array([3, 0, 3, 5])
    for document in range(len(kernel)):
        row = kernel.rows(np.array([document]))[0]
        assert np.array_equal(kernel.between(document, others), row[others])


def test_the_kernel_does_not_depend_on_the_order_of_documents():
    documents = random_documents()
    order = np.random.default_rng(3).permutation(len(documents))
    K = kernel_of(documents).explicit()
    shuffled = kernel_of([documents[i] for i in order]).explicit()
    assert shuffled == pytest.approx(K[np.ix_(order, order)])


def test_a_centred_kernel_has_no_direction_that_all_documents_share():
    K = kernel_of(random_documents(), normalised=False).explicit()
    assert K.sum(axis=0) == pytest.approx(np.zeros(len(K)), abs=1e-6)
