"""Reading: from parts of a source to the records of all its documents, in their order.

A step reads a part and notes what it had to refuse, and the ids it met, in order. When all have
been read, those ids are merged, refused records are reported as in one pass over the source, and
the records are put end to end: the files that a generation keeps.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from klsa_search.cluster.files import mapped, note, noted
from klsa_search.cluster.ids import find_repeated, ids_at, left_out, write_ids
from klsa_search.cluster.source import Source, stretches
from klsa_search.cluster.work import Made, Work
from klsa_search.collection import Document, OpenedCollection, Problems, open_collection
from klsa_search.collection.intake import used_before
from klsa_search.collection.lines import Stretch
from klsa_search.collection.opening import open_stretch
from klsa_search.config import Settings
from klsa_search.errors import CollectionError
from klsa_search.indexing.reading import batches_of
from klsa_search.store.arrays import ArrayWriter, write_arrays
from klsa_search.store.documents import RECORDS, STARTS, RecordWriter
from klsa_search.store.fields.declared import Declared, fitting

_PIECE = 2**22  # bytes that are copied at a time


class Records(NamedTuple):
    """All documents of a source.

    documents  how many
    records    folder with `documents.npy` and `documents_starts.npy`, as of a generation
    ids        arguments of the step that writes where each id is
    """

    documents: int
    records: Made
    ids: Mapping[str, Any]


def read_records(work: Work, source: Source, identity: str, settings: Settings) -> Records:
    """Read a source, and tell its collection what was refused. CollectionError as of one pass."""
    lines = source.lines(settings)
    if lines is None:
        declared = settings.declared()
        read = work.one(read_whole, source=source.reading, identity=identity, declared=declared)
        facts = noted(read)
        source.collection.adopt(Problems(**facts["problems"]), facts["numbered"])
        return Records(facts["documents"], read, {"parts": [read], "repeated": None})
    on_error = source.reading.get("on_error", "stop")
    parts = work.make(
        read_stretch,
        *(
            {
                "path": os.fspath(lines),
                "identity": identity,
                "stretch": list(stretch),
                "on_error": on_error,
            }
            for stretch in stretches(work, lines, identity)
        ),
    )
    repeated = work.one(find_repeated, parts=parts)
    _tell(source.collection, lines, parts, repeated)
    records = work.one(join_records, parts=parts, repeated=repeated)
    documents = len(mapped(records, STARTS)) - 1
    return Records(documents, records, {"parts": parts, "repeated": repeated})


def read_whole(
    out: Path, source: Mapping[str, Any], identity: str, declared: Mapping[str, Any]
) -> None:
    """Step: read a source in one pass. CollectionError. Memory: its ids."""
    collection = open_collection(**source)
    ids, failure = _write(out, fitting(collection, Declared(declared)))
    if failure is not None:
        raise failure
    write_ids(out, ids)
    problems = collection.problems
    kept = {"count": problems.count, "reasons": problems.reasons, "kinds": problems.kinds}
    note(out, documents=len(ids), problems=kept, numbered=collection.numbered)


def read_stretch(
    out: Path, path: str, identity: str, stretch: Sequence[int], on_error: str
) -> None:
    """Step: read some lines; what they make others refuse is for `_tell`.

    Next to the records: `lines.npy`, the line of each document.
    """
    collection = open_stretch(Path(path), on_error, Stretch(*stretch))
    lines: list[int] = []
    places: list[int] = []  # documents before each problem that is kept in words

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
    note(out, documents=len(ids), count=problems.count, first=first, fatal=fatal)


def join_records(out: Path, parts: Sequence[Made], repeated: Made) -> None:
    """Step: put the records of all parts end to end, without those that repeat an id."""
    sizes = [np.zeros(1, np.int64)]
    with ArrayWriter(out, RECORDS, np.uint8) as writer:
        for number, part in enumerate(parts):
            records, starts = mapped(part, RECORDS), mapped(part, STARTS)
            gone = left_out(repeated, number)
            edges = [-1, *gone.tolist(), len(starts) - 1]
            for before, after in pairwise(edges):
                begin, end = int(starts[before + 1]), int(starts[after])
                for at in range(begin, end, _PIECE):
                    writer.append(records[at : min(at + _PIECE, end)])
            sizes.append(np.delete(np.diff(starts), gone))
    write_arrays(out, {STARTS: np.cumsum(np.concatenate(sizes))})


def _write(out: Path, documents: Iterator[Document]) -> tuple[list[str], CollectionError | None]:
    """Write the records of documents; return their ids, and why they do not go on."""
    ids: list[str] = []
    failure = None

    def read() -> Iterator[Document]:
        nonlocal failure
        try:
            yield from documents
        except CollectionError as error:
            failure = error

    with RecordWriter(out) as writer:
        for batch in batches_of(read()):
            writer.extend(batch)
            ids += [document.id for document in batch]
    return ids, failure


def _tell(collection: OpenedCollection, path: Path, parts: Sequence[Made], repeated: Made) -> None:
    """Tell the collection what was refused, in the order of the documents.

    CollectionError for the first of it where reading stops there.
    """
    problems = Problems()
    collection.adopt(problems, [])
    for number, part in enumerate(parts):
        facts, lines = noted(part), mapped(part, "lines")
        again = left_out(repeated, number)
        refused: list[tuple[int, int, str]] = [
            (place, 0, reason) for place, reason in facts["first"]
        ]
        for place, name in zip(again.tolist(), ids_at(part, again), strict=True):
            refused.append((place, 1, f"{path}:{lines[place]}: {used_before(name)}"))
        for _, _, reason in sorted(refused):
            collection.refuse(reason)
        problems.count += facts["count"] - len(facts["first"])
        if facts["fatal"] is not None:
            raise CollectionError(facts["fatal"])
