"""Build: write a new generation of an index from a collection, or plan what that costs."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import NoneType
from typing import Any, Final, Unpack, cast

from klsa_search.analysis.tokenizers import with_trusted_tokenizer
from klsa_search.collection.model import Collection, Source, Unread
from klsa_search.collection.opened_collection import OpenedCollection, warn_of_skipped
from klsa_search.collection.opening import open_collection
from klsa_search.collection.reading_options import ReadingOptions
from klsa_search.collection.vectors import RowVectorsLike
from klsa_search.core.arguments import checked_argument
from klsa_search.core.config import IndexSettings, Settings
from klsa_search.core.parallel import processors
from klsa_search.core.progress import Progress, open_progress
from klsa_search.core.wording import counted
from klsa_search.errors import SettingsError
from klsa_search.indexing import checks, estimate
from klsa_search.indexing.estimate import Size
from klsa_search.indexing.generation_builder import PartitionWorkers
from klsa_search.indexing.partitions import (
    Division,
    build_divided,
    number_of_workers,
    refuse_partitions,
)
from klsa_search.search.index import Index
from klsa_search.storage.names import index_directory, index_path

_log: Final = logging.getLogger(__name__)

_BYTES_OF_WORD = 6  # of English, with the blank

SERVING_PROCESS = 300 * 2**20
"""Bytes of a process that serves, without the files of indexes: it has the engine."""

# Processor time of a request over HTTP, that of the client included, and of a search of a million
# documents, which grows with this power of the documents: `results/service.json` (two processors
# by the requests of eight connections) and `results/growth.json`.
_REQUEST_SECONDS = 0.0008

_SEARCH_SECONDS = 0.00055

_SEARCH_GROWTH = 0.48


class BuildOptions(ReadingOptions, IndexSettings, total=False):
    """Keyword arguments of `build`: how a source is read, and settings of the index.

    >>> options: BuildOptions = {"format": "jsonl", "k1": 1.5}
    >>> build("reports.jsonl", name="reports", **options).settings.k1
    1.5
    """


def build(
    source: Source,
    *,
    name: str,
    home: str | Path | None = None,
    preset: str = "default",
    progress: Progress | bool | None = None,
    memory: str | int | None = None,
    replace: bool = False,
    vectors: RowVectorsLike | None = None,
    partitions: int | None = None,
    workers: int | PartitionWorkers | None = None,
    **options: Unpack[BuildOptions],
) -> Index:
    """Build an index and open it.

    source    a file or folder in any format of `klsa_search.collection`, the name of a collection,
              "python-docs", an opened `Collection` (with its own format and on_error), an iterable
              of Documents or mappings with id, title, text, a data frame of pandas or polars with
              such columns, or a data set of ir_datasets ("irds:NAME")
    name      name of the index; an existing one is replaced when the new one is complete, and kept
              on disk until the next build (`klsa_search.storage.maintenance.rollback`)
    home      index directory, by default `$KLSA_HOME` or `index`; neither inside nor around the
              source folder
    preset    "default" or "paper"
    options   settings that change single values of the preset (`tokenizer` may also be the function
              itself), and how the source is read: `format`, `on_error`, `data`, `follow_links`,
              `columns` and `sections`, as in `open_collection`
    progress  called with (phase, done, total), phases as in `klsa_search.core.progress`; or True
              for a progress bar, in a terminal or a notebook
    memory    memory limit of the build, as "4GiB" or in bytes; by default three quarters of the
              memory of the machine or control group. It affects the index only if all documents
              need more: see `partitions`
    replace   replace an index that was built from another source, which is refused otherwise: a
              source of another name or in another place; for sources without a place, such as
              iterables, one with less than half as many documents; or an index that this version
              cannot read

    vectors   vectors of the documents by space, each an array (documents, dimension) of float16,
              float32, float64 or int8, or the path of one (`.npy`), which is mapped into memory:
              row i is that of the i-th document of the source. No record may be skipped
    partitions
              divide the documents into this many indexes, which search and write as one:
              docs/guides/partitions.md. Rankings differ a little from those of one partition. By
              default 1, or if the source has files, as many as fit into the memory one after the
              other, which is logged as a warning
    workers   build this many partitions at the same time, each with its share of the processors; by
              default one for each processor. `memory` is the limit of each. Or a function that runs
              tasks elsewhere, such as `klsa_search.cluster.ray.run_tasks`

    Skipped records, unread files and numbered documents are logged as warnings of the logger
    `klsa_search`, unless the collection was opened before. A build that would exceed the memory
    limit with these partitions is refused before the work starts.

    Cost: one pass over the documents, O(nnz · k + N · k²) for the spectrum, and the same for
    the row of D of each document, for any N.
    Raise CollectionError, SettingsError (too little memory, home within the source), StoreError (a
    folder that is not an index, another source), KlsaError if a process dies. If the build fails,
    the existing index and all other files are unchanged.

    >>> index = build("reports.jsonl", name="reports", home="index", k1=1.5)
    >>> len(index)
    6
    """
    checked_argument("vectors", vectors, Mapping, NoneType)
    checked_argument("partitions", partitions, int, NoneType)
    if partitions is not None:
        refuse_partitions(partitions)
    if not callable(workers):
        checked_argument("workers", workers, int, NoneType)
    reading, chosen = _split_options(options, preset)
    opened = None
    if not isinstance(source, Collection):
        source = opened = open_collection(source, **reading)
    if vectors:
        if not isinstance(source, OpenedCollection):
            raise SettingsError(
                f"vectors cannot be added to a {type(source).__name__}; give its documents "
                "`_vectors`",
                field="vectors",
            )
        source.add_vectors(vectors)
    path = index_path(index_directory(home), name)
    checks.refuse_overlap(path, source)
    if not replace:  # before the source is sampled; and again with the lock
        checks.refuse_to_replace(path, source)
    budget = checks.memory_budget(memory)
    size = None if estimate.is_small(source, budget) else estimate.size_of(source, chosen)
    if partitions is None:
        partitions = 1 if size is None else estimate.partitions_needed(size, chosen, budget)
        if partitions > 1:
            workers = 1 if workers is None else workers
            _log.warning(
                "the documents need more memory than the limit: building %d partitions one after "
                "the other; set a higher limit of memory, or `partitions`",
                partitions,
            )
    if workers is None or isinstance(workers, int):
        workers = number_of_workers(partitions, workers)
        if memory is None:
            budget //= workers
    if size is not None:
        checks.refuse_beyond_memory(size, chosen, budget, partitions, about="about ")
    division = Division(partitions, workers)
    with open_progress(progress) as report:
        index = build_divided(path, source, chosen, division, report, budget, replace=replace)
    if opened is not None:
        warn_of_skipped(opened)
    return index


@dataclass(frozen=True)
class Plan:
    """Estimated costs of a build.

    source       name of the collection
    size         of the collection, estimated unless all of it was read
    processes    number of processors
    budget       memory limit in bytes
    seconds      processor time: about twice the time of a build on two idle processors
    peak_memory  in bytes
    disk         bytes of the index
    unread       files of the source folder that are not read
    """

    source: str
    size: Size
    processes: int
    budget: int
    seconds: float
    peak_memory: int
    disk: int
    unread: Unread = field(default_factory=Unread)

    @property
    def serving_memory(self) -> int:
        """Return the bytes of memory of a service of one process that reads no file twice."""
        return SERVING_PROCESS + self.disk

    @property
    def searches_per_second(self) -> int:
        """Return the expected searches per second over HTTP, of all processors.

        Processors like those of `docs/guides/capacity-planning.md`, at most 70% busy so that p99
        stays below 50 ms, and the default ranking.
        """
        search = _SEARCH_SECONDS * math.pow(self.size.documents / 1e6, _SEARCH_GROWTH)
        return int(0.7 * self.processes / (_REQUEST_SECONDS + search))

    @property
    def fits(self) -> bool:
        """Return whether the peak memory is within the limit, so that one partition suffices."""
        return self.peak_memory <= self.budget

    def as_json(self) -> dict[str, Any]:
        """Return all values as JSON."""
        values = self.size._asdict() | asdict(self)
        del values["size"]
        return values | {
            "unread": self.unread.as_json(),
            "serving_memory": self.serving_memory,
            "searches_per_second": self.searches_per_second,
            "fits": self.fits,
        }


def plan(
    source: str | Path | Collection,
    *,
    memory: str | int | None = None,
    preset: str = "default",
    **options: Unpack[BuildOptions],
) -> Plan:
    """Return the estimated costs of `build` with the same arguments; builds nothing.

    Cost: reading the first thousands of documents. Raise CollectionError, SettingsError.

    >>> costs = plan("reports.jsonl", memory="1GiB")
    >>> costs.fits
    True
    >>> costs
    Plan(source='reports.jsonl', size=Size(documents=6, bytes=...
    """
    reading, chosen = _split_options(options, preset)
    if not isinstance(source, Collection):
        source = open_collection(source, **reading)
    size = estimate.size_of(source, chosen)
    unread = source.unread if isinstance(source, OpenedCollection) else Unread()
    return _planned(source.name, size, chosen, checks.memory_budget(memory), unread)


def plan_of_size(
    documents: int,
    words: int,
    *,
    memory: str | int | None = None,
    preset: str = "default",
    **options: Unpack[BuildOptions],
) -> Plan:
    """Return the estimated costs of `build` for documents that do not exist yet.

    documents  number of documents
    words      mean number of English words of a document, stop words included
    Raise SettingsError.

    >>> costs = plan_of_size(100_000, 80)
    >>> costs.size.bytes
    48000000
    """
    for name, value in (("documents", documents), ("words", words)):
        if value < 1:
            raise SettingsError(f"{name} = {value}: give a number above 0", field=name)
    _, chosen = _split_options(options, preset)
    passages = 0
    if chosen.passages != "off" and words > chosen.passage_words:
        passages = documents * -(-words // chosen.passage_words)
    size = Size(documents, documents * words * _BYTES_OF_WORD, 0, passages)
    source = f"{counted(documents, 'document')} of {counted(words, 'word')}"
    return _planned(source, size, chosen, checks.memory_budget(memory), Unread())


def _planned(source: str, size: Size, settings: Settings, budget: int, unread: Unread) -> Plan:
    return Plan(
        source=source,
        size=size,
        processes=processors(),
        budget=budget,
        seconds=estimate.processor_seconds_needed(size),
        peak_memory=estimate.memory_needed(size, settings),
        disk=estimate.disk_needed(size, settings),
        unread=unread,
    )


def _split_options(options: BuildOptions, preset: str) -> tuple[ReadingOptions, Settings]:
    """Return how a source is read, and the settings of an index."""
    reading = {
        name: value for name, value in options.items() if name in ReadingOptions.__annotations__
    }
    settings = {name: value for name, value in options.items() if name not in reading}
    chosen = Settings.of_preset(preset, **with_trusted_tokenizer(settings))
    return cast(ReadingOptions, reading), chosen
