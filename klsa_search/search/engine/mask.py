"""Masks: which documents may be returned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import DocIds

LANES: Final = 64
"""Documents of a word."""
FEW: Final = 1000
"""Largest mask whose documents are each looked up; all that match are rescored."""
PART: Final = 2**16
"""Documents that are tested at once; a multiple of 8."""


class Mask:
    """A set of documents as a bitmap; immutable and thread-safe.

    words    (⌈N / 64⌉,) uint64, a bit for each document; read-only
    size     number of documents in it
    documents  N

    >>> even, small = np.arange(100) % 2 == 0, np.arange(100) < 5
    >>> both = Mask(even) & Mask(small)
    >>> both.size, np.flatnonzero(both.allowed).tolist()
    (3, [0, 2, 4])
    """

    def __init__(self, allowed: npt.NDArray[np.bool_]) -> None:
        words = np.zeros(-(-len(allowed) // LANES), np.uint64)
        packed = np.packbits(allowed, bitorder="little")
        words.view(np.uint8)[: len(packed)] = packed
        self._set_words(words, len(allowed))

    @classmethod
    def from_ranges(
        cls,
        find: Callable[[int, int], npt.NDArray[np.bool_]],
        documents: int,
        before: Mask | None = None,
    ) -> Mask:
        """Return the mask of documents that `find(first, after)` allows, range by range.

        before  mask of the first documents, which are not tested again
        A range stays in the L2 cache while several conditions are tested, and no array of all
        documents is allocated, which would cost more than the tests.
        """
        words = np.zeros(-(-documents // LANES), np.uint64)
        packed_words = words.view(np.uint8)
        begin = 0
        if before is not None:
            words[: len(before.words)] = before.words
            begin = before.documents // 8 * 8
        for first in range(begin, documents, PART):
            packed = np.packbits(find(first, min(first + PART, documents)), bitorder="little")
            packed_words[first // 8 : first // 8 + len(packed)] = packed
        return cls.of_words(words, documents)

    @classmethod
    def of_words(cls, words: npt.NDArray[np.uint64], documents: int) -> Mask:
        """Return the mask with these words, which become read-only."""
        mask = cls.__new__(cls)
        mask._set_words(words, documents)
        return mask

    @classmethod
    def of_documents(cls, doc_ids: DocIds, documents: int) -> Mask:
        """Return the mask of some documents. Cost: O(N)."""
        allowed = np.zeros(documents, np.bool_)
        allowed[doc_ids] = True
        return cls(allowed)

    def _set_words(self, words: npt.NDArray[np.uint64], documents: int) -> None:
        self.words, self.documents = words, documents
        self.size = int(np.bitwise_count(words).sum())
        words.flags.writeable = False

    @property
    def allowed(self) -> npt.NDArray[np.bool_]:
        """Whether each document is in the mask: (N,), a new array. Cost: O(N)."""
        bits = self.words.view(np.uint8)
        return np.unpackbits(bits, count=self.documents, bitorder="little").view(np.bool_)

    def __contains__(self, doc_id: int) -> bool:
        """Return whether a document is in the mask."""
        return bool(self.words.view(np.uint8)[doc_id // 8] >> doc_id % 8 & 1)

    def with_document(self, doc_id: int) -> Mask:
        """Return the mask with one more document. Cost: O(N)."""
        allowed = self.allowed
        allowed[doc_id] = True
        return Mask(allowed)

    def __and__(self, other: Mask) -> Mask:
        """Return the intersection of two masks of equally many documents."""
        return Mask.of_words(self.words & other.words, self.documents)

    def __or__(self, other: Mask) -> Mask:
        """Return the union of two masks of equally many documents."""
        return Mask.of_words(self.words | other.words, self.documents)


def intersection(one: Mask | None, other: Mask | None) -> Mask | None:
    """Return the documents of both masks, of which None is the mask of all documents."""
    if one is None or other is None:
        return other if one is None else one
    return one & other
