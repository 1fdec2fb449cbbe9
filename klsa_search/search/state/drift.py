"""Drift: how far the live documents of an index are from those of its training."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from klsa_search.delta.statistics import trained_documents, trained_statistics
from klsa_search.storage.arrays import open_array
from klsa_search.storage.manifest import Manifest


@dataclass(frozen=True, slots=True)
class Drift:
    """Drift of an index from its training: the documents of the last build or refit.

    added   number of live documents added after the training
    deleted number of documents of the training that were deleted or replaced by other words
    passed  number of documents added after the training that were deleted or replaced since the
            last compaction
    words   number of words of the added documents
    unseen  number of those words whose terms the training does not know
    bytes   bytes of memory of the delta index
    A document that replaces one with the same words, as with a new price, counts as that one.
    """

    added: int = 0
    deleted: int = 0
    passed: int = 0
    words: int = 0
    unseen: int = 0
    bytes: int = 0

    @property
    def unseen_share(self) -> float:
        """Return the share of the added words that the build does not know, 0 to 1."""
        return self.unseen / self.words if self.words else 0.0

    def added_share(self, documents: int) -> float:
        """Return the share of this many live documents that were added, 0 to 1."""
        return self.added / documents if documents else 0.0

    def changed_share(self, documents: int) -> float:
        """Return the share of all documents that were added or deleted, for so many live ones."""
        dead = self.deleted + self.passed
        return (self.added + dead) / (documents + dead) if documents + dead else 0.0


def drift_of(generation: Path, manifest: Manifest) -> Drift:
    """Return the drift of a generation from its training: none, unless by a compaction."""
    trained = trained_statistics(generation)
    if manifest.trained is None or trained is None:
        return Drift()
    is_later = ~trained_documents(generation, manifest)
    lengths = open_array(generation, "lengths")
    occurrences = open_array(generation, "postings_occurrences")
    return Drift(
        added=int(is_later.sum()),
        deleted=trained.documents - manifest.trained,
        words=int(lengths[is_later].sum(dtype=np.int64)),
        unseen=int(occurrences[len(trained.frequencies) :].sum()),
    )
