"""Invariants of every kernel estimator, and the definition of each."""

from functools import cache

import numpy as np
import pytest
from scipy import linalg, sparse
from sklearn.base import clone
from sklearn.decomposition import TruncatedSVD

from klsa_search.estimators import (
    ExponentialKernel,
    GaussianKernel,
    GramSchmidtKernel,
    GVSMKernel,
    LatentSemanticKernel,
    PolynomialKernel,
    SemanticSmoothingKernel,
    SquashedKernel,
    VonNeumannKernel,
)
from tests.estimators.worlds import KERNELS, counts

X, NEW = counts()
DENSE = X.toarray()
LABELS = np.arange(40) % 3 == 1  # not the same backwards
K = DENSE @ DENSE.T
BASES = {
    None: K,
    PolynomialKernel(2): (K + 1) ** 2,
    GaussianKernel(9.0): np.exp(-(np.add.outer(K.diagonal(), K.diagonal()) - 2 * K) / 81),
}
every_kernel = pytest.mark.parametrize("name", KERNELS)
every_base = pytest.mark.parametrize("base", BASES, ids=str)


@cache
def fitted(name):
    return clone(KERNELS[name]).fit(X, LABELS)


@every_kernel
def test_gram_matrices_are_symmetric_and_positive_semi_definite(name):
    gram = fitted(name).kernel(NEW)
    scale = np.abs(gram).max()
    assert np.abs(gram - gram.T).max() <= 1e-12 * scale
    assert np.linalg.eigvalsh((gram + gram.T) / 2).min() >= -1e-10 * scale
    assert fitted(name).diagonal(NEW) == pytest.approx(gram.diagonal())


@every_kernel
def test_the_kernel_is_the_inner_product_of_coordinates(name):
    estimator = fitted(name)
    if not estimator.has_coordinates:
        assert np.array_equal(estimator.transform(NEW), estimator.kernel(NEW, X))
        return
    places, training = (estimator.transform(points) for points in (NEW, X))
    product = places @ training.T
    product = product.toarray() if sparse.issparse(product) else product
    assert estimator.kernel(NEW, X) == pytest.approx(product, abs=1e-10)


@every_kernel
def test_dense_and_sparse_input_give_the_same(name):
    dense = clone(KERNELS[name]).fit(DENSE, LABELS)
    gram = dense.kernel(NEW.toarray(), DENSE)
    assert fitted(name).kernel(NEW, X) == pytest.approx(gram, rel=1e-8, abs=1e-8 * gram.max())


@every_kernel
def test_one_point_or_an_empty_one_is_placed_as_among_many(name):
    points = sparse.vstack([NEW, sparse.csr_array((1, 30))], format="csr")
    together = fitted(name).kernel(points, X)
    assert np.isfinite(together).all()
    for row in (3, len(together) - 1):
        alone = fitted(name).kernel(points[[row]], X)[0]
        assert alone == pytest.approx(together[row], rel=1e-9)


@every_kernel
def test_fitting_twice_gives_the_same_bits_and_leaves_parameters_alone(name):
    one, other = fitted(name), clone(KERNELS[name]).fit(X, LABELS)
    assert np.array_equal(one.kernel(NEW, X), other.kernel(NEW, X))
    assert repr(one.get_params()) == repr(KERNELS[name].get_params())


def test_features_are_named_and_numbered():
    for estimator in map(fitted, KERNELS):
        names = estimator.get_feature_names_out()
        assert len(names) == estimator.transform(NEW).shape[1]
        assert names[0] == type(estimator).__name__.lower() + "0"


@every_base
@pytest.mark.parametrize("make", [LatentSemanticKernel, GramSchmidtKernel])
def test_at_full_rank_the_kernel_is_the_base_kernel(make, base):
    gram = make(base=base).fit(X).kernel(X)
    assert gram == pytest.approx(BASES[base], abs=1e-7 * BASES[base].max())


@every_base
def test_latent_semantic_coordinates_are_the_eigenvectors_scaled(base):
    """Placing a training row by its kernel row gives its own coordinates, U Λ^½."""
    estimator = LatentSemanticKernel(6, base=base).fit(X)
    values, vectors = np.linalg.eigh(BASES[base])
    values, vectors = values[::-1][:6], vectors[:, ::-1][:, :6]
    places = estimator.transform(X)
    spectrum = estimator.spectrum_
    assert estimator.eigenvalues_ == pytest.approx(values)
    assert places == pytest.approx(spectrum.eigenvectors * np.sqrt(spectrum.eigenvalues), abs=1e-8)
    assert estimator.kernel(X) == pytest.approx((vectors * values) @ vectors.T, abs=1e-8)


def test_the_latent_semantic_kernel_of_inner_products_is_lsi():
    lsi = TruncatedSVD(7, algorithm="arpack", random_state=0)
    training, placed = lsi.fit_transform(X), lsi.transform(NEW)
    estimator = LatentSemanticKernel(7).fit(X)
    assert estimator.kernel(NEW, X) == pytest.approx(placed @ training.T, abs=1e-8)


@every_base
def test_gram_schmidt_is_pivoted_cholesky(base):
    estimator = GramSchmidtKernel(8, base=base).fit(X)
    factor, pivots, _, _ = linalg.lapack.dpstrf(BASES[base], lower=1)
    assert estimator.pivots_.tolist() == (pivots[:8] - 1).tolist()
    expected = np.empty((40, 8))
    expected[pivots - 1] = np.tril(factor)[:, :8]
    assert estimator.factor_.features == pytest.approx(expected, abs=1e-9)
    assert estimator.transform(X) == pytest.approx(expected, abs=1e-8)
    residuals = BASES[base].diagonal() - (expected**2).sum(axis=1)
    assert estimator.factor_.residuals == pytest.approx(residuals, abs=1e-8)


def test_gram_schmidt_by_hand():
    """The longest row first; then what is left of (3, 4) beside (0, 5) is 3."""
    estimator = GramSchmidtKernel(2).fit([[1.0, 0.0], [3.0, 4.0], [0.0, 6.0]])
    assert estimator.pivots_.tolist() == [2, 1]
    assert estimator.transform([[3.0, 4.0], [1.0, 1.0]]) == pytest.approx(
        np.array([[4, 3], [1, 1]])
    )


def test_a_bias_of_one_changes_nothing_and_a_large_one_favours_its_class():
    plain = GramSchmidtKernel(8).fit(X)
    assert np.array_equal(GramSchmidtKernel(8, bias=1.0).fit(X, LABELS).pivots_, plain.pivots_)
    ones = GramSchmidtKernel(8, bias={True: 1.0, False: 1.0}).fit(X, LABELS)
    assert np.array_equal(ones.pivots_, plain.pivots_)
    assert not LABELS[plain.pivots_].all()
    assert LABELS[GramSchmidtKernel(8, bias=1e6).fit(X, LABELS).pivots_].all()
    assert not LABELS[GramSchmidtKernel(8, bias={False: 1e6}).fit(X, LABELS).pivots_].any()


@every_base
def test_gvsm_is_the_kernel_squared(base):
    square = BASES[base] @ BASES[base]
    assert GVSMKernel(base=base).fit(X).kernel(X) == pytest.approx(square)


def test_gvsm_of_new_points_goes_through_the_terms():
    expected = NEW.toarray() @ (DENSE.T @ DENSE) @ DENSE.T
    assert GVSMKernel().fit(X).kernel(NEW, X) == pytest.approx(expected)


@every_base
def test_the_squashed_kernel_is_its_formula(base):
    gram = BASES[base]
    gamma = 0.02 * np.linalg.eigvalsh(gram)[-1]
    expected = gram @ np.linalg.solve(gram + gamma * np.eye(40), gram)
    assert SquashedKernel(0.02, base=base).fit(X).kernel(X) == pytest.approx(expected)


def test_squashing_is_truncation_at_a_gap_of_the_spectrum():
    rng = np.random.default_rng(0)
    clear = rng.standard_normal((60, 4)) @ rng.standard_normal((4, 20)) * 1e3
    points = clear + 1e-3 * rng.standard_normal((60, 20))
    squashed = SquashedKernel(1e-6).fit(points).kernel(points)
    truncated = LatentSemanticKernel(4).fit(points).kernel(points)
    assert squashed == pytest.approx(truncated, abs=1e-4 * truncated.max())


@every_base
def test_von_neumann_solves_its_recurrences(base):
    """K̂ = γ X Ĝ Xᵀ + K and Ĝ = γ Xᵀ K̂ X + G, with X any square root of K."""
    estimator = VonNeumannKernel(0.7, base=base).fit(X)
    gram = BASES[base]
    values, vectors = np.linalg.eigh(gram)
    root = vectors * np.sqrt(np.maximum(values, 0))
    gamma = 0.7 / values[-1]
    of_terms = root.T @ root
    hat = estimator.kernel(X)
    hat_of_terms = of_terms @ np.linalg.inv(np.eye(40) - gamma * of_terms)
    assert hat == pytest.approx(gamma * root @ hat_of_terms @ root.T + gram)
    assert hat_of_terms == pytest.approx(gamma * root.T @ hat @ root + of_terms, abs=1e-6)
    assert hat == pytest.approx(gram @ np.linalg.inv(np.eye(40) - gamma * gram))


@every_base
def test_exponential_is_a_matrix_exponential(base):
    gram = BASES[base]
    gamma = 3.0 / np.linalg.eigvalsh(gram)[-1]
    expected = gram @ linalg.expm(gamma * gram)
    assert ExponentialKernel(3.0, base=base).fit(X).kernel(X) == pytest.approx(expected)


@pytest.mark.parametrize("make", [VonNeumannKernel, ExponentialKernel])
def test_a_gamma_of_zero_is_the_base_kernel(make):
    assert make(0.0).fit(X).kernel(NEW, X) == pytest.approx((NEW @ X.T).toarray(), abs=1e-8)


def test_polynomial_and_gaussian_before_and_after_the_spectral_step():
    lsk = LatentSemanticKernel(5).fit(X)
    after = PolynomialKernel(2, offset=0.5, base=LatentSemanticKernel(5)).fit(X)
    assert after.kernel(NEW, X) == pytest.approx((lsk.kernel(NEW, X) + 0.5) ** 2)
    places, training = lsk.transform(NEW), lsk.transform(X)
    squares = ((places[:, None] - training) ** 2).sum(axis=2)
    gaussian = GaussianKernel(4.0, base=LatentSemanticKernel(5)).fit(X)
    assert gaussian.kernel(NEW, X) == pytest.approx(np.exp(-squares / 16))
    assert (gaussian.kernel(X).diagonal() == 1).all()
    before = LatentSemanticKernel(base=PolynomialKernel(3)).fit(X)
    assert before.kernel(X) == pytest.approx((K + 1) ** 3)


def test_smoothing_counts_a_neighbour_as_itself():
    """Terms a and b share a concept, c has its own: xᵀRᵀRz by hand."""
    concepts = [[1.0, 1.0, 0.0], [0.0, 0.0, 2.0]]
    estimator = SemanticSmoothingKernel(concepts).fit([[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0]])
    assert estimator.kernel([[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0]]).tolist() == [
        [1, 1, 0],
        [1, 1, 0],
        [0, 0, 4],
    ]


def test_features_in_single_precision_give_the_kernel_to_single_precision(monkeypatch):
    """What large training sets are decomposed by; placing stays in double precision."""
    tenths = X * 0.1  # whole numbers would be the same in both
    exact = LatentSemanticKernel(5).fit(tenths)
    monkeypatch.setattr("klsa_search.estimators.spectral.EXACT", 10)
    single = LatentSemanticKernel(5).fit(tenths)
    assert single.transform(NEW).dtype == np.float64
    expected = exact.kernel(NEW, tenths)
    assert single.kernel(NEW, tenths) == pytest.approx(expected, abs=1e-4 * expected.max())
    assert not np.array_equal(single.kernel(NEW, tenths), expected)
