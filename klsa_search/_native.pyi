"""The extension module in C++, compiled from klsa_search/native when the package is installed.

Arrays are in C order and of the type that is stated; they are never converted or copied. Wrong
shapes or values outside of their range raise ValueError, wrong types TypeError. Functions that
take arrays release the GIL.
"""

from typing import overload

import numpy as np
import numpy.typing as npt

_F32 = npt.NDArray[np.float32]
_F64 = npt.NDArray[np.float64]
_I32 = npt.NDArray[np.int32]
_I64 = npt.NDArray[np.int64]

def instruction_sets() -> list[str]:
    """Return those of "baseline", "avx2", "avx512" that this processor supports, in this order."""

def select_instruction_set(name: str) -> str:
    """Use another instruction set from now on and return the name of the previous one.

    All give the same bits; the largest one is chosen at import. For tests.
    """

class Features:
    """The entries of a sparse matrix Φ in rows (documents): column and weight of each.

    columns  (nnz,) in [0, width)
    weights  (nnz,)
    width    number of columns (features)

    Methods take the first entry and the one after the last of each document, (N,) each. Sums are
    in the order of documents, then of entries.
    """

    def __init__(self, columns: _I32, weights: _F32 | _F64, width: int) -> None: ...
    def find_edge(self, begins: _I64, ends: _I64, edge: int, out: _I64) -> None:
        """Write to `out` (N,) the first entry of each document from column `edge` on.

        The columns of a document must ascend. Cost O(N log n).
        """

    @overload
    def add_to_features(self, begins: _I64, ends: _I64, blocks: _F32, sums: _F32) -> None: ...
    @overload
    def add_to_features(self, begins: _I64, ends: _I64, blocks: _F64, sums: _F64) -> None:
        """Add Φᵀ `blocks` to `sums`: (N, b) → (width, b). Cost O(nnz · b)."""

    @overload
    def add_to_documents(self, begins: _I64, ends: _I64, sums: _F32, out: _F32) -> None: ...
    @overload
    def add_to_documents(self, begins: _I64, ends: _I64, sums: _F64, out: _F64) -> None:
        """Add Φ `sums` to `out`: (width, b) → (N, b). Cost O(nnz · b)."""
