"""Names for the arrays that walk through the house; N documents, V terms, k dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Scores = npt.NDArray[np.floating[Any]]
"""(N,) one score a document, in document order."""

Positions = npt.NDArray[np.integer[Any]]
"""(n,) document positions, 0..N-1."""

Basis = npt.NDArray[np.floating[Any]]
"""(N, k) orthonormal columns, strongest first."""

Eigenvalues = npt.NDArray[np.floating[Any]]
"""(k,) eigenvalues, largest first."""

Matrix = npt.NDArray[np.floating[Any]]
"""(m, n) any dense matrix of numbers."""


def narrow_indptr(starts: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.integer[Any]]:
    """Where the rows of a sparse matrix begin, as int32 while that can count the entries.

    SciPy gives both arrays of indices one type: with starts of 8 bytes it copies the columns, by
    far the longer array, to 8 bytes each.
    """
    return starts.astype(np.int32) if starts[-1] <= np.iinfo(np.int32).max else starts


def values_at(
    wanted: npt.NDArray[np.integer[Any]],
    keys: npt.NDArray[np.integer[Any]],
    values: npt.NDArray[Any],
    missing: int = 0,
) -> npt.NDArray[Any]:
    """Return the values of some keys, `missing` for what is not among `keys`: as `wanted`.

    keys  (n,) ascending, and their values
    """
    if not len(keys):
        return np.full(wanted.shape, missing, values.dtype)
    places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[places] == wanted, values[places], missing)
