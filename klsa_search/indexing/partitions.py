"""Build an index in partitions: a pass over the source, a training, two steps of each partition.

1. Documents are divided by the hash of their IDs and kept in a work folder.
2. The training computes what all partitions share, from all documents or a sample.
3. Each partition is read and weighed, in a process of its own (`read_partition`).
4. Each then finds the neighbours of its documents in all partitions, and becomes an ordinary index
   (`build_partition`).
5. The terms that the training lacks are numbered: see `collection_terms`.
6. `PARTITIONS` names the partitions, in one step.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import shutil
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.collection.model import Collection, Document
from klsa_search.core.child_processes import end, pipes_of_worker, read_requests, send, start_worker
from klsa_search.core.config import FieldType, Settings
from klsa_search.core.parallel import exit_with_parent, processors
from klsa_search.core.progress import DOCUMENTS, Progress, silent
from klsa_search.errors import KlsaError, SettingsError
from klsa_search.indexing.build import (
    Built,
    PartitionWorkers,
    manifest_of,
    spectrum_entry,
    write_generation,
)
from klsa_search.indexing.checks import (
    refuse_large_source,
    refuse_one_partition,
    refuse_other_source,
    refuse_overlap,
    refuse_to_drop_writes,
    refuse_to_shrink,
)
from klsa_search.indexing.collection_terms import with_collection_terms
from klsa_search.indexing.partition_rows import write_features, write_rows
from klsa_search.indexing.reading import (
    Extent,
    StoredCollection,
    build_batches,
    content_of,
    read,
    settled,
)
from klsa_search.indexing.sizes import layout, spool_limit
from klsa_search.indexing.training import MOST, open_training, train, weigh_partition
from klsa_search.kernels import bm25
from klsa_search.kernels.spool import Spools
from klsa_search.lowrank.sparse_expansion import ENTRIES
from klsa_search.search.partitioned_index import PartitionedIndex
from klsa_search.storage.arrays import open_array, write_arrays
from klsa_search.storage.columns.builder import FieldsWriter
from klsa_search.storage.columns.declared import DeclaredFields, fitting
from klsa_search.storage.current import current_generation
from klsa_search.storage.directories import (
    mark_index,
    next_number,
    partition_folders,
    refuse_foreign,
)
from klsa_search.storage.generations import index_lock
from klsa_search.storage.maintenance import delete_index, use_partitions
from klsa_search.storage.manifest import (
    FieldsEntry,
    Manifest,
    SpectrumEntry,
    read_manifest,
)
from klsa_search.storage.names import PARTITIONS_WORK, index_path
from klsa_search.storage.partitions import (
    MAX_PARTITIONS,
    PartitionSet,
    hash_of,
    partition_of,
)

_TRAINING: Final = "training"
_SAMPLE: Final = "sample"
PHASE: Final = "partitions"


def refuse_unpartitioned(partitions: int, settings: Settings) -> None:
    """Raise SettingsError for settings, or a number, that partitions do not support."""
    if not 1 <= partitions <= MAX_PARTITIONS:
        raise SettingsError(
            f"partitions = {partitions} is not from 1 to {MAX_PARTITIONS:,}", field="partitions"
        )
    if layout(0, settings) != "sparse":
        raise SettingsError(
            f"partitions = {partitions}: partitions need a sparse expansion; use the settings of "
            "the default preset, or one partition",
            field="partitions",
        )
    if settings.passages not in ("auto", "off"):
        raise SettingsError(
            f"passages = {settings.passages!r}: documents of an index in partitions are not "
            "divided; use passages = 'off', or one partition",
            field="passages",
        )


class _Routed(NamedTuple):
    """What the pass over the source finds.

    sizes     number of documents of each partition
    digest    SHA-256 of all documents, in hexadecimal digits
    fields    metadata fields of all documents
    settings  of the index, completed by the documents
    """

    sizes: list[int]
    digest: str
    fields: FieldsEntry
    settings: Settings


@dataclass
class _Spooled:
    """Batches of documents in a file, and their numbers in the source."""

    path: Path
    stream: IO[bytes] = field(init=False)
    batch: list[Document] = field(default_factory=list)
    ordinals: array[int] = field(default_factory=lambda: array("q"))

    def __post_init__(self) -> None:
        self.stream = self.path.open("wb")

    def add(self, document: Document, ordinal: int) -> None:
        self.batch.append(document)
        self.ordinals.append(ordinal)

    def end_batch(self) -> None:
        if self.batch:
            pickle.dump(self.batch, self.stream, pickle.HIGHEST_PROTOCOL)
            self.batch = []

    def close(self) -> None:
        self.stream.close()
        np.save(_ordinals(self.path), np.frombuffer(self.ordinals, np.int64))


def _ordinals(documents: Path) -> Path:
    """Return the file of the numbers of documents in the source."""
    return documents.with_suffix(".npy")


def _spooled(path: Path, above: int = 0) -> Iterator[Document]:
    """Yield the documents of a file whose hash is at least a limit."""
    with path.open("rb") as stream:
        while True:
            try:
                batch = pickle.load(stream)  # noqa: S301 - written by this build
            except EOFError:
                return
            yield from (each for each in batch if _sample_key(each) >= above)


def _sample_key(document: Document) -> int:
    """Return 32 bits of an ID that its partition does not depend on."""
    return hash_of(document.id) & 0xFFFFFFFF


def _route(
    collection: Collection, work: Path, chosen: Settings, partitions: int, report: Progress,
    memory: int,
) -> _Routed:  # fmt: skip
    """Write the documents of a collection to a file for each partition; return what was found."""
    declared = DeclaredFields.of(chosen)
    documents, settings = settled(fitting(collection, declared), chosen)
    known = collection.types if isinstance(collection, StoredCollection) else {}
    columns = work / "columns"
    columns.mkdir()
    fields = FieldsWriter(declared.types, Spools(work, spool_limit(memory)).spool("u1"), known)
    digest, extent, done = hashlib.sha256(), Extent(collection), 0
    with ExitStack() as files:
        parts = [_Spooled(work / str(number)) for number in range(partitions)]
        for part in parts:
            files.enter_context(closing(part))
        for batch in build_batches(documents):
            fields.extend(batch)
            digest.update(b"".join(map(content_of, batch)))
            extent.add(batch)
            for ordinal, document in enumerate(batch, done):
                parts[partition_of(document.id, partitions)].add(document, ordinal)
            for part in parts:
                part.end_batch()
            done += len(batch)
            report(DOCUMENTS, done, extent.documents(done))
    report(DOCUMENTS, done, done)
    entry = fields.finish(columns)
    sizes = [len(part.ordinals) for part in parts]
    return _Routed(sizes, digest.hexdigest(), entry, settings)


def _sample(work: Path, partitions: int, documents: int) -> Iterator[Document]:
    """Yield the documents of the training: all, or about `MOST` by the hashes of their IDs."""
    above = 0 if documents <= MOST else int(2**32 * (1 - MOST / documents))
    for number in range(partitions):
        yield from _spooled(work / str(number), above)


class _Task(NamedTuple):
    """What a process needs to build one partition."""

    home: Path
    name: str
    number: int
    sizes: Sequence[int]
    work: Path
    manifest: Manifest
    types: dict[str, FieldType]
    spectrum: SpectrumEntry
    memory: int

    @property
    def documents(self) -> Path:
        """Return the file of its documents."""
        return self.work / str(self.number)

    @property
    def collection(self) -> StoredCollection:
        """Return its documents."""
        read = partial(_spooled, self.documents)
        return StoredCollection(self.manifest, self.sizes[self.number], read, self.types)

    @property
    def files(self) -> Path:
        """Return the folder of the files that `read_partition` writes, until they are used."""
        return self.work / f"{self.number}-files"

    @property
    def result(self) -> Path:
        """Return the file of what `read_partition` returns."""
        return self.work / f"{self.number}-result"

    def features(self, number: int) -> Path:
        """Return the folder of the features of a partition."""
        return self.work / f"{number}-features"


class _PartitionRead(NamedTuple):
    """Result of `read_partition`.

    diagonals  (n,) K(d, d)
    names      of the files that it wrote
    """

    built: Built
    diagonals: npt.NDArray[np.float32]
    names: frozenset[str]


def read_partition(task: _Task, report: Progress = silent) -> None:
    """Write all files of a partition but the rows of D, which need those of all partitions."""
    settings, partitions = task.manifest.checked_settings(), len(task.sizes)
    for folder in (task.files, task.features(task.number)):  # of a process that died
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
    training = task.work / _TRAINING
    trained = open_training(training, settings)
    found = read(task.collection, task.files, settings, report, memory=task.memory, trained=trained)
    kernel, diagonals = weigh_partition(found, trained, training, task.files, report)
    ordinals = np.load(_ordinals(task.documents))
    write_arrays(task.files, {"ordinals": ordinals})
    write_features(task.features(task.number), kernel, ordinals, partitions)
    documents, terms = found.counts.matrix.shape
    counts = {
        "documents": documents,
        "terms": terms,
        "tokens": found.counts.tokens,
        "non_zeros": found.counts.matrix.nnz,
    }
    spectra = {"bm25": task.spectrum}
    built = Built(settings, counts, spectra, found.digest, found.fields, found.vectors)
    names = frozenset(file.name for file in task.files.iterdir())
    task.result.write_bytes(pickle.dumps(_PartitionRead(built, diagonals, names)))


def build_partition(task: _Task, report: Progress = silent) -> None:
    """Build one partition as an index of its own, after all have been read."""
    width = max(ENTRIES, task.manifest.checked_settings().neighbours)
    folders = [task.features(number) for number in range(len(task.sizes))]

    def write(generation: Path) -> Built:
        found = _result_of(task)
        if found.names - {file.name for file in task.files.iterdir()}:  # a process died meanwhile
            read_partition(task)
            found = _result_of(task)
        for name in sorted(found.names):
            os.replace(task.files / name, generation / name)
        write_rows(generation, folders, task.number, found.diagonals, width, report)
        return found.built

    path = index_path(task.home, task.name)
    write_generation(path, task.collection, write, report, replace=True).close()


def _result_of(task: _Task) -> _PartitionRead:
    """Return the result of `read_partition`."""
    found: _PartitionRead = pickle.loads(task.result.read_bytes())  # noqa: S301 - written by this build
    return found


def _documents_in_memory(documents: int, partitions: int) -> int:
    """Return how many documents a process has in memory: of the training or of one partition."""
    return max(min(documents, MOST), -(-documents // partitions))


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
) -> PartitionedIndex:
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
    share = partial(_documents_in_memory, partitions=partitions)
    refuse_large_source(collection, undivided, memory, share)
    path.mkdir(parents=True, exist_ok=True)
    with index_lock(path):
        mark_index(path)
        found = build_set(
            path,
            collection,
            chosen,
            partitions,
            workers,
            report,
            memory,
            check=partial(refuse_to_shrink, path, collection=collection, replace=replace),
        )
        use_partitions(path, found)
    return PartitionedIndex(path)


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
    work = path / PARTITIONS_WORK
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    names = [f"{generation}-{number}" for number in range(partitions)]
    try:
        routed = _route(collection, work, chosen, partitions, report, memory)
        documents = sum(routed.sizes)
        check(documents)
        built = Built(routed.settings, _counts(documents), {}, routed.digest, routed.fields)
        manifest = manifest_of(collection, built, started, {})
        types = {name: column.type for name, column in routed.fields.columns.items()}
        sampled = sum(1 for _ in _sample(work, partitions, documents))
        sample = StoredCollection(
            manifest, sampled, partial(_sample, work, partitions, documents), types
        )
        training = work / _TRAINING
        training.mkdir()
        spectrum = train(training, sample, routed.settings, report, memory=memory)
        entry = spectrum_entry(
            spectrum.eigenvalues, spectrum.residual, spectrum.gap, spectrum.trace
        )
        tasks = [
            _Task(path, name, number, routed.sizes, work, manifest, types, entry, memory)
            for number, name in enumerate(names)
        ]
        report(PHASE, 0, 2 * partitions)
        for done, step in enumerate((read_partition, build_partition)):
            _run(step, tasks, workers, partial(_add, report, done * partitions))
        trained = len(open_training(training, routed.settings).trained.frequencies)
        found = _set_of(path, names, built, collection, started, entry)
        found = with_collection_terms(path, found, trained)
    except BaseException:
        for folder in partition_folders(path):
            if folder.name.partition("-")[0] == generation:
                mark_index(folder)
                delete_index(folder)
        raise
    finally:
        shutil.rmtree(work)
    return found


def _counts(documents: int) -> dict[str, int]:
    return {"documents": documents, "terms": 0, "tokens": 0, "non_zeros": 0}


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
    counts = [each.counts for each in manifests]
    totals = {
        "documents": sum(each.documents for each in counts),
        "terms": 0,
        "tokens": sum(each.tokens for each in counts),
        "non_zeros": sum(each.non_zeros for each in counts),
    }
    spaces = {space.name: space for each in manifests for space in each.vectors}
    vectors = [
        space.model_copy(
            update={
                total: sum(
                    getattr(own, total)
                    for each in manifests
                    for own in each.vectors
                    if own.name == name
                )
                for total in ("vectors", "documents")
            }
        )
        for name, space in sorted(spaces.items())
    ]
    whole = built._replace(counts=totals, spectra={"bm25": spectrum}, vectors=vectors)
    manifest = manifest_of(collection, whole, started, {})
    words = documents = 0
    for name in names:
        lengths = open_array(current_generation(path / name), "lengths")
        words, documents = words + int(lengths.sum(dtype="i8")), documents + len(lengths)
    length = bm25.quantised_length(words / documents if words else 1.0)
    return PartitionSet(manifest=manifest, folders=names, length=length)


def _add(report: Progress, before: int, phase: str, done: int, total: int | None) -> None:
    """Report the progress of a step of all partitions.

    before  partitions that the earlier steps have done
    """
    report(phase, before + done, None if total is None else 2 * total)


def _run(
    step: Callable[[_Task], None],
    tasks: Sequence[_Task],
    workers: int | PartitionWorkers,
    report: Progress,
) -> None:
    """Take a step for all partitions, several at a time; raise the first error."""
    if not isinstance(workers, int):
        for done, _ in enumerate(workers(step, tasks), 1):
            report(PHASE, done, len(tasks))
        return
    if workers <= 1:
        for done, task in enumerate(tasks, 1):
            step(task)
            report(PHASE, done, len(tasks))
        return
    with ThreadPoolExecutor(workers) as threads:
        running = [
            threads.submit(_in_process, step, task, at % workers, workers)
            for at, task in enumerate(tasks)
        ]
        for done, each in enumerate(running, 1):
            each.result()
            report(PHASE, done, len(tasks))


def _in_process(step: Callable[[_Task], None], task: _Task, place: int, workers: int) -> None:
    """Take a step for a partition in another process; KlsaError if it dies."""
    process = start_worker(__name__)
    try:
        send(process, (step.__name__, task, place, workers))
        assert process.stdout is not None
        answer = pickle.load(process.stdout)  # noqa: S301 - our child process
    except (BrokenPipeError, EOFError, pickle.UnpicklingError) as error:
        code = end(process)
        fact = f"signal {-code}" if code < 0 else f"exit code {code}"
        raise KlsaError(
            f"the process that built partition `{task.name}` ended early ({fact}); make sure that "
            "there is free memory, then build again"
        ) from error
    end(process)
    if isinstance(answer, KlsaError):
        raise answer


def serve() -> None:
    """Run a process that builds one partition, on its share of the processors."""
    requests, answers = pipes_of_worker()
    steps = {step.__name__: step for step in (read_partition, build_partition)}
    for name, task, place, workers in read_requests(requests):
        exit_with_parent()  # which would not clean up what this process still writes
        if hasattr(os, "sched_setaffinity"):
            own = sorted(os.sched_getaffinity(0))[place::workers]
            with suppress(OSError):
                os.sched_setaffinity(0, own or [place % processors()])
        answer: Any = None
        try:
            steps[name](task)
        except KlsaError as error:  # raised again in the parent
            answer = error
        pickle.dump(answer, answers, pickle.HIGHEST_PROTOCOL)
        answers.flush()
