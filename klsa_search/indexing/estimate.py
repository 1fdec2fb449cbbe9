"""Estimate what a build needs, linear in the documents and their bytes.

Bytes are those of the documents as JSON: identifiers, titles, texts and metadata. The rates are
those of builds of Reuters-21578 and of 10,000 to 1,000,000 documents generated from it, which they
fit within 10%.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final, NamedTuple

from klsa_search.analysis.passages import cut
from klsa_search.collection.model import Collection, Document
from klsa_search.core.config import Settings
from klsa_search.indexing.reading import Extent, content_of
from klsa_search.indexing.weighing import solved_dimensions, stores_rows
from klsa_search.kernels.document_kernel import EXACT
from klsa_search.search.rankers import needs_eigenvectors
from klsa_search.storage.columns.declared import DeclaredFields, fitting

BASE: Final = 180 * 2**20
"""Memory of a build of nothing, with the model that detects languages."""

_MEMORY_OF_DOCUMENT = 2600
_MEMORY_OF_BYTE = 3.4
_EXACT_MEMORY = 1.5  # times as much while features are float64
_DISK_OF_DOCUMENT = 290
_DISK_OF_BYTE = 2.4
_SECONDS_OF_DOCUMENT = 110e-6  # of processor time
_SECONDS_OF_BYTE = 0.25e-6

_SAMPLE = 5_000  # documents
_CHARACTERS = 2**23  # of the sample
_MOST_MEMORY_OF_BYTE = 50  # of a source of short documents
_MARGIN = 1.1


class Size(NamedTuple):
    """Size of a collection, estimated unless all of it was read.

    documents  number of documents
    bytes      of all of them
    sampled    number of documents that were read
    passages   number of passages; 0 if the documents are not divided
    """

    documents: int
    bytes: int
    sampled: int = 0
    passages: int = 0


def size_of(collection: Collection, settings: Settings) -> Size:
    """Read the first documents of a collection, and estimate the size of all.

    Their number is estimated from the bytes of the source's files; without files they are counted.
    Cost: reading some thousand documents. Raise CollectionError.
    """
    documents = fitting(collection, DeclaredFields.of(settings))
    sample = list(_first(documents))
    following = next(documents, None)
    total = len(sample)
    if following is not None:
        estimate = Extent(collection).estimate(total + 1, following.origin)
        total = max(estimate or total + 1 + sum(1 for _ in documents), total + 1)
    scale = total / max(len(sample), 1)
    passages = number_of_passages((document.text for document in sample), settings) or 0
    content = sum(len(content_of(document)) for document in sample)
    return Size(total, round(content * scale), len(sample), round(passages * scale))


ENOUGH: Final = 1.1
"""Passages for each document from which `passages = auto` divides documents."""


def divides(settings: Settings, documents: int, passages: int) -> bool:
    """Return whether documents that have so many passages are divided into them."""
    if settings.passages != "auto":
        return settings.passages != "off"
    return passages >= ENOUGH * max(documents, 1)


def number_of_passages(texts: Iterable[str], settings: Settings) -> int | None:
    """Return the number of passages of the texts of all documents; None if these stay whole.

    Cost: cutting the texts.
    """
    if settings.passages == "off":
        return None
    counts = [len(cut(text, settings.passage_words)) for text in texts]
    return sum(counts) if divides(settings, len(counts), sum(counts)) else None


def _first(documents: Iterator[Document]) -> Iterator[Document]:
    characters = 0
    for document in islice(documents, _SAMPLE):
        yield document
        characters += len(document.title) + len(document.text)
        if characters > _CHARACTERS:
            return


def memory_needed(size: Size, settings: Settings) -> int:
    """Return the peak memory of a build in bytes; passages are built after their documents."""
    documents = max(size.documents, size.passages)
    needed = _MEMORY_OF_DOCUMENT * documents + _MEMORY_OF_BYTE * size.bytes
    if documents <= EXACT:
        needed *= _EXACT_MEMORY
    if needs_eigenvectors(settings):
        needed += 16 * documents * solved_dimensions(documents, settings)
    if stores_rows(documents, settings):
        needed += 8 * documents**2
    return BASE + round(needed)


def disk_needed(size: Size, settings: Settings) -> int:
    """Return the bytes of the index."""
    documents = size.documents
    disk = _DISK_OF_DOCUMENT * (documents + size.passages)
    if needs_eigenvectors(settings):
        disk += 4 * documents * solved_dimensions(documents, settings)
    if stores_rows(documents, settings):
        disk += 4 * documents**2
    return disk + round(_DISK_OF_BYTE * size.bytes * (2 if size.passages else 1))


def processor_seconds_needed(size: Size) -> float:
    """Return the processor time of a build, of the processors of `performance.md`."""
    of_bytes = _SECONDS_OF_BYTE * size.bytes * (2 if size.passages else 1)
    return _SECONDS_OF_DOCUMENT * (size.documents + size.passages) + of_bytes


def documents_within(size: Size, memory: int) -> int:
    """Return how many of these documents a build of one partition has memory for, with a margin."""
    bytes_each = _MEMORY_OF_DOCUMENT + _MEMORY_OF_BYTE * size.bytes / max(size.documents, 1)
    many = max(int((memory - BASE) / (_MARGIN * bytes_each)), 0)
    few = int(many / _EXACT_MEMORY)
    return few if few <= EXACT else many


def is_small(collection: Collection, memory: int) -> bool:
    """Return whether the memory suffices by the bytes of the source, or these are unknown.

    Sources without files may be readable only once.
    """
    size = Extent(collection).bytes
    return not size or BASE + _MOST_MEMORY_OF_BYTE * size <= memory


def partitions_needed(size: Size, settings: Settings, memory: int) -> int:
    """Return the number of partitions whose builds have memory; 1 if partitions are of no help."""
    if memory_needed(size, settings) <= memory or needs_eigenvectors(settings):
        return 1
    rows = max(size.documents, size.passages)  # the one index of a partition after the other
    within = documents_within(size._replace(documents=rows), memory)
    return -(-rows // within) if within else 1
