"""Source: what a cluster builds from, and how it is cut into parts that are read side by side.

JSON lines of which each has an id are cut at line ends. Anything else is read by one step, as its
documents may depend on one another: numbers stand for ids, fields take the type of a first value.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from klsa_search.cluster.files import note, noted
from klsa_search.cluster.work import Work
from klsa_search.collection import COLLECTIONS, open_collection
from klsa_search.collection.irds import PREFIX
from klsa_search.collection.known import PYTHON_DOCS
from klsa_search.collection.lines import Stretch, is_packed
from klsa_search.collection.record import PLAIN, Columns
from klsa_search.config import Settings
from klsa_search.errors import CollectionError

PART: Final = 2**24
"""Bytes of a source that one step reads, about, unless there are too many."""

MOST: Final = 256
"""Parts of a source, or pieces of its documents, that are merged at a time: files that are open."""

_READ: Final = 2**20


class Source:
    """A source that any process on any machine can open: a path they all see, or a name.

    reading     how to open it, as arguments of `open_collection` that JSON has
    collection  opened here
    CollectionError for a source that is neither, and as `open_collection`.
    """

    def __init__(self, source: object, reading: Mapping[str, Any]) -> None:
        if not isinstance(source, str | os.PathLike):
            raise CollectionError(
                f"a {type(source).__name__} cannot be read by other processes; "
                "write it to a file and name that",
                field="source",
            )
        given = os.fspath(source)
        data = reading.get("data")
        places = [data] if isinstance(data, str | os.PathLike) else data
        self.reading: dict[str, Any] = {
            **reading,
            "source": given if _is_name(given) else os.fspath(Path(given).absolute()),
            "data": None
            if places is None
            else [os.fspath(Path(each).absolute()) for each in places],
        }
        self.collection = open_collection(**self.reading)

    def identity(self) -> str:
        """Digest of the files it is read from, their paths, sizes and times: a look at each."""
        digest = hashlib.sha256(json.dumps(self.reading, sort_keys=True, default=dict).encode())
        for path in self.collection.files():
            facts = path.stat()
            digest.update(f"{os.fspath(path)!r} {facts.st_size} {facts.st_mtime_ns}\n".encode())
        return digest.hexdigest()

    def lines(self, settings: Settings) -> Path | None:
        """Find the one file of lines that can be read by parts; None where there is none.

        Cost: reading the first document.
        """
        files = list(self.collection.files())
        may = (
            self.collection.format in ("jsonl", "beir")
            and len(files) == 1
            and Columns.of(self.reading.get("columns")) == PLAIN
            and not settings.declared()
            and not is_packed(files[0])
        )
        if not may or next(iter(self.collection.documents()), None) is None:
            return None
        return None if self.collection.numbered else files[0]


def stretches(work: Work, path: Path, identity: str) -> list[Stretch]:
    """Cut a file at line ends, into parts of some `PART` bytes. Cost: reading it, side by side."""
    size = path.stat().st_size
    edges = [*range(0, size, max(PART, -(-size // MOST))), size]
    made = work.make(
        find_lines,
        *(
            {"path": os.fspath(path), "identity": identity, "begin": begin, "end": end}
            for begin, end in pairwise(edges)
        ),
    )
    found = [noted(each) for each in made]
    begins = [facts["begin"] for facts in found] + [size]
    number, cut = 1, []
    for facts, end in zip(found, begins[1:], strict=True):
        if facts["lines"]:
            cut.append(Stretch(facts["begin"], end, number))
        number += facts["lines"]
    return cut


def find_lines(out: Path, path: str, identity: str, begin: int, end: int) -> None:
    """Step: find where the first line of a range of bytes begins, and how many lines begin in it.

    The range of a line's middle alone has none, and begins where the next one does.
    """
    lines, first = int(begin == 0), 0 if begin == 0 else None
    with open(path, "rb") as stream:
        at = max(begin - 1, 0)
        stream.seek(at)
        while at < end - 1 and (piece := stream.read(min(_READ, end - 1 - at))):
            if first is None and (found := piece.find(b"\n")) >= 0:
                first = at + found + 1
            lines += piece.count(b"\n")
            at += len(piece)
    note(out, begin=end if first is None else first, lines=lines)


def _is_name(source: str) -> bool:
    return source in COLLECTIONS or source == PYTHON_DOCS or source.startswith(PREFIX)
