"""Kernels of documents: by their words, by their vectors, or by the sum of both.

    latent         cosine in the latent space, the default
    vectors:SPACE  cosine of the vectors of a space; of the mean direction of several vectors
    sum:SPACE      cosine in both, side by side: the sum of the two kernels

Each is the inner product of coordinates of length 1. The latent kernel and that of vectors have
diagonal 1, so both count equally in the sum. A document with only one of them has only that part.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from klsa_search.core.array_types import Matrix
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
