"""What a folding knows of the documents that came after the build: what the next compares with."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from klsa_search.delta.candidates import Later, invert, link_up
from klsa_search.delta.epoch import Epoch
from klsa_search.delta.strongest import Held
from klsa_search.expansion.cut import FACTS
from klsa_search.expansion.packing import LEVELS
from klsa_search.features import bm25
from klsa_search.growing import Growing
from klsa_search.kernel.postings import UNIT

CHAINED: Final = 512
"""Documents that stand in chains at most."""


class Known:
    """Arrays over all documents that came later, each appended to; and 12 bytes per term."""

    def __init__(self, epoch: Epoch) -> None:
        self._epoch = epoch
        self._starts = Growing(np.int64)
        self._starts.extend(np.zeros(1, np.int64))
        self._features = Growing(np.uint32)
        self._facts = Growing(np.float32, FACTS)
        self._boosts = Growing(np.float32)
        self._weakest = Growing(np.float32)
        self._term_starts = Growing(np.int64)
        self._term_starts.extend(np.zeros(1, np.int64))
        self._terms = Growing(np.int32)
        self._shares = Growing(np.uint16)
        self._inverted = 0  # documents in the inverted file
        self._invert()

    def __len__(self) -> int:
        """How many documents there are."""
        return len(self._boosts)

    @property
    def held(self) -> Held:
        """The documents as the kernel compares them."""
        return Held(self._starts.held, self._features.held, self._facts.held, self._boosts.held)

    @property
    def linked(self) -> int:
        """How many documents are found by their terms."""
        return len(self._term_starts) - 1

    @property
    def later(self) -> Later:
        """The documents that are found by their terms."""
        return Later(*self._file, self._heads, self._links.held)

    def append(
        self,
        starts: npt.NDArray[np.int64],
        features: npt.NDArray[np.uint32],
        cards: npt.NDArray[np.int8],
        diagonals: npt.NDArray[np.float32],
    ) -> None:
        """Append documents as the kernel compares them."""
        facts = cards.view(np.float32)[:, -FACTS:]
        self._starts.extend(starts[1:] + len(self._features))
        self._features.extend(features)
        self._facts.extend(facts)
        self._boosts.extend(boosts(facts, diagonals))

    def link(
        self,
        starts: npt.NDArray[np.int64],
        terms: npt.NDArray[np.int32],
        counts: npt.NDArray[np.int32],
        lengths: npt.NDArray[np.int32],
    ) -> None:
        """Link the next documents up, given their counts and their lengths."""
        if self.linked + len(lengths) - self._inverted > CHAINED:
            self._invert()
        settings, first = self._epoch.settings, self.linked
        norms = bm25.norms(lengths, self._epoch.standing, k1=settings.k1, b=settings.b)
        sums = np.repeat(norms, np.diff(starts)) + counts
        shares = np.clip(np.rint(UNIT * (counts / sums)), 1, UNIT - 1).astype(np.uint16)
        self._term_starts.extend(starts[1:] - starts[0] + len(self._terms))
        self._terms.extend(terms)
        self._shares.extend(shares)
        links = np.empty((len(terms), 3), np.uint32)
        link_up(starts - starts[0], terms, shares, first, len(self._links), self._heads, links)
        self._links.extend(links)

    def _invert(self) -> None:
        """Make the inverted file of all documents; the chains are empty then. Cost O(V + nnz)."""
        size, terms = len(self._terms), self._epoch.terms
        since = np.zeros(terms + 1, np.int64)
        documents, shares = np.empty(size, np.int32), np.empty(size, np.uint16)
        invert(
            self._term_starts.held, self._terms.held, self._shares.held, since, documents, shares
        )  # fmt: skip
        self._file = since, documents, shares
        self._heads = np.zeros(terms, np.int32)
        self._links = Growing(np.uint32, 3)
        self._links.extend(np.zeros((1, 3), np.uint32))  # which is none
        self._inverted = self.linked

    def append_rows(self, rows: npt.NDArray[np.uint32], scales: npt.NDArray[np.float32]) -> None:
        """Append how strong the weakest entry of each row is."""
        self._weakest.extend(weakest(rows, scales))

    def weakest(self, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        """The weakest entry of the rows of documents, old and new; 0 where there is room."""
        cut, first = self._epoch.cut, self._epoch.first
        found = np.empty(len(positions), np.float32)
        old = positions < first
        found[old] = weakest(cut.rows[positions[old]], cut.scales[positions[old]])
        found[~old] = self._weakest.held[positions[~old] - first]
        return found


def boosts(
    facts: npt.NDArray[np.float32], diagonals: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """S · K(x,x)^-¼: (n,); without it long documents crowd every pool."""
    lengths = np.where(diagonals > 0, diagonals, 1)
    return np.where(diagonals > 0, facts[:, 1] / np.sqrt(np.sqrt(lengths)), 0).astype(np.float32)


def weakest(
    rows: npt.NDArray[np.uint32], scales: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """The last entry of each row: (n,); 0 where it has fewer than there is room for."""
    return (rows[:, -1] & np.uint32(LEVELS)).astype(np.float32) * scales[:, 0]
