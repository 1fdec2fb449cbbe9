"""Build an index in partitions: a pass over the source, a training, two steps of each partition.

1. Documents are divided by the hash of their IDs and kept in a work folder.
2. The training computes what all partitions share, from all documents or a sample.
3. Each partition is read and weighed, in a process of its own (`partition_tasks`).
4. Each then finds the neighbours of its documents in all partitions, and becomes an ordinary index.
5. The terms that the training lacks are numbered: see `collection_terms`.
6. `PARTITIONS` names the partitions, in one step.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

from klsa_search.analysis.languages import languages_of
from klsa_search.collection.model import Collection, Document
from klsa_search.core.config import Settings
from klsa_search.core.progress import DOCUMENTS, Progress
from klsa_search.errors import SettingsError
from klsa_search.indexing.checks import (
    refuse_beyond_memory,
    refuse_large_source,
    refuse_one_partition,
    refuse_other_source,
    refuse_overlap,
    refuse_to_drop_writes,
    refuse_to_shrink,
    require_fields,
)
from klsa_search.indexing.collection_terms import with_collection_terms
from klsa_search.indexing.document_spool import DocumentSpool, spooled
from klsa_search.indexing.estimate import Size, documents_within
from klsa_search.indexing.generation_builder import (
    Built,
    PartitionWorkers,
    manifest_of,
    refuse_unused_texts,
    spectrum_entry,
)
from klsa_search.indexing.partition_tasks import TRAINING, PartitionTask, take_steps
from klsa_search.indexing.reading import Contents, SourceBatches, StoredCollection
from klsa_search.indexing.text_sample import TextSample
from klsa_search.indexing.training import MOST, open_training, train
from klsa_search.kernels import bm25
from klsa_search.kernels.spool import Spools, spool_limit
from klsa_search.search.index import Index
from klsa_search.search.parts.opening import open_reader
from klsa_search.search.rankers import needs_eigenvectors
from klsa_search.storage.arrays import open_array
from klsa_search.storage.current import current_generation
from klsa_search.storage.directories import (
    mark_index,
    next_number,
    partition_folders,
    refuse_foreign,
)
from klsa_search.storage.generations import index_lock
from klsa_search.storage.maintenance import delete_index, use_partitions
from klsa_search.storage.manifest import SpectrumEntry, read_manifest
from klsa_search.storage.names import PARTITIONS_WORK
from klsa_search.storage.partitions import MAX_PARTITIONS, PartitionSet, partition_of
from klsa_search.storage.query_settings import forget_settings


def refuse_unpartitioned(partitions: int, settings: Settings) -> None:
    """Raise SettingsError for settings, or a number, that partitions do not support."""
    if not 1 <= partitions <= MAX_PARTITIONS:
        raise SettingsError(
            f"partitions = {partitions} is not from 1 to {MAX_PARTITIONS:,}", field="partitions"
        )
    if field := needs_eigenvectors(settings):
        raise SettingsError(
            f"partitions = {partitions}: {field} = {getattr(settings, field)} needs the "
            "eigenvectors of all documents, which partitions do not have; use the settings of the "
            "default preset, or one partition",
            field="partitions",
        )
    if settings.passages not in ("auto", "off"):
        raise SettingsError(
            f"passages = {settings.passages!r}: documents of an index in partitions are not "
            "divided; use passages = 'off', or one partition",
            field="passages",
        )


def _route(
    collection: Collection, work: Path, chosen: Settings, partitions: int, report: Progress,
    memory: int,
) -> tuple[list[int], Contents]:  # fmt: skip
    """Write the documents of a collection to a file for each partition.

    Return the number of documents of each, and what all contain.
    """
    spool = Spools(work, spool_limit(memory)).spool("u1")
    source, done = SourceBatches(collection, chosen, spool, TextSample(chosen)), 0
    with ExitStack() as files:
        parts = [DocumentSpool(work / str(number)) for number in range(partitions)]
        for part in parts:
            files.enter_context(closing(part))
        for batch in source:
            for ordinal, document in enumerate(batch, done):
                parts[partition_of(document.id, partitions)].add(document, ordinal)
            for part in parts:
                part.end_batch()
            done += len(batch)
            report(DOCUMENTS, done, source.extent.documents(done))
    report(DOCUMENTS, done, done)
    columns = work / "columns"
    columns.mkdir()
    contents = source.finish(columns)
    # English without any: partitions have even less text to tell the language by.
    names = ",".join(languages_of(contents.settings.language))
    settings = contents.settings.model_copy(update={"language": names})
    return [len(part.ordinals) for part in parts], contents._replace(settings=settings)


def _sample(work: Path, partitions: int, share: float) -> Iterator[Document]:
    """Yield the documents of the training: about this share, by the hashes of their IDs."""
    for number in range(partitions):
        yield from spooled(work / str(number), int(2**32 * (1 - share)))


def build_partitions(
    path: Path,
    collection: Collection,
    chosen: Settings,
    partitions: int,
    workers: int | PartitionWorkers,
    report: Progress,
    memory: int,
    *,
    replace: bool,
) -> Index:
    """Build the index at a path in partitions and open it.

    workers  number of processes that build partitions at the same time, or what calls them
    memory   limit of each process in bytes
    replace  see `build`
    """
    refuse_unpartitioned(partitions, chosen)
    refuse_overlap(path, collection)
    refuse_foreign(path)
    refuse_one_partition(path)
    if not replace:
        refuse_other_source(path, collection)
        refuse_to_drop_writes(path)
    undivided = chosen.model_copy(update={"passages": "off"})
    refuse_large_source(collection, undivided, memory, partitions)
    path.mkdir(parents=True, exist_ok=True)
    with index_lock(path):
        mark_index(path)
        partition_set = build_set(
            path,
            collection,
            chosen,
            partitions,
            workers,
            report,
            memory,
            check=partial(refuse_to_shrink, path, collection=collection, replace=replace),
        )
        use_partitions(path, partition_set)
    return Index(open_reader(path))


def build_set(
    path: Path,
    collection: Collection,
    chosen: Settings,
    partitions: int,
    workers: int | PartitionWorkers,
    report: Progress,
    memory: int,
    *,
    check: Callable[[int], None] = lambda _: None,
) -> PartitionSet:
    """Build partitions, and return their description. They are not in use yet.

    check  raises an error if the number of documents is refused
    The caller locks the index. If a build fails, its folders are removed.
    """
    chosen = chosen.model_copy(update={"passages": "off"})
    started = time.monotonic()
    generation = f"{next_number(path):06d}"
    forget_settings(path, generation)  # of an interrupted build of this number
    work = path / PARTITIONS_WORK
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    names = [f"{generation}-{number}" for number in range(partitions)]
    try:
        sizes, contents = _route(collection, work, chosen, partitions, report, memory)
        documents, settings = sum(sizes), contents.settings
        check(documents)
        size = Size(documents, contents.bytes)
        refuse_beyond_memory(size, settings, memory, partitions)
        counts = {"documents": documents, "terms": 0, "tokens": 0, "non_zeros": 0}
        built = Built(contents, counts, {})
        require_fields(collection, settings, contents.fields, documents)
        manifest = manifest_of(collection, built, started, {})
        types = {name: column.type for name, column in contents.fields.columns.items()}
        share = min(1, min(MOST, documents_within(size, memory)) / max(documents, 1))
        sampled = sum(1 for _ in _sample(work, partitions, share))
        sample = StoredCollection(
            manifest, sampled, partial(_sample, work, partitions, share), types
        )
        training = work / TRAINING
        training.mkdir()
        spectrum = train(training, sample, settings, report, memory=memory)
        trained = len(open_training(training, settings).trained.frequencies)
        if not trained:
            refuse_unused_texts(collection)
        entry = spectrum_entry(
            spectrum.eigenvalues, spectrum.residual, spectrum.gap, spectrum.trace
        )
        stored = collection if isinstance(collection, StoredCollection) else None
        fingerprints = {} if stored is None else stored.fingerprints
        tasks = [
            PartitionTask(
                path, name, number, sizes, work, manifest, types, entry, memory, fingerprints
            )
            for number, name in enumerate(names)
        ]
        take_steps(tasks, workers, report)
        partition_set = _set_of(path, names, built, collection, started, entry)
        partition_set = with_collection_terms(path, partition_set, trained)
    except BaseException:
        for folder in partition_folders(path):
            if folder.name.partition("-")[0] == generation:
                mark_index(folder)
                delete_index(folder)
        raise
    finally:
        shutil.rmtree(work)
    return partition_set


def _set_of(
    path: Path,
    names: list[str],
    built: Built,
    collection: Collection,
    started: float,
    spectrum: SpectrumEntry,
) -> PartitionSet:
    """Return the description of partitions that are built, without the number of their terms."""
    manifests = [read_manifest(current_generation(path / name)) for name in names]
    counts = [part.counts for part in manifests]
    totals = {
        "documents": sum(count.documents for count in counts),
        "terms": 0,
        "tokens": sum(count.tokens for count in counts),
        "non_zeros": sum(count.non_zeros for count in counts),
    }
    spaces = {space.name: space for part in manifests for space in part.vectors}
    vectors = [
        space.model_copy(
            update={
                total: sum(
                    getattr(entry, total)
                    for part in manifests
                    for entry in part.vectors
                    if entry.name == name
                )
                for total in ("vectors", "documents")
            }
        )
        for name, space in sorted(spaces.items())
    ]
    combined = built._replace(counts=totals, spectra={"bm25": spectrum}, vectors=vectors)
    manifest = manifest_of(collection, combined, started, {})
    words = documents = 0
    for name in names:
        lengths = open_array(current_generation(path / name), "lengths")
        words, documents = words + int(lengths.sum(dtype="i8")), documents + len(lengths)
    length = bm25.quantised_length(words / documents if words else 1.0)
    return PartitionSet(manifest=manifest, folders=names, length=length)
