"""Survey: read the first documents of a collection, to foretell the rest of it."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from klsa_search.collection.model import Collection, Document
from klsa_search.collection.opened_collection import OpenedCollection
from klsa_search.core.config import Settings
from klsa_search.core.progress import DOCUMENTS
from klsa_search.indexing.reading import Extent, read, stored_bytes
from klsa_search.indexing.sizes import Shape, extrapolate, shape_of_first
from klsa_search.kernels.counts import CountsBuilder, TermCounts
from klsa_search.storage.columns.builder import columns_bytes
from klsa_search.storage.columns.declared import DeclaredFields, fitting
from klsa_search.storage.manifest import FieldsEntry

_CHARACTERS = 2**25


@dataclass(frozen=True)
class Survey:
    """What the first documents are like, and what they say of all.

    counts   of the documents read
    sampled  their shape
    shape    of the whole collection
    taking   seconds that one process took to take the documents from their source
    keeping  and to analyse, store and fingerprint them
    counting and to count them
    """

    counts: TermCounts
    sampled: Shape
    shape: Shape
    taking: float
    keeping: float
    counting: float


def survey(collection: Collection, settings: Settings, *, most: int) -> Survey:
    """Read at most so many documents, in this process, and foretell all of them.

    Fewer where they are long: those at hand hold some `_CHARACTERS`.
    Their number is estimated from the bytes of the source's files; where it has none, they are
    counted. Cost: that of building from `most` documents up to their counts. CollectionError.
    """
    _count_once()
    started = time.perf_counter()
    rest = fitting(collection, DeclaredFields(settings.declared()))
    documents = _taken(rest, most)
    taking = time.perf_counter() - started
    total = _number_of(collection, documents, rest)
    ends: dict[str, float] = {}

    def note(phase: str, _done: int, _all: int | None) -> None:
        ends[phase] = time.perf_counter()

    with tempfile.TemporaryDirectory(prefix="klsa-survey-") as folder:
        started = time.perf_counter()
        sample = OpenedCollection("sample", "records", "stop", lambda _: iter(documents))
        counts, _, fields, _ = read(sample, Path(folder), settings, note, memory=2**30, processes=1)
        ended = time.perf_counter()
        sampled = read_shape(counts, fields, Path(folder))
    few = shape_of_first(counts, sampled.stored, -(-len(documents) // 4))
    return Survey(
        counts=counts,
        sampled=sampled,
        shape=extrapolate(few, sampled, total),
        taking=taking,
        keeping=ends[DOCUMENTS] - started,
        counting=ended - ends[DOCUMENTS],
    )


def read_shape(counts: TermCounts, fields: FieldsEntry, generation: Path) -> Shape:
    """Shape of documents that were read to a generation that holds nothing else."""
    columns = columns_bytes(generation)
    return Shape.of(
        counts,
        stored_bytes(generation) - columns,
        columns=columns,
        texts=sum(entry.texts for entry in fields.columns.values()),
    )


def _taken(documents: Iterator[Document], most: int) -> list[Document]:
    taken: list[Document] = []
    characters = 0
    while len(taken) < most and characters < _CHARACTERS:
        document = next(documents, None)
        if document is None:
            break
        taken.append(document)
        characters += len(document.title) + len(document.text)
    return taken


def _number_of(collection: Collection, first: list[Document], rest: Iterator[Document]) -> int:
    following = next(rest, None)
    if following is None:
        return len(first)
    extent = Extent(collection)
    guess = extent.guess(len(first) + 1, following.origin)
    if guess is None:
        return len(first) + 1 + sum(1 for _ in rest)
    return max(guess, len(first) + 1)


def _count_once() -> None:
    """Have the compiled code ready, so that what is timed is its work."""
    builder = CountsBuilder(threads=1)
    for _ in range(2):
        builder.add(["a", "b"])
    builder.finish()
