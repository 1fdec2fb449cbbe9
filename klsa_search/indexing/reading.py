"""Read a collection: documents to storage, then, by what all of them show, terms to counts."""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import closing
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.analysis.analyzer import Analyzer
from klsa_search.analysis.language_detection import DetectedLanguage, release_model
from klsa_search.analysis.languages import AUTO, languages_of
from klsa_search.analysis.searched_text import AnalysedTexts, analysed_texts
from klsa_search.analysis.workers import AnalysisWorkers, NumberedTexts, TermNumbering
from klsa_search.collection.lines import GZIP, ZIP, ZSTD
from klsa_search.collection.model import Collection, Document, Judgement, Problems, Topic, batches
from klsa_search.collection.opened_collection import OpenedCollection
from klsa_search.core.array_types import Spool
from klsa_search.core.build_settings import FieldType
from klsa_search.core.child_processes import has_interpreter
from klsa_search.core.config import Settings
from klsa_search.core.field_weights import SearchedFields
from klsa_search.core.parallel import map_in_order, processors
from klsa_search.core.progress import COUNTS, DOCUMENTS, Progress
from klsa_search.delta.features import DocumentFeatures, document_features
from klsa_search.delta.statistics import BuildStatistics
from klsa_search.indexing.text_sample import HtmlFields, TextSample
from klsa_search.kernels.counts import BlockCounts, CountsBuilder, TermCounts
from klsa_search.storage.columns.declared import DeclaredFields, fitting
from klsa_search.storage.columns.writer import FieldsWriter
from klsa_search.storage.documents import DocumentWriter, read_in_pieces
from klsa_search.storage.forward_index import write_forward
from klsa_search.storage.manifest import FieldsEntry, Manifest, SpaceEntry
from klsa_search.storage.names import SCRATCH
from klsa_search.storage.vectors import VectorsWriter


class Contents(NamedTuple):
    """What a pass over a source has found.

    digest    SHA-256 of all content, in hexadecimal digits
    bytes     of the content
    settings  with the detected language
    languages  as detected; none if the settings name some, or with too little text
    """

    digest: str
    bytes: int
    fields: FieldsEntry
    settings: Settings
    languages: Sequence[DetectedLanguage]


class ReadDocuments(NamedTuple):
    """The documents of a source as they are read.

    features  of blocks of documents, by the statistics of a training; none without it
    """

    contents: Contents
    counts: TermCounts
    vectors: Sequence[SpaceEntry]
    features: Sequence[DocumentFeatures]


_FIRST = 5_000  # documents before the first estimate


class Extent:
    """Estimates the number of documents during a pass over a collection."""

    def __init__(self, collection: Collection) -> None:
        files = collection.files() if isinstance(collection, OpenedCollection) else []
        self._sizes = {str(path): path.stat().st_size for path in files}
        self._seen = 0
        self._next = _FIRST
        self._estimate = len(collection) if isinstance(collection, Sized) else None

    @property
    def bytes(self) -> int:
        """Return the size of the files of the source; 0 if it has none."""
        return sum(self._sizes.values())

    def add(self, documents: Sequence[Document]) -> None:
        """Count the next documents; estimate again whenever their number has doubled."""
        self._seen += len(documents)
        if self._sizes and self._seen >= self._next:
            self._next = 2 * self._seen
            self._estimate = self.estimate(self._seen, documents[-1].origin)

    def documents(self, done: int) -> int | None:
        """Return the estimated number of all documents, at least `done`; None if unknown."""
        return None if self._estimate is None else max(self._estimate, done)

    def estimate(self, number: int, origin: str) -> int | None:
        """Estimate the number of all documents from the start of document `number`: "file:line".

        None if that is in no file of the source, or within a zip or zstd file. Cost: reading that
        file up to there.
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
    """Return the size of the first lines of a file in bytes, compressed if it is."""
    with path.open("rb") as raw:
        if raw.peek(2)[:2] != GZIP:
            return sum(map(len, islice(raw, lines)))
        with gzip.GzipFile(fileobj=raw) as packed:
            for _ in islice(packed, lines):
                pass
            return raw.tell()


class StoredCollection:
    """The stored documents of an index as a collection; see `Collection`.

    manifest  describes their source
    size      number of documents
    read      yields all, in order
    types     of metadata fields, which keep them; by default those of the build

    `searched` are the metadata fields that the index searches, `html` the fields whose HTML is
    text, `languages` those that its build detected, and `fingerprints` those of the embedders of
    its vectors, by space.
    """

    format = "index"
    root = None

    def __init__(
        self,
        manifest: Manifest,
        size: int,
        read: Callable[[], Iterator[Document]],
        types: Mapping[str, FieldType] | None = None,
    ) -> None:
        self.name = manifest.source
        self.address = manifest.source_path
        self.options = manifest.reading
        self.problems = Problems(manifest.counts.skipped)
        self.languages = manifest.detected
        self.html = tuple(manifest.settings.get("html") or ())
        built = {name: column.type for name, column in manifest.fields.columns.items()}
        self.types = built if types is None else types
        self.fingerprints = {
            space.name: space.fingerprint for space in manifest.vectors if space.fingerprint
        }
        search = manifest.settings.get("search")
        self.searched = SearchedFields.of(search).others if search else ()
        self._size, self._read = size, read

    def __len__(self) -> int:
        """Return the number of documents."""
        return self._size

    def documents(self) -> Iterator[Document]:
        """Yield all documents, in order."""
        return self._read()

    def add_vectors(
        self,
        attach: Callable[[Iterator[Document]], Iterator[Document]],
        fingerprints: Mapping[str, str],
    ) -> None:
        """Let a function add vectors to the documents.

        fingerprints  of the embedders that computed them, by space
        """
        read = self._read
        self._read = lambda: attach(read())
        self.fingerprints |= fingerprints

    def queries(self) -> list[Topic]:
        """Return no queries."""
        return []

    def judgements(self) -> list[Judgement]:
        """Return no judgements."""
        return []


class SourceBatches:
    """Yields the documents of a source in batches, as they are stored, and notes what they have.

    sample        gets some of the texts, if it is not None
    keeps_empty   whether fields without values get columns, too
    """

    def __init__(
        self,
        collection: Collection,
        settings: Settings,
        sample: TextSample | None,
        *,
        keeps_empty: bool = False,
    ) -> None:
        stored = collection if isinstance(collection, StoredCollection) else None
        self._declared = DeclaredFields.of(settings)
        self._collection, self._settings, self._sample = collection, settings, sample
        self._html = HtmlFields(settings.html, None if stored is None else stored.html)
        self._digest = hashlib.sha256()
        self._fields = FieldsWriter(
            self._declared.types,
            {} if stored is None else stored.types,
            keeps_empty=keeps_empty,
            forms=self._declared.forms,
        )
        self.extent = Extent(collection)
        self._bytes = 0

    def __iter__(self) -> Iterator[list[Document]]:
        """Yield the batches; once."""
        documents = fitting(self._collection, self._declared)
        for batch in self._html.stored(build_batches(documents), self._declared):
            self._fields.extend(batch)
            content = b"".join(map(content_of, batch))
            self._digest.update(content)
            self._bytes += len(content)
            self.extent.add(batch)
            if self._sample is not None:
                self._sample.add(batch)
            yield batch

    def finish(
        self, folder: Path, metadata: Callable[[], Iterable[list[Mapping[str, Any]]]]
    ) -> Contents:
        """Write the fields to a folder; return what all documents show.

        metadata  returns those of the documents again, in batches
        """
        columns = self._fields.finish(folder, metadata)
        updates = {"html": self._html.report(), **self._fields.forms._asdict()}
        settings = self._settings.model_copy(update=updates)
        languages: Sequence[DetectedLanguage] = ()
        if self._sample is not None:
            settings = self._sample.completed(settings)
            if self._settings.language == AUTO != settings.language:
                languages = self._sample.languages
        return Contents(self._digest.hexdigest(), self._bytes, columns, settings, languages)


BATCH = 2000  # documents of a batch
_CHARACTERS = 2**20
_SPOOLS = 32  # spools that a build's memory is for
WORKER_START = 2**21  # characters beyond ASCII texts, analysed while workers start
_ENCODED = json.JSONEncoder(sort_keys=True).encode


def read(
    collection: Collection,
    generation: Path,
    settings: Settings,
    report: Progress,
    *,
    memory: int,
    processes: int | None = None,
    trained: BuildStatistics | None = None,
) -> ReadDocuments:
    """Read a collection once, to storage, and the stored documents again, to counts of their terms.

    Documents, their vectors, fields and forward index are in the folder of the generation then.

    memory     limit in bytes; larger intermediate data is spooled to the generation's folder and
               removed at the end
    processes  for the analysis, used once the collection proves large enough; the processors by
               default. Their number does not affect the result
    trained    statistics of the documents that the partitions of an index are trained on, whose
               terms get the first numbers
    Raise CollectionError, StoreError; KlsaError if a process dies.
    """
    if settings.language != AUTO:
        names = ",".join(languages_of(settings.language))
        settings = settings.model_copy(update={"language": names})
    scratch = generation / SCRATCH
    scratch.mkdir()
    is_complete = settings.language != AUTO and settings.identifiers != "auto"
    sample = None if is_complete else TextSample(settings)
    source = SourceBatches(collection, settings, sample, keeps_empty=trained is not None)
    number, spaces = _store(source, generation, report)
    contents = source.finish(generation, partial(_stored_metadata, generation))
    settings = contents.settings
    analyzer, searched = Analyzer(settings), settings.searched_fields
    builder = CountsBuilder(
        partial(Spool, folder=scratch, limit=memory // _SPOOLS),
        weights=searched.weights,
        common=analyzer.common() if settings.common_weight < 1 else frozenset(),
        first=() if trained is None else trained.vocabulary.terms,
    )
    steps = 3 * number  # this analysis, then two passes of `finish`
    texts = _searched_texts(generation, settings)
    done, fields = 0, len(searched.names)
    with closing(_numbered(texts, analyzer, processes or processors())) as numbered:
        for batch in numbered:
            words, lengths = (
                np.frombuffer(array, np.int32) for array in (batch.numbers, batch.lengths)
            )
            builder.extend(batch.numbering, words, lengths, fields, batch.terms)
            done += len(lengths) // fields
            report(COUNTS, done, steps)
    if number > _FIRST:  # a small build needs little memory, and the next one the model again
        release_model()
    features: list[DocumentFeatures] = []

    def weigh_block(block: BlockCounts, content: npt.NDArray[np.bool_]) -> None:
        assert trained is not None
        features.append(document_features(trained, block, content))

    counts = builder.finish(
        lambda done, _: report(COUNTS, number + done, steps),
        None if trained is None else weigh_block,
    )
    write_forward(generation, builder.blocks(), counts)
    builder.close()
    shutil.rmtree(scratch)
    return ReadDocuments(contents, counts, spaces, features)


def _store(
    source: SourceBatches, generation: Path, report: Progress
) -> tuple[int, Sequence[SpaceEntry]]:
    done = 0
    with DocumentWriter(generation) as writer, VectorsWriter(generation) as vectors:
        for batch in source:
            writer.extend(batch)
            vectors.extend(batch)
            done += len(batch)
            report(DOCUMENTS, done, source.extent.documents(done))
    report(DOCUMENTS, done, done)
    return done, vectors.entries()


def _stored_metadata(generation: Path) -> Iterator[list[Mapping[str, object]]]:
    for piece in read_in_pieces(generation):
        yield [record.metadata for record in piece.records(range(len(piece)))]


def _searched_texts(generation: Path, settings: Settings) -> Iterator[AnalysedTexts]:
    fields = settings.searched_fields
    documents = chain.from_iterable(piece.live_documents() for piece in read_in_pieces(generation))
    for batch in build_batches(documents):
        yield analysed_texts(batch, fields, settings.language_field)


def _numbered(
    batches: Iterator[AnalysedTexts], analyzer: Analyzer, processes: int
) -> Generator[NumberedTexts, None, None]:
    """Analyse batches in order: in this process first, in others once that takes long.

    ASCII texts are analysed in less time than another process needs to receive them.
    """
    numbering = TermNumbering(analyzer)
    characters = 0
    for texts in batches:
        yield numbering.numbered(texts)
        beyond_ascii = (text for text in texts.parts if analyzer.tokenizes or not text.isascii())
        characters += sum(map(len, beyond_ascii))
        if characters > WORKER_START and processes > 1 and has_interpreter():
            break
    else:
        return
    del numbering
    with AnalysisWorkers(analyzer, processes) as workers:
        yield from map_in_order(workers.submit, batches, ahead=2 * processes)


def build_batches(documents: Iterable[Document]) -> Iterator[list[Document]]:
    """Divide documents into the batches that a build analyses at once."""
    return batches(documents, size=BATCH, characters=_CHARACTERS)


def content_of(document: Document) -> bytes:
    """Return the content of a document that the fingerprint of an index covers."""
    content = [document.id, document.title, document.text, dict(document.metadata)]
    return _ENCODED(content).encode()
