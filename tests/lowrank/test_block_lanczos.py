"""The block Lanczos solver against a dense one, also for degenerate K."""

import numpy as np
import pytest
from scipy import sparse

from klsa_search.errors import SettingsError
from klsa_search.kernels.document_kernel import DocumentKernel
from klsa_search.lowrank import block_lanczos
from klsa_search.lowrank.eigensolver import decompose
from tests.support.worlds import bm25_features, counts_of, random_documents


def in_single(kernel):
    return DocumentKernel(kernel.features.astype(np.float32), kernel.scales, kernel.mean)


@pytest.fixture(scope="module")
def kernel():
    documents = random_documents(1500, 2000, seed=4)
    Phi = bm25_features(counts_of(*documents), k1=3.0, b=0.75, idf_power=1.0, pairs=0.5)
    return DocumentKernel.of(Phi, centred=True, normalised=True)


def all_alike():
    """Documents without a common feature: K is the identity, all its eigenvalues are equal."""
    return DocumentKernel.of(sparse.csr_array(sparse.eye_array(1500)))


@pytest.mark.parametrize("dimensions", [1, 50])
def test_block_lanczos_equals_lanczos(kernel, dimensions):
    exact, found = decompose(kernel, dimensions), decompose(in_single(kernel), dimensions)
    assert found.eigenvectors.dtype == np.float32
    assert found.eigenvalues == pytest.approx(exact.eigenvalues, rel=1e-4)
    assert found.trace == pytest.approx(exact.trace)
    assert found.gap == pytest.approx(exact.gap, abs=1e-4)
    # By Davis and Kahan the angle is below residual / gap to the next eigenvalue.
    cosines = np.linalg.svd(exact.eigenvectors.T @ found.eigenvectors, compute_uv=False)
    assert cosines.min() > 1 - (found.residual / exact.gap) ** 2 - 1e-5


def test_the_returned_residual_is_true_and_below_the_tolerance(kernel):
    found = decompose(in_single(kernel), 30)
    U = found.eigenvectors.astype(np.float64)
    rest = np.linalg.norm(kernel.apply(U) - U * found.eigenvalues, axis=0)
    # float32 adds its own: the mean is far longer than what is left without it.
    assert found.residual == pytest.approx(rest.max() / found.eigenvalues[0], abs=2e-5)
    assert found.residual <= 1.01 * block_lanczos.TOLERANCE
    assert np.abs(U.T @ U - np.eye(30)).max() < 1e-5


@pytest.mark.parametrize("threads", [2, 5])
def test_threads_change_no_bit(kernel, threads):
    one = decompose(in_single(kernel), 20, threads=1)
    other = decompose(in_single(kernel), 20, threads=threads)
    assert np.array_equal(one.eigenvectors, other.eigenvectors)
    assert np.array_equal(one.eigenvalues, other.eigenvalues)


def test_another_seed_finds_the_same_space(kernel):
    one, other = (decompose(in_single(kernel), 10, seed=seed) for seed in (1, 2))
    assert other.eigenvalues == pytest.approx(one.eigenvalues, rel=1e-5)
    assert not np.array_equal(one.eigenvectors, other.eigenvectors)


def test_restarts_lose_nothing(kernel, monkeypatch):
    generous = decompose(in_single(kernel), 20)
    monkeypatch.setattr(block_lanczos, "GROWTH", 2 * block_lanczos.WIDTH)
    narrow = decompose(in_single(kernel), 20)
    assert narrow.eigenvalues == pytest.approx(generous.eigenvalues, rel=1e-5)
    assert narrow.residual <= 1.01 * block_lanczos.TOLERANCE


def test_a_kernel_of_low_rank_is_decomposed_completely():
    """1,500 documents of five kinds: K has rank 5, and 300 times the eigenvalues of five."""
    kinds = np.random.default_rng(3).random((5, 900))
    kinds[kinds < 0.95] = 0
    kernel = DocumentKernel.of(sparse.csr_array(kinds[np.arange(1500) % 5]))
    found = decompose(in_single(kernel), 50)
    exact = 300 * np.linalg.eigvalsh(kinds @ kinds.T)[::-1]
    assert found.eigenvalues == pytest.approx(exact, rel=1e-4)
    assert found.gap == pytest.approx(exact[-1] / exact[0], rel=1e-4)


def test_equal_eigenvalues_have_as_many_vectors_as_requested():
    found = decompose(in_single(all_alike()), 50)
    assert found.eigenvalues == pytest.approx(np.ones(50), rel=1e-5)
    U = found.eigenvectors
    assert np.abs(U.T @ U - np.eye(50)).max() < 1e-5


def test_progress_comes_to_its_end(kernel):
    calls = []
    decompose(in_single(kernel), 20, progress=lambda *call: calls.append(call))
    assert {phase for phase, _, _ in calls} == {"eigenvectors"}
    assert [done for _, done, _ in calls] == list(range(1, len(calls) + 1))
    assert all(done <= total for _, done, total in calls)
    assert calls[-1][1] == calls[-1][2]


def test_without_convergence_it_says_what_to_do(kernel, monkeypatch):
    monkeypatch.setattr(block_lanczos, "PRODUCTS", 3)
    with pytest.raises(SettingsError, match="fewer dimensions") as caught:
        decompose(in_single(kernel), 50)
    assert caught.value.field == "dimensions"
