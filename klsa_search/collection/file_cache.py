"""Files of a folder that have not changed since they were read, for a source read repeatedly."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from klsa_search.collection.model import Document
from klsa_search.errors import DocumentNotFound


class _FileState(NamedTuple):
    """A file as it was read.

    stamp  inode, size and times: one of them changes if the content does
    ids    of its documents
    """

    stamp: tuple[int, int, int, int]
    ids: list[str]

    @classmethod
    def of(cls, path: Path) -> _FileState:
        """Return the present state of a file, without documents."""
        status = path.stat()
        times = status.st_mtime_ns, status.st_ctime_ns
        return cls((status.st_ino, status.st_size, *times), [])


class FileCache:
    """Remembers size, times and document IDs of each file that was read in the last sync.

    stored  returns the document of an ID as the sync stored it; DocumentNotFound
    Memory: some hundred bytes a file.
    """

    def __init__(self, stored: Callable[[str], Document]) -> None:
        self._stored = stored
        self._synced: dict[Path, _FileState] = {}
        self._read: dict[Path, _FileState] = {}  # by the present pass

    def documents(
        self, path: Path, read: Callable[[], Iterator[Document]], problems: Callable[[], int]
    ) -> Iterator[Document]:
        """Yield the documents of a file: stored ones if it has not changed, else as `read` does.

        problems  returns the number of records skipped so far: a file with any is read again
        """
        before = problems()
        state = _FileState.of(path)  # before it is read, so that a later change is noticed
        ids = self._unchanged(path, state)
        for document in read() if ids is None else map(self._stored, ids):
            state.ids.append(document.id)
            yield document
        if problems() == before:
            self._read[path] = state

    def commit(self) -> None:
        """Remember the files of the last pass, whose documents are stored now."""
        self._synced, self._read = self._read, {}

    def discard(self) -> None:
        """Forget the last pass, whose documents were not stored."""
        self._read = {}

    def _unchanged(self, path: Path, state: _FileState) -> list[str] | None:
        """Return the documents of a file that has not changed, if all are stored; else None."""
        synced = self._synced.get(path)
        if synced is None or synced.stamp != state.stamp:
            return None
        try:
            for id_ in synced.ids:  # one in memory at a time: a table may have many
                self._stored(id_)
        except DocumentNotFound:  # another process has deleted it
            return None
        return synced.ids
