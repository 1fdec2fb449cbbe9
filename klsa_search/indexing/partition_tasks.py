"""The two steps of each partition of a build, in this process, in others, or elsewhere.

`read_partition` writes all files of a partition but the rows of D; after it has been called for
all, `build_partition` finds the neighbours of the documents of one in all partitions, and makes it
an ordinary index. Both can be repeated if a process dies.
"""

from __future__ import annotations

import os
import pickle
import shutil
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.collection.model import Document, id_hash
from klsa_search.core.build_settings import FieldType
from klsa_search.core.child_processes import WorkerPool, answer_requests
from klsa_search.core.parallel import processors
from klsa_search.core.progress import EXPANSION, Progress, silent
from klsa_search.indexing.generation_builder import (
    Built,
    PartitionWorkers,
    sizes_of,
    write_generation,
)
from klsa_search.indexing.reading import StoredCollection, read
from klsa_search.indexing.weighing import open_training, weigh_partition
from klsa_search.kernels.document_kernel import DocumentKernel
from klsa_search.kernels.nearest_neighbours import (
    KnnParams,
    KnnPart,
    nearest_rows_in_parts,
)
from klsa_search.lowrank.sparse_expansion import ENTRIES, pack_partition_table, remote_rows_arrays
from klsa_search.storage.arrays import write_arrays
from klsa_search.storage.manifest import Manifest, SpectrumEntry
from klsa_search.storage.names import index_path

TRAINING: Final = "training"
"""Folder of the training in the work folder."""


PHASE: Final = "partitions"


_PARAMS = KnnParams()


@dataclass
class DocumentSpool:
    """Batches of documents in a file, and their numbers in the source."""

    path: Path
    stream: IO[bytes] = field(init=False)
    batch: list[Document] = field(default_factory=list)
    ordinals: array[int] = field(default_factory=lambda: array("q"))

    def __post_init__(self) -> None:
        """Open the file."""
        self.stream = self.path.open("wb")

    def add(self, document: Document, ordinal: int) -> None:
        """Add a document to the present batch."""
        self.batch.append(document)
        self.ordinals.append(ordinal)

    def end_batch(self) -> None:
        """Write the present batch, if it has documents."""
        if self.batch:
            pickle.dump(self.batch, self.stream, pickle.HIGHEST_PROTOCOL)
            self.batch = []

    def close(self) -> None:
        """Close the file, and write the numbers of the documents to another one."""
        self.stream.close()
        np.save(_ordinals_file(self.path), np.frombuffer(self.ordinals, np.int64))


def _ordinals_file(documents: Path) -> Path:
    """Return the file of the numbers of documents in the source."""
    return documents.with_suffix(".npy")


def spooled(path: Path, above: int = 0) -> Iterator[Document]:
    """Yield the documents of a file whose hash is at least a limit."""
    with path.open("rb") as stream:
        while True:
            try:
                batch = pickle.load(stream)  # noqa: S301 - written by this build
            except EOFError:
                return
            yield from (document for document in batch if _sample_key(document) >= above)


def _sample_key(document: Document) -> int:
    """Return 32 bits of an ID that its partition does not depend on."""
    return id_hash(document.id) & 0xFFFFFFFF


class PartitionTask(NamedTuple):
    """What a process needs to build one partition.

    fingerprints  of the embedders that computed vectors, by space
    """

    home: Path
    name: str
    number: int
    sizes: Sequence[int]
    work: Path
    manifest: Manifest
    types: dict[str, FieldType]
    spectrum: SpectrumEntry
    memory: int
    fingerprints: Mapping[str, str]

    @property
    def documents(self) -> Path:
        """Return the file of its documents."""
        return self.work / str(self.number)

    @property
    def collection(self) -> StoredCollection:
        """Return its documents."""
        read = partial(spooled, self.documents)
        collection = StoredCollection(self.manifest, self.sizes[self.number], read, self.types)
        collection.fingerprints |= self.fingerprints
        return collection

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


def read_partition(task: PartitionTask, report: Progress = silent) -> None:
    """Write all files of a partition but the rows of D, which need those of all partitions."""
    settings, partitions = task.manifest.checked_settings(), len(task.sizes)
    for folder in (task.files, task.features(task.number)):  # of a process that died
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
    training = task.work / TRAINING
    trained = open_training(training, settings)
    documents = read(
        task.collection, task.files, settings, report, memory=task.memory, trained=trained
    )
    kernel, diagonals = weigh_partition(documents, trained, training, task.files, report)
    ordinals = np.load(_ordinals_file(task.documents))
    write_arrays(task.files, {"ordinals": ordinals})
    write_features(task.features(task.number), kernel, ordinals, partitions)
    contents, spectra = documents.contents._replace(settings=settings), {"bm25": task.spectrum}
    built = Built(contents, sizes_of(documents.counts), spectra, documents.vectors)
    names = frozenset(file.name for file in task.files.iterdir())
    task.result.write_bytes(pickle.dumps(_PartitionRead(built, diagonals, names)))


def build_partition(task: PartitionTask, report: Progress = silent) -> None:
    """Build one partition as an index of its own, after all have been read."""
    width = max(ENTRIES, task.manifest.checked_settings().neighbours)
    folders = [task.features(number) for number in range(len(task.sizes))]

    def write(generation: Path) -> Built:
        result = _result_of(task)
        if result.names - {file.name for file in task.files.iterdir()}:  # a process died meanwhile
            read_partition(task)
            result = _result_of(task)
        for name in sorted(result.names):
            os.replace(task.files / name, generation / name)
        write_rows(generation, folders, task.number, result.diagonals, width, report)
        return result.built

    path = index_path(task.home, task.name)
    write_generation(path, task.collection, write, report, replace=True)


def _result_of(task: PartitionTask) -> _PartitionRead:
    """Return the result of `read_partition`."""
    result: _PartitionRead = pickle.loads(task.result.read_bytes())  # noqa: S301 - written by this build
    return result


def write_features(
    folder: Path, kernel: DocumentKernel, ordinals: npt.NDArray[np.int64], partitions: int
) -> None:
    """Write what other partitions need to find neighbours among the documents of one.

    ordinals    (n,) of the documents
    partitions  their number
    """
    part = KnnPart.of(kernel, _PARAMS, parts=partitions)
    arrays = {name: array for name, array in part._asdict().items() if name != "first"}
    write_arrays(folder, {**arrays, "ordinals": ordinals})


def write_rows(
    generation: Path,
    folders: Sequence[Path],
    number: int,
    diagonals: npt.NDArray[np.float32],
    width: int,
    report: Progress,
) -> None:
    """Write the rows of D of a partition.

    folders    of the features of all partitions
    diagonals  (n,) K(d, d) of the documents of this one
    width      entries of a row
    Cost: that of the rows of an index with one partition, for the documents of this one. The
    features of all partitions are mapped into memory.
    """
    parts, first = [], 0
    for folder in folders:
        parts.append(_open_part(folder, first))
        first += len(parts[-1].scales)
    rows = nearest_rows_in_parts(parts, number, width + 1, progress=report)
    report(EXPANSION, 0, None)
    ordinals = np.concatenate([_mapped(folder, "ordinals") for folder in folders])
    table, steps, remote_rows = pack_partition_table(rows, width, parts[number].first, ordinals)
    scales = np.column_stack((steps, diagonals)).astype(np.float32)
    arrays = {"cut_rows": table, "cut_scales": scales, **remote_rows_arrays(remote_rows)}
    write_arrays(generation, arrays)


def _open_part(folder: Path, first: int) -> KnnPart:
    """Return the part of a partition, whose documents are numbered from `first` on."""
    return KnnPart(first, *(_mapped(folder, name) for name in KnnPart._fields[1:]))


def _mapped(folder: Path, name: str) -> npt.NDArray[Any]:
    mapped: npt.NDArray[Any] = np.load(folder / f"{name}.npy", mmap_mode="r").view(np.ndarray)
    return mapped


def take_steps(
    tasks: Sequence[PartitionTask], workers: int | PartitionWorkers, report: Progress
) -> None:
    """Read, then build all partitions, several at a time; raise the first error.

    workers  number of processes, or what calls them
    """
    if isinstance(workers, int):
        workers = partial(_in_processes, workers) if workers > 1 else _one_by_one
    done, total = 0, 2 * len(tasks)
    report(PHASE, done, total)
    for step in (read_partition, build_partition):
        for _ in workers(step, tasks):
            done += 1
            report(PHASE, done, total)


def _one_by_one(
    step: Callable[[PartitionTask], None], tasks: Sequence[PartitionTask]
) -> Iterator[int]:
    """Take a step for all partitions in this process; yield the number of each that is done."""
    for number, task in enumerate(tasks):
        step(task)
        yield number


def _in_processes(
    workers: int, step: Callable[[PartitionTask], None], tasks: Sequence[PartitionTask]
) -> Iterator[int]:
    """Take a step for all partitions in processes; yield the number of each that is done."""
    shares = [(number, workers) for number in range(workers)]
    name = "a process that built partitions"
    with WorkerPool[_Request, None](__name__, shares, name) as pool:
        running = {
            pool.submit((step, task), f"the process that built partition `{task.name}`"): number
            for number, task in enumerate(tasks)
        }
        for future in as_completed(running):
            future.result()
            yield running[future]


_Request = tuple[Callable[[PartitionTask], None], PartitionTask]


def serve() -> None:
    """Run a process that takes steps of partitions."""
    answer_requests(_take_share)


def _take_share(share: tuple[int, int]) -> Callable[[_Request], None]:
    """Keep to a share of the processors, the number of this process and that of all."""
    number, workers = share
    if hasattr(os, "sched_setaffinity"):
        assigned = sorted(os.sched_getaffinity(0))[number::workers]
        with suppress(OSError):
            os.sched_setaffinity(0, assigned or [number % processors()])
    return lambda request: request[0](request[1])
