"""The best documents of a query in one partition of an index, of which some may be seeds.

Documents are named by ordinals, which are the same in all partitions: see `Snapshot.ordinals_of`.
Only later documents of different partitions can have equal ordinals; keys differ for these too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import DocIds
from klsa_search.lowrank.sparse_expansion import LEVELS, SegmentedExpansion

FIRST_LATER: Final = 2**40
"""Least ordinal of documents written after the build: more than an index has documents."""

PARTITION_STEP: Final = 2**32
"""Step between the keys of later documents of different partitions."""


def ordinals_of_keys(keys: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.integer[Any]]:
    """Return the ordinals of documents by key."""
    return narrow_ordinals(np.where(keys < FIRST_LATER, keys, FIRST_LATER + keys % PARTITION_STEP))


def narrow_ordinals(ordinals: npt.NDArray[np.int64]) -> npt.NDArray[np.integer[Any]]:
    """Return ordinals in 32 bits if they fit, which halves what other processes are sent."""
    return ordinals.astype(np.uint32) if ordinals.max(initial=0) < 2**32 else ordinals


def distinct_known(numbers: Sequence[int]) -> npt.NDArray[np.int64]:
    """Return the distinct terms of a query that documents contain, in its order: (n,).

    Partitions number some terms differently, but these are the same words in all of them.
    """
    return np.array(list(dict.fromkeys(term for term in numbers if term >= 0)), np.int64)


class DocFeatures(NamedTuple):
    """Features of some documents.

    starts   (n + 1,) offsets of each document in `entries`
    entries  of a feature: its number in the upper 24 bits, a level in the lower 8
    document_scalars  (n, 3) float32: their step, S and SΦμ
    """

    starts: npt.NDArray[np.int64]
    entries: npt.NDArray[np.uint32]
    document_scalars: npt.NDArray[np.float32]

    @classmethod
    def of(cls, expansion: SegmentedExpansion, documents: DocIds) -> DocFeatures:
        """Return the features of documents of an index. Cost: their entries."""
        return cls(*expansion.features(documents), expansion.document_scalars(documents))

    def at(self, position: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """Return numbers and values of the features of one of the documents."""
        entries = self.entries[self.starts[position] : self.starts[position + 1]]
        levels = (entries & np.uint32(LEVELS)).astype(np.float64)
        return (entries >> np.uint32(8)).astype(np.int64), self.document_scalars[
            position, 0
        ] * levels


class QueryImpacts(NamedTuple):
    """Impacts of the n distinct terms of a query in the b best documents of a partition.

    impacts       (b, n) in steps; terms are in the order of the query
    term_weights  (n,) f(t,q) · h(t) · w(t)
    half          (n,) impact at which g is one half, in steps
    """

    impacts: npt.NDArray[np.float32]
    term_weights: npt.NDArray[np.float32]
    half: npt.NDArray[np.float32]


class SeedRows(NamedTuple):
    """Rows of D of n documents, with their entries in all partitions.

    documents  (n, w) ordinals or keys of the entries, strongest first, then reverse entries
    levels     (n, w) of the entries, 0 for none
    steps      (n, 2) value of one level, and of one level of reverse entries
    width      number of entries of a row that are not reverse entries
    near       number of entries of a row that count for coverage, the first ones
    """

    documents: npt.NDArray[np.integer[Any]]
    levels: npt.NDArray[np.uint8]
    steps: npt.NDArray[np.float32]
    width: int
    near: int

    @property
    def values(self) -> npt.NDArray[np.float32]:
        """Return the value of one level of each entry: (n, w)."""
        reverse = self.documents.shape[1] - self.width
        return np.repeat(self.steps, (self.width, reverse), axis=1)

    def among(self, chosen: npt.NDArray[np.bool_]) -> SeedRows:
        """Return the rows with some of their entries, and ordinals instead of keys.

        chosen  (n, w) whether to keep each entry
        """
        return self._replace(
            documents=ordinals_of_keys(self.documents), levels=self.levels * chosen
        )


NO_ROWS: Final = SeedRows(
    np.zeros((0, 0), np.int64), np.zeros((0, 0), np.uint8), np.zeros((0, 2), np.float32), 0, 0
)


class LocalSeeds(NamedTuple):
    """The b best documents of one partition by the query kernel; the first z may be seeds.

    doc_ids    (b,)
    steps      (b,) k_q in steps, highest first
    documents  (b,) ordinals
    terms      impacts of the terms of the query in the documents
    latent     (z,) L in steps of a cosine
    features   of the first z
    share      share of the query that the first contains, by term weights
    angle      one step of a cosine of the query
    rows       of the first z
    names      (b,) ID and title of each, for a request that explains scores
    """

    doc_ids: npt.NDArray[np.int32]
    steps: npt.NDArray[np.int64]
    documents: npt.NDArray[np.int64]
    terms: QueryImpacts
    latent: npt.NDArray[np.int32]
    features: DocFeatures
    share: float
    angle: float
    rows: SeedRows = NO_ROWS
    names: tuple[tuple[str, str], ...] = ()
