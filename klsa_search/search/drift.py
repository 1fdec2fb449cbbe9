"""Drift: how far an index is from its build."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Drift:
    """Drift of an index from its build.

    added   number of live documents added after the build
    deleted number of documents of the build that were deleted or replaced
    passed  number of documents added after the build and deleted or replaced again
    words   number of words of the added documents
    unseen  number of those words whose terms the build does not know
    bytes   bytes of memory of the delta index
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
