"""The two steps of each partition of a build, in this process, in others, or elsewhere.

`read_partition` writes all files of a partition but the rows of D; after it has been called for
all, `build_partition` finds the neighbours of the documents of one in all partitions, and makes it
an ordinary index. Both do the same for passages, and can be repeated if a process dies.
"""

from __future__ import annotations

import os
import pickle
import shutil
import time
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from contextlib import suppress
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.collection.model import Document, id_hash
from klsa_search.core.array_types import Numbers, starts_of
from klsa_search.core.build_settings import FieldType
from klsa_search.core.child_processes import WorkerPool, answer_requests
from klsa_search.core.config import Settings
from klsa_search.core.parallel import processors
from klsa_search.core.progress import Progress, silent
from klsa_search.indexing.generation_builder import (
    Built,
    PartitionWorkers,
    commit_passages,
    sizes_of,
    write_generation,
)
from klsa_search.indexing.reading import StoredCollection, read
from klsa_search.indexing.weighing import open_training, weigh_partition
from klsa_search.kernels.document_kernel import DocumentKernel
from klsa_search.kernels.nearest_neighbours import KnnPart, nearest_rows_in_parts
from klsa_search.lowrank.sparse_expansion import ENTRIES, pack_table
from klsa_search.storage.arrays import open_array, write_arrays
from klsa_search.storage.manifest import Manifest, SpectrumEntry
from klsa_search.storage.names import PASSAGES
from klsa_search.storage.passages import PASSAGE_DOCUMENTS, passages_of

TRAINING: Final = "training"
"""Folder of the training in the work folder."""

PHASE: Final = "partitions"

_ARRAYS: Final = "arrays"
"""Kind of the folder with the numbers of documents: see `PartitionTask.folder`."""


class DocumentSpool:
    """Batches of documents in a file; numbers of them, and of their passages, in the source.

    document_of  the document of each passage
    """

    def __init__(self, path: Path) -> None:
        self.path, self._stream = path, path.open("wb")
        self.ordinals, self.passages, self.document_of = array("q"), array("q"), array("i")

    def extend(
        self, documents: list[Document], ordinals: Sequence[int], passages: Iterable[range]
    ) -> None:
        """Write a batch of documents.

        passages  numbers of the passages of each; none if documents are not divided
        """
        pickle.dump(documents, self._stream, pickle.HIGHEST_PROTOCOL)
        for doc_id, numbers in enumerate(passages, len(self.ordinals)):
            self.passages.extend(numbers)
            self.document_of.extend(repeat(doc_id, len(numbers)))
        self.ordinals.extend(ordinals)

    def close(self) -> None:
        """Close the file, and write the numbers to the folders of the arrays of both."""
        self._stream.close()
        documents, passages = (
            folder / f"{self.path.name}-{_ARRAYS}"
            for folder in (self.path.parent, self.path.parent / PASSAGES)
        )
        for folder in (documents, passages):
            folder.mkdir(parents=True)
        write_arrays(documents, {"ordinals": np.frombuffer(self.ordinals, np.int64)})
        document_of = np.frombuffer(self.document_of, np.int32)
        numbers = np.frombuffer(self.passages, np.int64)
        write_arrays(passages, {"ordinals": numbers, PASSAGE_DOCUMENTS: document_of})


def spooled_batches(path: Path) -> Iterator[list[Document]]:
    """Yield the batches of the file of a `DocumentSpool`."""
    with path.open("rb") as stream, suppress(EOFError):
        while True:
            yield pickle.load(stream)  # noqa: S301 - written by this build


class SpooledDocuments(NamedTuple):
    """The documents of all partitions in files, or their passages.

    folder    of the files of documents
    words     of a passage; None for documents
    work      folder of all other files
    sizes     number of documents of each partition, or of passages
    manifest  of all
    types     of their metadata fields
    """

    folder: Path
    words: int | None
    work: Path
    sizes: Sequence[int]
    manifest: Manifest
    types: Mapping[str, FieldType]

    def of_partition(self, number: int, above: int = 0) -> Iterator[Document]:
        """Yield the documents of a partition, or their passages, whose hash is at least a limit."""
        for document in chain.from_iterable(spooled_batches(self.folder / str(number))):
            words = self.words
            units = (document,) if words is None else passages_of(document, words)
            # of 32 bits of an ID that its partition does not depend on
            yield from (unit for unit in units if id_hash(unit.id) & 0xFFFFFFFF >= above)

    def sample(self, share: float) -> StoredCollection:
        """Return about this share of all, by the hashes of their IDs."""

        def read() -> Iterator[Document]:
            for number in range(len(self.sizes)):
                yield from self.of_partition(number, int(2**32 * (1 - share)))

        return StoredCollection(self.manifest, sum(1 for _ in read()), read, self.types)


class PartitionTask(NamedTuple):
    """What a process needs to build one partition, or the index of its passages.

    path          folder of the partition
    documents     of all partitions, or their passages
    spectrum      of the training
    memory        limit in bytes
    fingerprints  of the embedders that computed vectors, by space
    passages      the task of its passages, if documents are divided
    """

    path: Path
    number: int
    documents: SpooledDocuments
    spectrum: SpectrumEntry
    memory: int
    fingerprints: Mapping[str, str]
    passages: PartitionTask | None = None

    @property
    def settings(self) -> Settings:
        """Return the settings of the index."""
        return self.documents.manifest.checked_settings()

    @property
    def collection(self) -> StoredCollection:
        """Return its documents."""
        documents, number = self.documents, self.number
        read = partial(documents.of_partition, number)
        size = documents.sizes[number]
        collection = StoredCollection(documents.manifest, size, read, documents.types)
        collection.fingerprints |= self.fingerprints
        return collection

    def folder(self, kind: str, number: int | None = None) -> Path:
        """Return where this partition, or another, has something while it is built.

        kind  "arrays": numbers of its documents; "files" and "result" of `read_partition`, until
              they are used; "features" for all partitions
        """
        return self.documents.work / f"{self.number if number is None else number}-{kind}"


_PartitionRead = tuple[Built, npt.NDArray[np.float32], frozenset[str]]
"""What `read_partition` returns: K(d, d) is (n,), and names are those of the files it wrote."""


def read_partition(task: PartitionTask) -> None:
    """Write all files of a partition but the rows of D, which need those of all partitions."""
    _read_documents(task)
    if task.passages is not None:
        _read_documents(task.passages)


def _read_documents(task: PartitionTask) -> None:
    settings = task.settings
    partitions = len(task.documents.sizes)
    files, features = task.folder("files"), task.folder("features")
    for folder in (files, features):  # of a process that died
        shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(task.folder(_ARRAYS), files)
    features.mkdir()
    training = task.documents.work / TRAINING
    trained = open_training(training, settings)
    documents = read(task.collection, files, settings, silent, memory=task.memory, trained=trained)
    kernel, diagonals = weigh_partition(documents, trained, training, files)
    write_features(features, kernel, open_array(files, "ordinals"), partitions)
    contents, spectra = documents.contents._replace(settings=settings), {"bm25": task.spectrum}
    built = Built(contents, sizes_of(documents.counts), spectra, documents.vectors)
    names = frozenset(file.name for file in files.iterdir())
    task.folder("result").write_bytes(pickle.dumps((built, diagonals, names)))


def build_partition(task: PartitionTask) -> None:
    """Build one partition as an index of its own, after all have been read."""
    started, passages = time.monotonic(), task.passages

    def write(generation: Path) -> Built:
        built = _write_documents(task, generation)
        if passages is None:
            return built
        folder = generation / PASSAGES
        folder.mkdir()
        of_rows = _write_documents(passages, folder)
        commit_passages(folder, passages.collection, of_rows, started)
        counts = {**built.counts, "passages": of_rows.counts["documents"]}
        return built._replace(counts=counts)

    write_generation(task.path, task.collection, write, silent, replace=True)


def _write_documents(task: PartitionTask, generation: Path) -> Built:
    """Write all files of a task to a generation, or to the folder of its passages."""
    width = max(ENTRIES, task.settings.neighbours)
    folders = [task.folder("features", number) for number in range(len(task.documents.sizes))]
    built, diagonals, names = _result_of(task)
    files = task.folder("files")
    if names - {file.name for file in files.iterdir()}:  # a process died meanwhile
        _read_documents(task)
        built, diagonals, names = _result_of(task)
    for name in sorted(names):
        os.replace(files / name, generation / name)
    write_rows(generation, folders, task.number, diagonals, width)
    return built


def _result_of(task: PartitionTask) -> _PartitionRead:
    result: _PartitionRead = pickle.loads(task.folder("result").read_bytes())  # noqa: S301 - written by this build
    return result


def write_features(
    folder: Path, kernel: DocumentKernel, ordinals: Numbers, partitions: int
) -> None:
    """Write what other partitions need to find neighbours among the documents of one.

    ordinals    (n,) of the documents
    partitions  their number
    """
    part = KnnPart.of(kernel, parts=partitions)
    arrays = {name: array for name, array in part._asdict().items() if name != "first"}
    write_arrays(folder, {**arrays, "ordinals": ordinals})


def write_rows(
    generation: Path,
    folders: Sequence[Path],
    number: int,
    diagonals: npt.NDArray[np.float32],
    width: int,
) -> None:
    """Write the rows of D of a partition.

    folders    of the features of all partitions
    diagonals  (n,) K(d, d) of the documents of this one
    width      entries of a row
    Cost: that of the rows of an index with one partition, for the documents of this one. The
    features of this partition and of one other are mapped into memory at a time.
    """
    sizes = [len(open_array(folder, "scales")) for folder in folders]
    firsts = starts_of(np.array(sizes)).tolist()
    parts = [partial(_open_part, *part) for part in zip(folders, firsts[:-1], strict=True)]
    rows = nearest_rows_in_parts(parts, sizes, number, width + 1)
    ordinals = np.concatenate([open_array(folder, "ordinals") for folder in folders])
    table, steps, remote_rows = pack_table(rows, width, firsts[number], ordinals)
    scales = np.column_stack((steps, diagonals)).astype(np.float32)
    arrays: dict[str, npt.NDArray[np.generic]] = {
        "expansion_rows": table,
        "expansion_scales": scales,
        "remote_rows": remote_rows.documents,
        "remote_levels": remote_rows.levels,
    }
    write_arrays(generation, arrays)


def _open_part(folder: Path, first: int) -> KnnPart:
    """Return the part of a partition, whose documents are numbered from `first` on."""
    return KnnPart(first, *(open_array(folder, name) for name in KnnPart._fields[1:]))


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
    with WorkerPool[_Request, None](__name__, shares, "a process that built partitions") as pool:
        running = {}
        for number, task in enumerate(tasks):
            name = f"the process that built partition `{task.path.name}`"
            running[pool.submit((step, task), name)] = number
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
