"""The spectrum of a kernel given as its Gram matrix, all of it if need be."""

from __future__ import annotations

import numpy as np
from scipy import linalg
from threadpoolctl import threadpool_limits

from klsa_search.arrays import Matrix
from klsa_search.spectrum.eigenpairs import Spectrum
from klsa_search.spectrum.solving import _iterative, _strongest_first, _with_fixed_signs

_SMALL = 500  # below it the dense solver is the faster one, however few are wanted


def decompose_gram(K: Matrix, dimensions: int) -> Spectrum:
    """Compute the `dimensions` strongest eigenpairs of K: (N, N) symmetric, dense.

    Unlike `decompose` it gives up to N of them: for kernels that have no sparse features, and for
    whole spectra. Capped at the rank of K; an empty spectrum where K is 0. The dense solver,
    O(N³), where N is small or more than an eighth of the spectrum is wanted; Lanczos, some
    3k products of O(N²), elsewhere. One thread, fixed signs: same input, same bits.
    """
    N = len(K)
    trace = float(np.trace(K))
    wanted = min(dimensions, N)
    if not trace > 0 or wanted < 1:
        return Spectrum(np.zeros((N, 0)), np.zeros(0), residual=0.0, gap=0.0, trace=0.0)
    found = min(wanted + 1, N)  # one more than wanted, for the gap
    with threadpool_limits(limits=1, user_api="blas"):
        values, vectors = (
            _strongest_first(*linalg.eigh(K, subset_by_index=[N - found, N - 1]))
            if N <= _SMALL or 8 * found > N
            else _iterative(N, lambda x: K @ x, found, seed=0)
        )
        following = values[wanted] if len(values) > wanted else 0.0
        vectors, values = _with_fixed_signs(vectors[:, :wanted]), values[:wanted]
        rest = K @ vectors - vectors * values
    return Spectrum(
        eigenvectors=vectors,
        eigenvalues=values,
        residual=float(np.linalg.norm(rest, axis=0).max() / values[0]),
        gap=float((values[-1] - following) / values[0]),
        trace=trace,
    )
