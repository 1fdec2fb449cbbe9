"""Sparse matrices of a generation: three `.npy` files each, memory-mapped on open."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from klsa_search.arrays import narrowed
from klsa_search.store.arrays import open_array

if TYPE_CHECKING:
    from scipy import sparse


def sparse_arrays(name: str, matrix: sparse.csr_array) -> dict[str, npt.NDArray[np.generic]]:
    """Take a CSR matrix apart: `<name>_starts`, `<name>_columns`, `<name>_weights`, float32."""
    return {
        f"{name}_starts": matrix.indptr.astype(np.int64),
        f"{name}_columns": matrix.indices.astype(np.int32),
        f"{name}_weights": matrix.data.astype(np.float32),
    }


def open_sparse(generation: Path, name: str, columns: int) -> sparse.csr_array:
    """Put it together again over the mapped files, reading only the starts."""
    from scipy import sparse

    starts = narrowed(open_array(generation, f"{name}_starts"))
    matrix = sparse.csr_array(
        (
            open_array(generation, f"{name}_weights"),
            open_array(generation, f"{name}_columns"),
            starts,
        ),
        shape=(len(starts) - 1, columns),
        copy=False,
    )
    matrix.has_sorted_indices = True
    return matrix
