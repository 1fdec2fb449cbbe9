"""The model of an index as matrices: the spectrum of K, rows of K and rows of D."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from klsa_search.core.array_types import Basis, DocIds, Eigenvalues, Matrix
from klsa_search.search.index import Index


class Spectrum(NamedTuple):
    """Eigenvalues and eigenvectors of the document kernel K, as far as they were computed.

    eigenvalues   (k,) descending
    eigenvectors  U: (N, k); (N, 0) if they are not stored

    >>> isinstance(spectrum(index), Spectrum)
    True
    """

    eigenvalues: Eigenvalues
    eigenvectors: Basis


def spectrum(index: Index) -> Spectrum:
    """Return the spectrum of the document kernel K, as of the build. Cost: reading it.

    It does not include documents added since the build.

    >>> values, vectors = spectrum(index)
    >>> bool(values[0] >= values[1] > 0), vectors.shape == (len(vectors), len(values))
    (True, True)
    """
    arrays = index.arrays
    return Spectrum(np.array(arrays.eigenvalues), np.array(arrays.eigenvectors))


def kernel_rows(index: Index, ids: Iterable[str] | None = None) -> Matrix:
    """Return rows of the document kernel K: (n, N) float64, columns by doc id.

    ids  documents whose rows are returned, in this order; all by default
    An index stores features in 8 bits, so K is approximate, within about 1%.
    Cost: the features of all documents, O(nnz), and 8 n N bytes of memory. DocumentNotFound.

    >>> row = kernel_rows(index, ["tyre"])[0]
    >>> sorted(index.ids(row.argsort()[::-1][:2]))
    ['copy', 'tyre']
    """
    return index.arrays.kernel.rows(_numbers(index, ids))


def expansion_rows(index: Index, ids: Iterable[str] | None = None) -> Matrix:
    """Return rows of the expansion matrix D of an index: (n, N) float32.

    ids  documents whose rows are returned, in this order; all by default
    D is K divided by its largest eigenvalue, unless `spectral` is set otherwise. Rows are complete,
    even if the index stores only the strongest entries. Cost: that of `kernel_rows`, or of reading
    the stored rows of D. DocumentNotFound.

    >>> expansion_rows(index, ["tyre", "copy"]).shape == (2, index.max_doc)
    True
    """
    arrays, numbers = index.arrays, _numbers(index, ids)
    expansion = arrays.expansion_of(index.parameters(), index.settings.dimensions)
    rows = np.zeros((len(numbers), len(arrays)), np.float32)
    for row, number in zip(rows, numbers, strict=True):
        row[:] = expansion.expand(np.array([number]), np.ones(1, np.float32))
    return rows


def _numbers(index: Index, ids: Iterable[str] | None) -> DocIds:
    """Return doc ids of documents; of all live ones by default."""
    return np.array(index.doc_ids(index.ids() if ids is None else ids), np.int64)
