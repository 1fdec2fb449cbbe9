"""Invariants of the spectrum and of the expansion."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.decomposition import TruncatedSVD

from klsa_search.kernels.document_kernel import DocumentKernel
from klsa_search.kernels.weighting import tfidf_features
from klsa_search.lowrank.eigensolver import decompose
from klsa_search.lowrank.expansion_matrix import (
    SPECTRAL_FUNCTIONS,
    Expansion,
    expansion_rows,
    largest_entries,
)
from klsa_search.lowrank.latent_space import LatentSpace
from tests.support.worlds import (
    bm25_features,
    counts_of,
    idf_of_counts,
    random_documents,
    topic_documents,
)


def published(*documents):
    return DocumentKernel.of(bm25_features(counts_of(*documents), k1=1.2, b=0.75))


def centred(*documents):
    Phi = bm25_features(counts_of(*documents), k1=3.0, b=0.75, idf_power=1, pairs=0.5)
    return DocumentKernel.of(Phi, centred=True, normalised=True)


def truncated(kernel, dimensions, seed=0):
    spectrum = decompose(kernel, dimensions, seed=seed)
    return expansion_rows(kernel, spectrum, "truncation", 1.0)


# More documents than terms, fewer, and enough of both for the iterative solver.
WORLDS = {
    "tall": (random_documents(200, 30), 10),
    "wide": (random_documents(90, 300), 20),
    "dense solver": (random_documents(30, 40), 25),
    "full rank": (random_documents(20, 60), 300),
}


@pytest.mark.parametrize("kernel_of", [published, centred])
@pytest.mark.parametrize("world", WORLDS)
def test_eigenvectors_are_orthonormal_and_solve_the_equation(world, kernel_of):
    documents, dimensions = WORLDS[world]
    kernel = kernel_of(*documents)
    spectrum = decompose(kernel, dimensions)
    U, values = spectrum.eigenvectors, spectrum.eigenvalues
    K = kernel.explicit()
    k = len(values)
    assert k == min(dimensions, len(documents) - 1, np.linalg.matrix_rank(K, hermitian=True))
    assert np.abs(U.T @ U - np.eye(k)).max() < 1e-9
    assert np.linalg.norm(K @ U - U * values, axis=0).max() / values[0] < 1e-6
    assert spectrum.residual < 1e-6
    assert values == pytest.approx(np.linalg.eigvalsh(K)[::-1][:k])
    assert (np.diff(values) <= 0).all()
    assert spectrum.trace == pytest.approx(np.trace(K))


@pytest.mark.parametrize("world", WORLDS)
def test_the_same_seed_gives_the_same_bits_and_signs_are_fixed(world):
    documents, dimensions = WORLDS[world]
    kernel = published(*documents)
    one, other = (decompose(kernel, dimensions, seed=7).eigenvectors for _ in range(2))
    assert np.array_equal(one, other)
    assert (one.max(axis=0) >= -one.min(axis=0)).all()


def test_another_seed_gives_the_same_space():
    kernel = published(*topic_documents())
    assert truncated(kernel, 4, seed=0) == pytest.approx(truncated(kernel, 4, seed=1), abs=1e-5)


def test_repeated_documents_do_not_upset_the_solver():
    spectrum = decompose(published(*(random_documents(5, 30) * 100)), 50)
    assert len(spectrum.eigenvalues) == 5
    assert spectrum.residual < 1e-6


@pytest.mark.parametrize("kernel_of", [published, centred])
def test_nothing_to_decompose_is_an_empty_spectrum(kernel_of):
    for documents in ((), ("",), ("", "", "")):
        spectrum = decompose(kernel_of(*documents), 10)
        assert spectrum.eigenvectors.shape == (len(documents), 0)
        assert spectrum.eigenvalues.shape == (0,)


def test_one_document_has_one_dimension():
    spectrum = decompose(published("flow wing"), 300)
    assert spectrum.eigenvectors == pytest.approx(np.ones((1, 1)))


def test_the_gap_is_that_of_the_cut():
    kernel = published(*topic_documents())
    spectrum = decompose(kernel, 4)
    following = np.linalg.eigvalsh(kernel.explicit())[::-1][4]
    values = spectrum.eigenvalues
    assert spectrum.gap == pytest.approx((values[3] - following) / values[0])


def test_d_of_everything_is_the_identity_on_the_span():
    kernel = published(*random_documents(20, 60))
    U = decompose(kernel, 300).eigenvectors
    # k is capped at N - 1: the span is what those eigenvectors span.
    inside = U @ np.random.default_rng(0).standard_normal(U.shape[1])
    assert inside @ truncated(kernel, 300) == pytest.approx(inside, abs=1e-5)


EXACT = {
    "truncation": (1.0, lambda x: np.where(np.arange(len(x)) < 12, 1.0, 0.0)),
    "squashing": (0.3, lambda x: x / (x + 0.3)),
    "gvsm": (1.0, lambda x: x),
    "von-neumann": (0.4, lambda x: 1 / (1 - 0.4 * x)),
    "exponential": (0.5, lambda x: np.exp(0.5 * x)),
}


def exact_expansion(kernel, f):
    """U f(Λ) Uᵀ over the whole spectrum, strongest first."""
    values, vectors = np.linalg.eigh(kernel.explicit())
    values, vectors = np.maximum(values[::-1], 0), vectors[:, ::-1]
    return (vectors * f(values / values[0])) @ vectors.T


def test_every_spectral_function_has_its_law():
    assert set(EXACT) == set(SPECTRAL_FUNCTIONS)


@pytest.mark.parametrize("kernel_of", [published, centred])
@pytest.mark.parametrize("name", SPECTRAL_FUNCTIONS)
def test_with_the_whole_spectrum_d_is_exact(name, kernel_of):
    gamma, f = EXACT[name]
    kernel = kernel_of(*random_documents(40, 60))
    # Truncation is a cut by nature; the others get all there is.
    spectrum = decompose(kernel, 12 if name == "truncation" else 39)
    D = expansion_rows(kernel, spectrum, name, gamma)
    assert pytest.approx(exact_expansion(kernel, f), abs=2e-4) == D


@pytest.mark.parametrize("name", SPECTRAL_FUNCTIONS)
def test_the_tail_beyond_the_stored_eigenvectors_is_linear(name):
    gamma, f = EXACT[name]
    kernel = centred(*random_documents(40, 60))
    spectrum = decompose(kernel, 12)
    values, vectors = np.linalg.eigh(kernel.explicit())
    relative = np.maximum(values[::-1], 0) / values[-1]
    function = SPECTRAL_FUNCTIONS[name](gamma)
    stored = np.arange(40) < 12
    line = 0.0 if name == "truncation" else (f(relative[11]) - function.value) / relative[11]
    expected = np.where(stored, f(relative), function.value + line * relative)
    D = expansion_rows(kernel, spectrum, name, gamma)
    assert pytest.approx((vectors[:, ::-1] * expected) @ vectors[:, ::-1].T, abs=2e-4) == D


def test_the_value_is_that_at_zero():
    for name in SPECTRAL_FUNCTIONS:
        function = SPECTRAL_FUNCTIONS[name](EXACT[name][0])
        at_zero = 0.0 if name == "truncation" else float(function.of(np.zeros(1))[0])
        assert function.value == at_zero, name


@pytest.mark.parametrize("gamma", [0.3, 0.05, 0.001])
def test_the_tail_of_squashing_does_not_overshoot(gamma):
    """With a third of the spectrum stored: no direction above 1, and nearer than truncation."""
    kernel = centred(*random_documents(60, 80))
    D = expansion_rows(kernel, decompose(kernel, 20), "squashing", gamma)
    exact = exact_expansion(kernel, lambda x: x / (x + gamma))
    assert np.linalg.norm(D, 2) <= 1
    assert np.linalg.norm(D - exact, 2) < np.linalg.norm(
        expansion_rows(kernel, decompose(kernel, 20), "truncation", 1.0) - exact, 2
    )


@pytest.mark.parametrize("name", SPECTRAL_FUNCTIONS)
def test_the_head_can_be_left_out(name):
    kernel = centred(*random_documents(40, 60))
    spectrum = decompose(kernel, 12)
    D = expansion_rows(kernel, spectrum, name, EXACT[name][0], head=2)
    assert D @ spectrum.eigenvectors[:, :2] == pytest.approx(np.zeros((40, 2)), abs=2e-4)


def test_squashing_becomes_truncation_at_a_spectral_gap():
    kernel = published(*(random_documents(5, 30) * 8))
    spectrum = decompose(kernel, 5)
    squashed = expansion_rows(kernel, spectrum, "squashing", 1e-4)
    assert squashed == pytest.approx(expansion_rows(kernel, spectrum, "truncation", 1.0), abs=2e-3)


@pytest.mark.parametrize("head", [0, 1])
@pytest.mark.parametrize("name", SPECTRAL_FUNCTIONS)
def test_stored_rows_and_eigenvectors_give_the_same_scores(name, head):
    kernel = centred(*random_documents(80, 120))
    spectrum = decompose(kernel, 12)
    gamma = EXACT[name][0]
    row = np.random.default_rng(1).uniform(0, 9, 80).astype(np.float32)
    seeds, weights = largest_entries(row, 7)
    D = expansion_rows(kernel, spectrum, name, gamma, head)
    computed = Expansion.of(
        spectrum.eigenvectors.astype(np.float32),
        spectrum.eigenvalues,
        SPECTRAL_FUNCTIONS[name](gamma),
        head=head,
        kernel=lambda: kernel,
    )
    stored = replace(computed, rows=D)
    scores = stored.expand(seeds, weights)
    assert computed.expand(seeds, weights) == pytest.approx(scores, abs=1e-3)
    assert computed.entries(seeds, 5) == pytest.approx(stored.entries(seeds, 5), abs=1e-4)
    sparse_row = np.zeros(80)
    sparse_row[seeds] = weights
    assert scores == pytest.approx(sparse_row @ D, abs=1e-3)


def test_lsi_is_what_scikit_learn_calls_truncated_svd():
    counts = counts_of(*random_documents(80, 120))
    X = tfidf_features(counts.matrix)
    oracle = TruncatedSVD(10, algorithm="arpack", random_state=0)
    documents = oracle.fit_transform(X)
    query = X[[3]] * 0.5 + X[[40]]
    expected = (oracle.transform(query) @ documents.T).ravel()
    U = decompose(DocumentKernel.of(X), 10).eigenvectors
    raw = (query @ X.T).toarray().ravel()
    assert raw @ U @ U.T == pytest.approx(expected, abs=1e-8)


def test_the_latent_space_at_full_rank_is_the_cosine_of_the_features():
    documents = random_documents(30, 60)
    counts = counts_of(*documents)
    kernel = published(*documents)
    weights = np.sqrt(idf_of_counts(counts))
    spectrum = decompose(kernel, 30)
    space = LatentSpace.of(kernel, spectrum, 30, weights)
    terms = np.array([2, 7, 11])
    asked = np.array([1, 2, 1], dtype=np.float32)
    query = np.zeros(len(weights))
    query[terms] = asked * weights[terms]
    Phi = kernel.features.toarray()
    # The k-th eigenvector is capped away (k = N - 1), so compare within the span.
    V = np.linalg.svd(Phi, full_matrices=False)[2][: spectrum.eigenvectors.shape[1]]
    inside = Phi @ V.T @ V
    expected = inside @ query / np.linalg.norm(inside, axis=1)
    assert space.cosines(terms, asked) == pytest.approx(expected, rel=1e-4, abs=1e-4)
