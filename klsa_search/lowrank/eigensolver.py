"""Top eigenvectors and eigenvalues of the document kernel.

The solver depends on the precision of the features: Lanczos to machine precision for float64 (up to
`document_kernel.EXACT` documents), block Lanczos to a tolerance for float32.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from klsa_search.core.array_types import Basis, Eigenvalues, Matrix
from klsa_search.core.parallel import one_blas_thread, processors
from klsa_search.core.progress import EIGENVECTORS, Progress, steps
from klsa_search.errors import SettingsError
from klsa_search.kernels.document_kernel import DocumentKernel
from klsa_search.lowrank import block_lanczos
from klsa_search.lowrank.block_lanczos import BlockProducts


@dataclass(frozen=True)
class Decomposition:
    """The top of the spectrum of K = UΛUᵀ.

    eigenvectors  U: (N, k) in the precision of K's features, orthonormal columns
    eigenvalues   Λ: (k,) float64, largest first, all positive
    residual      max ‖K u_i - λ_i u_i‖ / λ_1
    gap           (λ_k - λ_{k+1}) / λ_1; near 0 the k-th direction is not well determined
    trace         Σ of all N eigenvalues
    """

    eigenvectors: Basis
    eigenvalues: Eigenvalues
    residual: float
    gap: float
    trace: float


_SMALL = 500  # size up to which the dense solver is always faster


def decompose_gram(K: Matrix, dimensions: int) -> Decomposition:
    """Return the `dimensions` top eigenpairs of K: (N, N) symmetric, dense.

    Unlike `decompose` it returns up to N, and needs no sparse features. Limited by the rank of K;
    empty if K is 0. Uses the dense solver, O(N³), if N is small or more than an eighth of the
    spectrum is wanted, else Lanczos, about 3k products of O(N²). Deterministic: one thread, fixed
    signs.
    """
    N = len(K)
    trace = float(np.trace(K))
    wanted = min(dimensions, N)
    if not trace > 0 or wanted < 1:
        return Decomposition(np.zeros((N, 0)), np.zeros(0), residual=0.0, gap=0.0, trace=0.0)
    count = min(wanted + 1, N)  # one more than wanted, for the gap
    with one_blas_thread():
        values, vectors = (
            _dense(K, count)
            if N <= _SMALL or 8 * count > N
            else _iterative(N, lambda x: K @ x, count, seed=0)
        )
        return _spectrum(values, vectors, wanted, trace, lambda x: K @ x)


RANK_TOLERANCE = 1e-10  # eigenvalues below this, relative to the first, are rounding noise


def decompose(
    kernel: DocumentKernel,
    dimensions: int,
    *,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Decomposition:
    """Return the `dimensions` top eigenpairs of K = A Aᵀ [KLSA §3.1].

    dimensions  k; limited by N - 1 (at least 1) and by the rank of K
    seed        of the start vectors. The same input and seed give the same bits with any number of
                threads; the entry of largest size of each eigenvector is positive
    threads     of the block solver, by default the number of processors
    progress    called as "eigenvectors" with the products done, and the estimated total or None

    float64 features: implicitly restarted Lanczos on the smaller of A Aᵀ and Aᵀ A on one thread,
    O(nnz · k + N · k²), or a dense solver if k is more than half of that side. float32 features:
    block Lanczos to `block_lanczos.TOLERANCE`. SettingsError if the solver does not converge.
    """
    N = len(kernel)
    trace = float(kernel.diagonal.sum())
    if trace == 0:  # no document has a weighted term
        return Decomposition(np.zeros((N, 0)), np.zeros(0), residual=0.0, gap=0.0, trace=0.0)
    wanted = max(1, min(dimensions, N - 1))
    with one_blas_thread():
        # In float32, and if documents and features are more than twice the space of the solver.
        space = block_lanczos.max_columns(wanted + 1)
        if kernel.features.dtype != np.float32 or min(kernel.features.shape) <= 2 * space:
            values, vectors = _one_by_one(kernel, wanted + 1, seed, progress)
            return _spectrum(values, vectors, wanted, trace, kernel.apply)
        threads = threads or processors()
        with ThreadPoolExecutor(threads) as workers:
            products = BlockProducts(kernel, workers, threads, seed=seed)
            values, blocks, residual = block_lanczos.largest_eigenpairs(
                products, wanted + 1, progress=progress
            )
        rank = _rank(values, block_lanczos.RANK_TOLERANCE)
        spectrum = _spectrum(values[:rank], np.hstack(blocks)[:, :rank], wanted, trace)
        return replace(spectrum, residual=residual)


def _one_by_one(
    kernel: DocumentKernel, wanted: int, seed: int, progress: Progress | None
) -> tuple[Eigenvalues, Matrix]:
    """Solve on the smaller side, and return the eigenvectors of the documents."""
    N, F = kernel.features.shape
    applied = steps(progress, EIGENVECTORS)
    if 2 * wanted >= N:
        return _dense(kernel.explicit(), wanted)
    if N <= F:

        def apply(x: Matrix) -> Matrix:
            applied()
            return kernel.apply(x)

        return _iterative(N, apply, wanted, seed)

    def apply_on_features(x: Matrix) -> Matrix:
        applied()
        return kernel.backward(kernel.forward(x))

    # Lanczos finds at most F - 1 directions.
    count = min(wanted, F - 1)
    if 0 < 2 * count < F:
        eigenvalues, on_features = _iterative(F, apply_on_features, count, seed)
    else:
        gram = kernel.backward(kernel.forward(np.eye(F)))
        eigenvalues, on_features = _dense((gram + gram.T) / 2, wanted)
    return eigenvalues, kernel.forward(on_features) / np.sqrt(eigenvalues)


def _iterative(
    side: int, product: Callable[[Matrix], Matrix], wanted: int, seed: int
) -> tuple[Eigenvalues, Matrix]:
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

    randomness = np.random.default_rng(seed)
    start = randomness.uniform(0.5, 1.5, side)
    operator = LinearOperator((side, side), matvec=product, matmat=product, dtype=np.float64)
    try:
        return _largest_first(*eigsh(operator, k=wanted, v0=start, rng=randomness))
    except ArpackNoConvergence as error:
        raise SettingsError(
            f"dimensions = {wanted - 1} did not converge: only "
            f"{len(error.eigenvalues)} eigenvectors did; build with fewer "
            "dimensions",
            field="dimensions",
        ) from error


def _dense(gram: Matrix, wanted: int) -> tuple[Eigenvalues, Matrix]:
    from scipy import linalg

    last = len(gram) - 1
    return _largest_first(*linalg.eigh(gram, subset_by_index=[max(0, last + 1 - wanted), last]))


def _largest_first(values: Eigenvalues, vectors: Matrix) -> tuple[Eigenvalues, Matrix]:
    """Return eigenpairs by descending eigenvalue, without those that are numerically 0."""
    order = np.argsort(-values, kind="stable")
    rank = _rank(values[order], RANK_TOLERANCE)
    return values[order][:rank], vectors[:, order][:, :rank]


def _rank(values: Eigenvalues, tolerance: float) -> int:
    """Return the number of values above the relative tolerance."""
    return int(np.count_nonzero(values > tolerance * values[0]))


def _spectrum(
    values: Eigenvalues,
    vectors: Matrix,
    wanted: int,
    trace: float,
    apply: Callable[[Matrix], Matrix] | None = None,
) -> Decomposition:
    """Return the `wanted` first eigenpairs, of which the largest entries of vectors are positive.

    apply  returns K x for the residual, which is 0 without it
    """
    following = values[wanted] if len(values) > wanted else 0.0
    values, vectors = values[:wanted], vectors[:, :wanted]
    largest = vectors[np.argmax(np.abs(vectors), axis=0), np.arange(vectors.shape[1])]
    vectors = np.ascontiguousarray(vectors * np.sign(largest))
    residual = 0.0
    if apply is not None:
        rest = apply(vectors) - vectors * values
        residual = float(np.linalg.norm(rest, axis=0).max() / values[0])
    gap = float((values[-1] - following) / values[0])
    return Decomposition(vectors, values, residual=residual, gap=gap, trace=trace)
