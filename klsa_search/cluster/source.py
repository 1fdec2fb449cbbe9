"""Read the source of a build in parallel, if it can be divided at line ends.

JSON lines with an ID in each are divided. Other sources are read by one step, as their documents
may depend on each other: numbers as IDs, types of fields from first values.

A step reads a part, and writes its records, sorted IDs and refused records. Then the IDs are
merged, refused records are reported in the order of a single pass, and the records concatenated.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from klsa_search.cluster.analysing import find_repeated, ids_at, left_out, write_ids
from klsa_search.cluster.work import StepResult, Work, map_array, read_facts, write_facts
from klsa_search.collection import tables
from klsa_search.collection.intake import duplicate_id
from klsa_search.collection.irds import PREFIX
from klsa_search.collection.lines import LineRange, is_compressed
from klsa_search.collection.mappings import PLAIN, Columns
from klsa_search.collection.model import Document, Problems, Unread
from klsa_search.collection.opened_collection import OpenedCollection
from klsa_search.collection.opening import open_collection, open_line_range
from klsa_search.collection.public_collections import COLLECTIONS, PYTHON_DOCS
from klsa_search.collection.vectors import VECTORS
from klsa_search.core.config import Settings
from klsa_search.errors import CollectionError
from klsa_search.indexing.reading import build_batches
from klsa_search.lowrank.products import ROWS
from klsa_search.storage.arrays import ArrayWriter, write_arrays
from klsa_search.storage.columns.declared import DeclaredFields, fitting
from klsa_search.storage.documents import RECORDS, STARTS, RecordWriter

PIECE: Final = 2**24
"""Approximate bytes of records that one step analyses; more for more than `MOST` pieces."""

Cut = list[list[tuple[int, int]]]
"""Pieces [first, last) of each shard."""


def cut_records(records: StepResult, documents: int, shards: int) -> Cut:
    """Divide all documents into at least one shard, and each shard into pieces.

    All shards but the last have a multiple of `ROWS` documents.
    """
    starts = map_array(records, STARTS)
    size = max(PIECE, -(-int(starts[-1]) // MOST))
    slices = -(-documents // ROWS)
    edges = sorted({min(ROWS * (slices * i // shards), documents) for i in range(1, shards)})
    edges = [0, *(edge for edge in edges if 0 < edge < documents), documents]
    cut = []
    for first, last in pairwise(edges):
        number = max(1, -(-int(starts[last] - starts[first]) // size))
        inner = starts[first] + (starts[last] - starts[first]) * np.arange(1, number) // number
        places = {*np.searchsorted(starts[first:last], inner).tolist()} - {0, last - first}
        bounds = [first, *(first + place for place in sorted(places)), last]
        cut.append(list(pairwise(bounds)))
    return cut


def cut_terms(sums: StepResult, number: int) -> list[tuple[int, int]]:
    """Divide all terms into ranges with about the same number of postings."""
    ends = np.cumsum(map_array(sums, "frequencies"))
    if not len(ends):
        return [(0, 0)]
    edges = np.searchsorted(ends, int(ends[-1]) * np.arange(1, number) // number) + 1
    bounds = [0, *sorted({*edges.tolist()} - {0, len(ends)}), len(ends)]
    return list(pairwise(bounds))


PART: Final = 2**24
"""Approximate bytes of a source that one step reads; more for more than `MOST` parts."""

MOST: Final = 256
"""Maximum number of parts of a source, or of pieces: a merge opens all of them."""

_READ: Final = 2**20


class SharedSource:
    """A source that all workers can open: a path that all machines see, or a name.

    reading     arguments of `open_collection`, as JSON values
    collection  the collection, opened in this process
    CollectionError for another kind of source, and as of `open_collection`.
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
        if given.startswith(tables.PREFIX):
            place = str(tables.DatabaseSource.of(given))
        else:
            place = given if _is_name(given) else os.fspath(Path(given).absolute())
        self.reading: dict[str, Any] = {
            **reading,
            "source": place,
            "data": None
            if places is None
            else [os.fspath(Path(each).absolute()) for each in places],
        }
        self.collection = open_collection(**self.reading)

    def identity(self) -> str:
        """Return a digest of the paths, sizes and times of its files."""
        digest = hashlib.sha256(json.dumps(self.reading, sort_keys=True, default=dict).encode())
        for path in self.collection.files():
            facts = path.stat()
            digest.update(f"{os.fspath(path)!r} {facts.st_size} {facts.st_mtime_ns}\n".encode())
        return digest.hexdigest()

    def lines(self, settings: Settings) -> Path | None:
        """Return the file of lines that can be divided, or None. Cost: reads the first document."""
        files = list(self.collection.files())
        may = (
            self.collection.format in ("jsonl", "beir")
            and len(files) == 1
            and Columns.of(self.reading.get("columns")) == PLAIN
            and not settings.declared()
            and not settings.split
            and not is_compressed(files[0])
        )
        if not may or next(iter(self.collection.documents()), None) is None:
            return None
        together = self.collection.numbered or self.collection.completed
        return None if together else files[0]


def line_ranges(work: Work, path: Path, identity: str) -> list[LineRange]:
    """Divide a file at line ends into parts of about `PART` bytes. Cost: reads it in parallel."""
    size = path.stat().st_size
    edges = [*range(0, size, max(PART, -(-size // MOST))), size]
    made = work.make(
        find_lines,
        *(
            {"path": os.fspath(path), "identity": identity, "begin": begin, "end": end}
            for begin, end in pairwise(edges)
        ),
    )
    found = [read_facts(each) for each in made]
    begins = [facts["begin"] for facts in found] + [size]
    number, cut = 1, []
    for facts, end in zip(found, begins[1:], strict=True):
        if facts["lines"]:
            cut.append(LineRange(facts["begin"], end, number))
        number += facts["lines"]
    return cut


def find_lines(out: Path, path: str, identity: str, begin: int, end: int) -> None:
    """Step: find the start of the first line in a range of bytes, and count lines that start there.

    A range within one line has no lines, and its start is that of the next range.
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
    write_facts(out, begin=end if first is None else first, lines=lines)


def _is_name(source: str) -> bool:
    return source in COLLECTIONS or source == PYTHON_DOCS or source.startswith(PREFIX)


_PIECE = 2**22  # bytes copied at a time


class Records(NamedTuple):
    """All documents of a source.

    documents  number of documents
    records    folder with `documents.npy` and `documents_starts.npy`, as in a generation
    ids        arguments of the step that indexes the IDs
    """

    documents: int
    records: StepResult
    ids: Mapping[str, Any]


def read_records(work: Work, source: SharedSource, identity: str, settings: Settings) -> Records:
    """Read a source, and report refused records to its collection.

    CollectionError as in a single pass.
    """
    lines = source.lines(settings)
    if lines is None:
        read = work.one(
            read_whole,
            source=source.reading,
            identity=identity,
            declared=settings.declared(),
            separators=settings.separators(),
        )
        facts = read_facts(read)
        problems = Problems(**facts["problems"])
        unread = Unread(facts["unread"]["kinds"], facts["unread"]["first"])
        source.collection.adopt(
            problems, facts["numbered"], facts["noted"], unread, facts["options"]
        )
        return Records(facts["documents"], read, {"parts": [read], "repeated": None})
    on_error = source.reading.get("on_error", "stop")
    parts = work.make(
        read_line_range,
        *(
            {
                "path": os.fspath(lines),
                "identity": identity,
                "line_range": list(line_range),
                "on_error": on_error,
            }
            for line_range in line_ranges(work, lines, identity)
        ),
    )
    repeated = work.one(find_repeated, parts=parts)
    _report_refused(source.collection, lines, parts, repeated)
    records = work.one(join_records, parts=parts, repeated=repeated)
    documents = len(map_array(records, STARTS)) - 1
    return Records(documents, records, {"parts": parts, "repeated": repeated})


def read_whole(
    out: Path,
    source: Mapping[str, Any],
    identity: str,
    declared: Mapping[str, Any],
    separators: Mapping[str, str],
) -> None:
    """Step: read a source in one pass. CollectionError. Memory: its ids."""
    collection = open_collection(**source)
    ids, failure = _write(out, fitting(collection, DeclaredFields(declared, separators)))
    if failure is not None:
        raise failure
    write_ids(out, ids)
    problems = collection.problems
    kept = {"count": problems.count, "reasons": problems.reasons, "kinds": problems.kinds}
    write_facts(
        out,
        documents=len(ids),
        problems=kept,
        numbered=collection.numbered,
        noted=collection.noted,
        unread=collection.unread.as_json(),
        options=collection.options,
    )


def read_line_range(
    out: Path, path: str, identity: str, line_range: Sequence[int], on_error: str
) -> None:
    """Step: read some lines, and write the line of each document to `lines.npy`.

    `_report_refused` reports IDs that other parts have too.
    """
    collection = open_line_range(Path(path), on_error, LineRange(*line_range))
    lines: list[int] = []
    places: list[int] = []  # number of documents before each reason

    def documents() -> Iterator[Document]:
        for document in collection.documents():
            places.extend([len(lines)] * (len(collection.problems.reasons) - len(places)))
            lines.append(int(document.origin.rpartition(":")[2]))
            yield document

    ids, failure = _write(out, documents())
    problems = collection.problems
    places.extend([len(lines)] * (len(problems.reasons) - len(places)))
    write_ids(out, ids)
    write_arrays(out, {"lines": np.array(lines[: len(ids)], np.int64)})
    first = list(zip(places, problems.reasons, strict=True))
    fatal = failure and failure.message
    write_facts(out, documents=len(ids), count=problems.count, first=first, fatal=fatal)


def join_records(out: Path, parts: Sequence[StepResult], repeated: StepResult) -> None:
    """Step: concatenate the records of all parts, without those that repeat an ID."""
    sizes = [np.zeros(1, np.int64)]
    with ArrayWriter(out, RECORDS, np.uint8) as writer:
        for number, part in enumerate(parts):
            records, starts = map_array(part, RECORDS), map_array(part, STARTS)
            gone = left_out(repeated, number)
            edges = [-1, *gone.tolist(), len(starts) - 1]
            for before, after in pairwise(edges):
                begin, end = int(starts[before + 1]), int(starts[after])
                for at in range(begin, end, _PIECE):
                    writer.append(records[at : min(at + _PIECE, end)])
            sizes.append(np.delete(np.diff(starts), gone))
    write_arrays(out, {STARTS: np.cumsum(np.concatenate(sizes))})


def _write(out: Path, documents: Iterator[Document]) -> tuple[list[str], CollectionError | None]:
    """Write the records of documents; return their IDs, and the error that ended them, if any."""
    ids: list[str] = []
    failure = None

    def read() -> Iterator[Document]:
        nonlocal failure
        try:
            for document in documents:
                if VECTORS in document.metadata:
                    raise CollectionError(
                        f"document {document.id[:60]!r} has vectors, which a build with --cluster "
                        "does not support; build without it",
                        field=VECTORS,
                    )
                yield document
        except CollectionError as error:
            failure = error

    with RecordWriter(out) as writer:
        for batch in build_batches(read()):
            writer.extend(batch)
            ids += [document.id for document in batch]
    return ids, failure


def _report_refused(
    collection: OpenedCollection, path: Path, parts: Sequence[StepResult], repeated: StepResult
) -> None:
    """Report refused records to the collection, in the order of the documents.

    CollectionError for the first one if reading stops there.
    """
    problems = Problems()
    collection.adopt(problems, [], collection.noted, collection.unread, collection.options)
    for number, part in enumerate(parts):
        facts, lines = read_facts(part), map_array(part, "lines")
        again = left_out(repeated, number)
        refused: list[tuple[int, int, str]] = [
            (place, 0, reason) for place, reason in facts["first"]
        ]
        for place, name in zip(again.tolist(), ids_at(part, again), strict=True):
            refused.append((place, 1, f"{path}:{lines[place]}: {duplicate_id(name)}"))
        for _, _, reason in sorted(refused):
            collection.refuse(reason)
        problems.count += facts["count"] - len(facts["first"])
        if facts["fatal"] is not None:
            raise CollectionError(facts["fatal"])
