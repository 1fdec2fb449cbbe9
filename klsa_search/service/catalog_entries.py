"""What the catalog of a service has for the name of an index, and the state that it reports."""

from __future__ import annotations

from dataclasses import dataclass

from klsa_search.search.index import Index
from klsa_search.storage.checksums import ChecksumCheck


@dataclass(slots=True, eq=False)
class OpenGeneration:
    """One open generation with its reference count; guarded by the catalog's lock."""

    index: Index
    mark: object
    sums: ChecksumCheck
    users: int = 0
    retired: bool = False
    damage: str | None = None

    def close(self) -> None:
        """Close the index, and stop comparing its checksums."""
        self.sums.stop()
        self.index.close()


@dataclass(frozen=True, slots=True)
class Entry:
    """One name of the index directory: an open generation, why it cannot be opened, or both.

    Both: the newest generation, with the mark `failed_mark`, cannot be opened, or the open one is
    damaged; the open one is served. The next attempt is at `retry_at`, in seconds of `monotonic`.
    word  word of its changes when it was read
    """

    opened: OpenGeneration | None = None
    failure: str | None = None
    failed_mark: object = None
    retry_at: float = 0.0
    word: bytes = b""


@dataclass(frozen=True, slots=True)
class Status:
    """State of one index of the catalog.

    index    snapshot of the served index, or None; its arrays stay readable after a swap, but
             documents can be read only within `Catalog.use`
    failure  why the newest generation is not served, or is damaged
    sums     state of its checksum comparison: see `ChecksumCheck`
    damaged  whether the served generation is damaged
    """

    name: str
    index: Index | None
    failure: str | None
    sums: str | None = None
    damaged: bool = False

    @classmethod
    def of(cls, name: str, entry: Entry) -> Status:
        """Return the state of an entry."""
        opened = entry.opened
        if opened is None:
            return cls(name, None, entry.failure)
        sums = opened.sums
        if sums.failure is not None:
            return cls(name, None, sums.failure, sums.state, damaged=True)
        damage = opened.damage
        reason = entry.failure or damage
        index = opened.index.snapshot()
        return cls(name, index, reason, sums.state, damaged=damage is not None)
