"""Kernels of documents: by their words, by their vectors, or by the sum of both.

    latent         cosine in the latent space, the default
    vectors:SPACE  cosine of the vectors of a space; of the mean direction of several vectors
    sum:SPACE      cosine in both, side by side: the sum of the two kernels

Each is the inner product of coordinates of length 1. The latent kernel and that of vectors have
diagonal 1, so both count equally in the sum. A document with only one of them has only that part.

And the model of an index as matrices: the spectrum of K, rows of K and rows of D.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np

from klsa_search.core.array_types import Basis, DocIds, Eigenvalues, Matrix
from klsa_search.errors import QueryError
from klsa_search.kernels.vector_space import VectorSpace
from klsa_search.search.index import Index

LATENT: Final = "latent"
VECTORS: Final = "vectors:"
SUM: Final = "sum:"


class Vectors(NamedTuple):
    """The vectors that a kernel uses.

    space      with one vector a document
    and_words  whether words count too
    """

    space: VectorSpace
    and_words: bool


def vectors_of_kernel(
    index: Index, kernel: str, word_kernels: tuple[str, ...] = (LATENT,)
) -> Vectors | None:
    """Return the vectors that a kernel uses; None for one of `word_kernels`, which uses only words.

    QueryError for an unknown kernel or space. Cost: see `VectorSpace.one_each`.
    """
    if kernel in word_kernels:
        return None
    spaces = index.arrays.vectors
    for form in (VECTORS, SUM):
        if isinstance(kernel, str) and kernel.startswith(form):
            space = spaces.get(kernel.removeprefix(form))
            if space is not None:
                return Vectors(space.one_per_document(), form == SUM)
    choices = ", ".join(
        (*word_kernels, *(form + name for name in sorted(spaces) for form in (VECTORS, SUM)))
    )
    raise QueryError(
        f"kernel = {str(kernel)[:80]!r} is unknown; the kernels are: {choices}", field="kernel"
    )


def document_coordinates(index: Index, kernel: str) -> Matrix:
    """Return coordinates of all documents: (N, m) float32, rows of length 1, or 0 without any.

    kernel  "latent", "vectors:SPACE" or "sum:SPACE"
    Cost: memory 4 N · m bytes for vectors of m values. QueryError.
    """
    vectors = vectors_of_kernel(index, kernel)
    if vectors is None:
        return np.asarray(index.arrays.latent.documents)
    coordinates = vectors.space.coordinates(len(index.arrays))
    if not vectors.and_words:
        return coordinates
    words = np.asarray(index.arrays.latent.documents)
    both = np.hstack((words, coordinates))
    has_both = words.any(axis=1) & coordinates.any(axis=1)
    both[has_both] *= np.float32(0.5**0.5)
    return both


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
    expansion = arrays.expansion_of(index.parameters())
    rows = np.zeros((len(numbers), len(arrays)), np.float32)
    for row, number in zip(rows, numbers, strict=True):
        row[:] = expansion.expand(np.array([number]), np.ones(1, np.float32))
    return rows


def _numbers(index: Index, ids: Iterable[str] | None) -> DocIds:
    """Return doc ids of documents; of all live ones by default."""
    return np.array(index.doc_ids(index.ids() if ids is None else ids), np.int64)
