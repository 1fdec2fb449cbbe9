"""Survey: read the first documents of a collection to estimate its shape."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from klsa_search.collection.model import Collection, Document
from klsa_search.collection.opened_collection import OpenedCollection
from klsa_search.core.config import Settings
from klsa_search.core.progress import DOCUMENTS
from klsa_search.indexing.passages import divides
from klsa_search.indexing.reading import Extent, read, stored_bytes
from klsa_search.indexing.sizes import Shape, extrapolate, shape_of_first
from klsa_search.kernels.counts import TermCounts
from klsa_search.storage.columns.declared import DeclaredFields, fitting
from klsa_search.storage.columns.format import columns_bytes
from klsa_search.storage.manifest import FieldsEntry
from klsa_search.storage.passages import passages_of

CHARACTERS = 2**25


@dataclass(frozen=True)
class Survey:
    """The first documents of a collection, and the estimated shape of all.

    counts            of the documents read
    sampled           their shape
    shape             of the whole collection
    reading_seconds   time to read them from the source, in one process
    storing_seconds   time to analyse, store and fingerprint them
    counting_seconds  time to count them
    passages          of these documents; None if they are not divided
    """

    counts: TermCounts
    sampled: Shape
    shape: Shape
    reading_seconds: float
    storing_seconds: float
    counting_seconds: float
    passages: Survey | None = None


def survey(collection: Collection, settings: Settings, *, most: int) -> Survey:
    """Read at most `most` documents, in this process, and estimate the shape of all.

    Fewer if they are long: about `CHARACTERS` are in memory. The number of all is estimated from
    the bytes of the source's files; without files they are counted. Cost: that of building from
    the sample up to its counts. Raise CollectionError.
    """
    started = time.perf_counter()
    rest = fitting(collection, DeclaredFields.of(settings))
    documents = _first(rest, most)
    reading_seconds = time.perf_counter() - started
    total = _number_of(collection, documents, rest)
    surveyed = _surveyed(documents, total, reading_seconds, settings)
    words = settings.passage_words
    if words is None or not documents:
        return surveyed
    started = time.perf_counter()
    passages = [passage for document in documents for passage in passages_of(document, words)]
    cutting_seconds = time.perf_counter() - started
    if not divides(settings, len(documents), len(passages)):
        return surveyed
    total = round(total * len(passages) / len(documents))
    return replace(surveyed, passages=_surveyed(passages, total, cutting_seconds, settings))


def _surveyed(
    documents: list[Document], total: int, reading_seconds: float, settings: Settings
) -> Survey:
    """Analyse and count documents, and estimate the shape of a number of them."""
    ends: dict[str, float] = {}

    def note(phase: str, _done: int, _all: int | None) -> None:
        ends[phase] = time.perf_counter()

    with tempfile.TemporaryDirectory(prefix="klsa-survey-") as folder:
        started = time.perf_counter()
        sample = OpenedCollection("sample", "records", "stop", lambda _: iter(documents))
        counts, _, fields, *_ = read(
            sample, Path(folder), settings, note, memory=2**30, processes=1
        )
        ended = time.perf_counter()
        sampled = read_shape(counts, fields, Path(folder))
    few = shape_of_first(counts, sampled.stored, -(-len(documents) // 4))
    return Survey(
        counts=counts,
        sampled=sampled,
        shape=extrapolate(few, sampled, total),
        reading_seconds=reading_seconds,
        storing_seconds=ends[DOCUMENTS] - started,
        counting_seconds=ended - ends[DOCUMENTS],
    )


def read_shape(counts: TermCounts, fields: FieldsEntry, generation: Path) -> Shape:
    """Return the shape of documents that were read to a generation with no other files."""
    columns = columns_bytes(generation)
    return Shape.of(
        counts,
        stored_bytes(generation) - columns,
        columns=columns,
        texts=sum(entry.texts for entry in fields.columns.values()),
    )


def _first(documents: Iterator[Document], most: int) -> list[Document]:
    first: list[Document] = []
    characters = 0
    while len(first) < most and characters < CHARACTERS:
        document = next(documents, None)
        if document is None:
            break
        first.append(document)
        characters += len(document.title) + len(document.text)
    return first


def _number_of(collection: Collection, first: list[Document], rest: Iterator[Document]) -> int:
    following = next(rest, None)
    if following is None:
        return len(first)
    extent = Extent(collection)
    estimate = extent.estimate(len(first) + 1, following.origin)
    if estimate is None:
        return len(first) + 1 + sum(1 for _ in rest)
    return max(estimate, len(first) + 1)
