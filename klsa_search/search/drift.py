"""How far an index has come from what was built."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Drift:
    """How far an index has come from what was built.

    added   documents there are that came later
    deleted documents of the build that were deleted or replaced
    passed  documents that came later and were deleted or replaced since
    words   the words of those that were added, terms as they are counted
    unseen  how many of them are of terms that no document of the build holds
    bytes   in memory, of what came later
    """

    added: int = 0
    deleted: int = 0
    passed: int = 0
    words: int = 0
    unseen: int = 0
    bytes: int = 0

    @property
    def unseen_share(self) -> float:
        """Which share of the later words the build cannot weigh: 0 to 1."""
        return self.unseen / self.words if self.words else 0.0

    def added_share(self, documents: int) -> float:
        """Which share of so many documents came later: 0 to 1."""
        return self.added / documents if documents else 0.0

    def changed_share(self, documents: int) -> float:
        """Which share of all there are and were, so many now, came later or is gone: 0 to 1."""
        dead = self.deleted + self.passed
        return (self.added + dead) / (documents + dead) if documents + dead else 0.0
