"""Build one generation: read documents, weigh them, write files and manifest.

If documents are long, their passages are a second, ordinary generation in the folder `passages`, so
kernel, BM25 and neighbours of passages have lengths and statistics of their own.
"""

from __future__ import annotations

import hashlib
import resource
import sys
import time
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from klsa_search.analysis.languages import languages_of
from klsa_search.collection.model import Collection, Document
from klsa_search.collection.opened_collection import OpenedCollection
from klsa_search.core.config import Settings
from klsa_search.core.installation import __version__
from klsa_search.core.progress import FILES, Progress, of_passages
from klsa_search.indexing import checks
from klsa_search.indexing.estimate import Size, number_of_passages
from klsa_search.indexing.reading import Contents, ReadDocuments, StoredCollection, read
from klsa_search.indexing.weighing import weigh
from klsa_search.kernels.counts import TermCounts
from klsa_search.lowrank.eigensolver import Decomposition
from klsa_search.storage.arrays import write_arrays
from klsa_search.storage.checksums import note_checked
from klsa_search.storage.documents import DocumentReader
from klsa_search.storage.files import write_fresh
from klsa_search.storage.generations import commit, describe_files, new_generation, sync_files
from klsa_search.storage.manifest import (
    FORMAT_VERSION,
    BuildEntry,
    Counts,
    FileEntry,
    LanguageEntry,
    Manifest,
    SpaceEntry,
    SpectrumEntry,
    plugins_of,
)
from klsa_search.storage.names import MANIFEST, PASSAGES
from klsa_search.storage.passages import PASSAGE_DOCUMENTS, passages_of

PartitionWorkers = Callable[[Callable[[Any], None], Sequence[Any]], Iterator[int]]
"""Calls a function with each of some tasks, and yields the numbers of those that are done."""


class Built(NamedTuple):
    """Values for the manifest of a generation whose files are written.

    counts  those of `Counts`, without `skipped`
    """

    contents: Contents
    counts: Mapping[str, int]
    spectra: Mapping[str, SpectrumEntry]
    vectors: Sequence[SpaceEntry] = ()


def write_documents(
    generation: Path,
    collection: Collection,
    chosen: Settings,
    report: Progress,
    budget: int,
    *,
    replace: bool,
) -> Built:
    """Write the files of a generation without partitions. See `build`."""
    started = time.monotonic()
    read_ = read(collection, generation, chosen, report, memory=budget)
    contents, (documents, terms) = read_.contents, read_.counts.matrix.shape
    if not terms:
        refuse_unused_texts(collection)
    checks.require_fields(collection, contents.settings, contents.fields, documents)
    checks.refuse_to_shrink(generation.parent, documents, collection, replace=replace)
    built = _weighed(generation, read_, report, budget)
    texts = map(DocumentReader.open(generation).text, range(documents))
    number = number_of_passages(texts, built.contents.settings)
    if number is not None:
        _write_passages(generation, collection, built, number, started, report, budget)
        built = built._replace(counts={**built.counts, "passages": number})
    return built


def refuse_unused_texts(collection: Collection) -> None:
    """Raise CollectionError if no document of an opened collection, which was read, has a text."""
    if isinstance(collection, OpenedCollection):
        collection.refuse_unused_texts()


def _weighed(generation: Path, documents: ReadDocuments, report: Progress, budget: int) -> Built:
    """Write what follows from the counts of documents, whose other files are written."""
    contents, counts = documents.contents, documents.counts
    kind: Literal["documents", "passages"] = (
        "passages" if generation.name == PASSAGES else "documents"
    )
    size = Size(counts.matrix.shape[0], contents.bytes)
    checks.refuse_beyond_memory(size, contents.settings, budget, kind=kind)
    spectra = weigh(counts, generation, contents.settings, report)
    entries = {label: spectrum_entry(one) for label, one in spectra.items()}
    return Built(contents, sizes_of(counts), entries, documents.vectors)


def sizes_of(counts: TermCounts) -> dict[str, int]:
    """Return the numbers of documents, terms, tokens and counts above 0, for the manifest."""
    documents, terms = counts.matrix.shape
    sizes = {"documents": documents, "terms": terms}
    return sizes | {"tokens": counts.tokens, "non_zeros": counts.matrix.nnz}


def _write_passages(
    generation: Path,
    collection: Collection,
    built: Built,
    number: int,
    started: float,
    report: Progress,
    budget: int,
) -> None:
    settings, columns = built.contents.settings, built.contents.fields.columns
    names = ",".join(languages_of(settings.language))  # passages are too short to decide
    chosen = settings.model_copy(update={"language": names})
    document_of = array("i")

    def read_passages() -> Iterator[Document]:
        for doc_id, document in enumerate(DocumentReader.open(generation).live_documents()):
            for passage in passages_of(document, settings.passage_words):
                document_of.append(doc_id)
                yield passage

    types = {name: column.type for name, column in columns.items()}
    manifest = manifest_of(collection, built, started, {})
    passages = StoredCollection(manifest, number, read_passages, types)
    folder = generation / PASSAGES
    folder.mkdir()
    report = of_passages(report)
    built = _weighed(folder, read(passages, folder, chosen, report, memory=budget), report, budget)
    write_arrays(folder, {PASSAGE_DOCUMENTS: np.array(document_of, np.int32)})
    commit_passages(folder, passages, built, started)


def commit_passages(folder: Path, passages: Collection, built: Built, started: float) -> None:
    """Write the manifest of an index of passages, whose files are written."""
    manifest = manifest_of(passages, built, started, describe_files(folder))
    write_fresh(folder / MANIFEST, manifest.as_text())


def manifest_of(
    collection: Collection, built: Built, started: float, files: Mapping[str, FileEntry]
) -> Manifest:
    """Return the manifest of a generation with these files."""
    stored = collection if isinstance(collection, StoredCollection) else None
    fingerprints = {} if stored is None else stored.fingerprints
    contents, settings = built.contents, built.contents.settings
    languages = [LanguageEntry(**entry._asdict()) for entry in contents.languages]
    if not languages and stored is not None:
        names = ",".join(entry.language for entry in stored.languages)
        languages = list(stored.languages) if names == settings.language else []
    # Equal for equal documents, settings and format.
    identity = f"{FORMAT_VERSION}:{settings.fingerprint()}:{contents.digest}"
    return Manifest(
        format_version=FORMAT_VERSION,
        package_version=__version__,
        source=collection.name,
        fingerprint=hashlib.sha256(identity.encode()).hexdigest()[:16],
        settings=settings.model_dump(mode="json"),
        counts=Counts(skipped=collection.problems.count, **built.counts),
        spectra=dict(built.spectra),
        build=build_entry(started),
        files=dict(files),
        source_path=checks.address(collection),
        fields=contents.fields,
        reading=checks.reading_options(collection),
        vectors=[
            space.model_copy(update={"fingerprint": fingerprints.get(space.name)})
            for space in built.vectors
        ],
        plugins=plugins_of(settings),
        detected=languages,
    )


def write_generation(
    path: Path,
    collection: Collection,
    write: Callable[[Path], Built],
    report: Progress,
    *,
    replace: bool,
    replay: Callable[[Path], AbstractContextManager[None]] | None = None,
) -> Path:
    """Write and commit the next generation of the index at a path; return its folder.

    write   writes the files of the generation to an empty folder
    replay  allows writes to the index meanwhile: entered with the new generation before its
            commit, left when it is in use
    """
    started = time.monotonic()
    with new_generation(path, allow_writes=replay is not None) as generation:
        if not replace:
            checks.refuse_to_replace(path, collection)
        built = write(generation)
        report(FILES, 0, None)
        manifest = manifest_of(collection, built, started, describe_files(generation))
        publish(generation, manifest, replay)
    return generation


def publish(
    generation: Path,
    manifest: Manifest,
    replay: Callable[[Path], AbstractContextManager[None]] | None,
) -> None:
    """Commit a generation whose files are written; see `write_generation`."""
    sync_files(generation)  # before writers are locked out
    with replay(generation) if replay else nullcontext():
        commit(generation, manifest)
    note_checked(generation, manifest)


def spectrum_entry(spectrum: Decomposition) -> SpectrumEntry:
    """Return the diagnostics of a decomposition for the manifest; see `Decomposition`."""
    values = spectrum.eigenvalues
    return SpectrumEntry(
        dimensions=len(values),
        largest=float(values.max(initial=0.0)),
        smallest=float(values.min(initial=values.max(initial=0.0))),
        residual=spectrum.residual,
        gap=spectrum.gap,
        captured=float(values.sum() / spectrum.trace) if spectrum.trace else 0.0,
    )


def build_entry(started: float) -> BuildEntry:
    """Return what the manifest says about a build that ends now; `started` is monotonic."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # in KiB; on macOS, in bytes
    return BuildEntry(
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=round(time.monotonic() - started, 3),
        peak_memory=peak if sys.platform == "darwin" else peak * 1024,
    )
