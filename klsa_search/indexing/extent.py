"""Number of documents of a source, estimated from the bytes of the first of them."""

from __future__ import annotations

import gzip
from collections.abc import Sequence, Sized
from itertools import islice
from pathlib import Path

from klsa_search.collection import Collection, Document
from klsa_search.collection.lines import GZIP, ZIP, ZSTD
from klsa_search.collection.model import Filed

_FIRST = 5_000  # documents before the first guess


class Extent:
    """Follows a pass over a collection and guesses how many documents there will be."""

    def __init__(self, collection: Collection) -> None:
        files = collection.files() if isinstance(collection, Filed) else []
        self._sizes = {str(path): path.stat().st_size for path in files}
        self._passed = 0
        self._due = _FIRST
        self._guess = len(collection) if isinstance(collection, Sized) else None

    @property
    def bytes(self) -> int:
        """Bytes of the files of the source; 0 where it has none."""
        return sum(self._sizes.values())

    def pass_on(self, documents: Sequence[Document]) -> None:
        """Take note of the next documents; estimate again whenever their number has doubled."""
        self._passed += len(documents)
        if self._sizes and self._passed >= self._due:
            self._due = 2 * self._passed
            self._guess = self.guess(self._passed, documents[-1].origin)

    def documents(self, done: int) -> int | None:
        """Number of all documents, at least `done`; None if unknown."""
        return None if self._guess is None else max(self._guess, done)

    def guess(self, number: int, origin: str) -> int | None:
        """Guess the documents in all from where number `number`, from 1, begins: "file:line".

        None where that is in no file of the source, or within one that zip or zstd packed. Cost:
        reading that file up to there.
        """
        name, _, line = origin.rpartition(":")
        if name not in self._sizes or (line != "1" and _is_packed(Path(name))):
            return None
        read = 0
        for path, size in self._sizes.items():
            if path == name:
                break
            read += size
        read += _offset(Path(name), int(line) - 1)
        return round((number - 1) * self.bytes / read) if read else None


def _is_packed(path: Path) -> bool:
    """Return whether the bytes of the first lines of a file are unknown."""
    with path.open("rb") as raw:
        return raw.peek(4)[:4] in (ZIP, ZSTD)


def _offset(path: Path, lines: int) -> int:
    """Bytes of the file that hold its first lines."""
    with path.open("rb") as raw:
        if raw.peek(2)[:2] != GZIP:
            return sum(map(len, islice(raw, lines)))
        with gzip.GzipFile(fileobj=raw) as packed:
            for _ in islice(packed, lines):
                pass
            return raw.tell()
