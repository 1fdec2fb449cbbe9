"""Laws of the spectrum and of the expansion."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import TruncatedSVD

from klsa_search.expansion import FactoredExpansion, WholeExpansion, expansion_matrix, top_z
from klsa_search.features import bm25, tfidf
from klsa_search.kernel import explicit_gram
from klsa_search.spectrum import decompose
from tests.worlds import counts_of, random_documents, topic_documents


def features(*documents):
    return bm25.document_features(counts_of(*documents), k1=1.2, b=0.75)


# More documents than terms, fewer, and enough of both for the iterative solver.
WORLDS = {
    "tall": (random_documents(200, 30), 10),
    "wide": (random_documents(90, 300), 20),
    "dense solver": (random_documents(30, 40), 25),
    "full rank": (random_documents(20, 60), 300),
}


@pytest.mark.parametrize("world", WORLDS)
def test_eigenvectors_are_orthonormal_and_solve_the_equation(world):
    documents, dimensions = WORLDS[world]
    Phi = features(*documents)
    spectrum = decompose(Phi, dimensions)
    U, values = spectrum.eigenvectors, spectrum.eigenvalues
    K = explicit_gram(Phi)
    k = len(values)
    assert k == min(dimensions, len(documents) - 1, np.linalg.matrix_rank(Phi.toarray()))
    assert np.abs(U.T @ U - np.eye(k)).max() < 1e-9
    assert np.linalg.norm(K @ U - U * values, axis=0).max() / values[0] < 1e-6
    assert spectrum.residual < 1e-6
    assert values == pytest.approx(np.linalg.eigvalsh(K)[::-1][:k])
    assert (np.diff(values) <= 0).all()
    assert spectrum.trace == pytest.approx(np.trace(K))


@pytest.mark.parametrize("world", WORLDS)
def test_the_same_seed_gives_the_same_bits_and_signs_are_fixed(world):
    documents, dimensions = WORLDS[world]
    Phi = features(*documents)
    one, other = (decompose(Phi, dimensions, seed=7).eigenvectors for _ in range(2))
    assert np.array_equal(one, other)
    assert (one.max(axis=0) >= -one.min(axis=0)).all()


def test_another_seed_gives_the_same_space():
    Phi = features(*topic_documents())
    D = [expansion_matrix(decompose(Phi, 4, seed=seed).eigenvectors) for seed in (0, 1)]
    assert D[0] == pytest.approx(D[1], abs=1e-5)


def test_repeated_documents_do_not_upset_the_solver():
    Phi = features(*(random_documents(5, 30) * 100))
    spectrum = decompose(Phi, 50)
    assert len(spectrum.eigenvalues) == 5
    assert spectrum.residual < 1e-6


@pytest.mark.parametrize("documents", [(), ("",), ("", "", "")])
def test_nothing_to_decompose_is_an_empty_spectrum(documents):
    spectrum = decompose(features(*documents), 10)
    assert spectrum.eigenvectors.shape == (len(documents), 0)
    assert spectrum.eigenvalues.shape == (0,)


def test_one_document_has_one_dimension():
    spectrum = decompose(features("flow wing"), 300)
    assert spectrum.eigenvectors == pytest.approx(np.ones((1, 1)))


def test_the_gap_is_that_of_the_cut():
    spectrum = decompose(features(*topic_documents()), 4)
    following = np.linalg.eigvalsh(explicit_gram(features(*topic_documents())))[::-1][4]
    values = spectrum.eigenvalues
    assert spectrum.gap == pytest.approx((values[3] - following) / values[0])


def test_d_of_everything_is_the_identity_on_the_span():
    Phi = features(*random_documents(20, 60))
    U = decompose(Phi, 300).eigenvectors
    # k is capped at N - 1: the span is what those eigenvectors span.
    inside = U @ np.random.default_rng(0).standard_normal(U.shape[1])
    assert inside @ expansion_matrix(U) == pytest.approx(inside, abs=1e-5)


def test_whole_and_factored_expansions_agree():
    U = decompose(features(*random_documents(80, 120)), 12).eigenvectors.astype(np.float32)
    row = np.random.default_rng(1).uniform(0, 9, 80).astype(np.float32)
    seeds, weights = top_z(row, 7)
    whole = WholeExpansion(expansion_matrix(U)).expand(seeds, weights)
    assert FactoredExpansion(U).expand(seeds, weights) == pytest.approx(whole, abs=1e-4)
    sparse_row = np.zeros(80)
    sparse_row[seeds] = weights
    assert whole == pytest.approx(sparse_row @ (U @ U.T), abs=1e-4)


def test_lsi_is_what_scikit_learn_calls_truncated_svd():
    counts = counts_of(*random_documents(80, 120))
    X = tfidf.document_features(counts)
    oracle = TruncatedSVD(10, algorithm="arpack", random_state=0)
    documents = oracle.fit_transform(X)
    query = X[[3]] * 0.5 + X[[40]]
    expected = (oracle.transform(query) @ documents.T).ravel()
    U = decompose(X, 10).eigenvectors
    raw = (query @ X.T).toarray().ravel()
    assert raw @ U @ U.T == pytest.approx(expected, abs=1e-8)
