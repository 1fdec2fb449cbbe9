"""Plan a build: estimate its costs from a sample of the documents, or from their size.

The units of each phase follow from the shape of the collection; seconds per unit are measured on
the sample. Memory and disk come from `sizes`, which a build checks before it starts.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar, Unpack

import numpy as np

from klsa_search.analysis.tokenizers import with_trusted_tokenizer
from klsa_search.collection.model import Collection, Unread
from klsa_search.collection.opened_collection import OpenedCollection
from klsa_search.collection.opening import open_collection
from klsa_search.collection.public_collections import PYTHON_DOCS
from klsa_search.core import progress
from klsa_search.core.config import Settings
from klsa_search.core.parallel import processors
from klsa_search.errors import SettingsError
from klsa_search.indexing.build import BuildOptions, split_options
from klsa_search.indexing.checks import memory_budget
from klsa_search.indexing.sizes import (
    Shape,
    disk_needed,
    memory_needed,
    shape_of_size,
    solved_dimensions,
    stores_rows,
)
from klsa_search.indexing.survey import Survey, survey
from klsa_search.indexing.weighing import document_kernel, postings_of
from klsa_search.kernels.counts import TermCounts
from klsa_search.kernels.document_kernel import DocumentKernel
from klsa_search.kernels.nearest_neighbours import nearest_rows
from klsa_search.lowrank.eigensolver import decompose
from klsa_search.lowrank.expansion_matrix import expansion_rows
from klsa_search.lowrank.latent_space import LatentSpace
from klsa_search.lowrank.sparse_expansion import ENTRIES, SparseExpansion

T = TypeVar("T")

_SAMPLE = 20_000  # documents read
_SOLVER_SAMPLE = 5_000  # documents of the decomposition
_NEIGHBOUR_SAMPLE = 1_000  # documents whose nearest neighbours are searched
_HASHED = 2**25  # bytes
# Overhead of worker processes: transfer, and a dictionary that exceeds the caches. Measured at
# 300,000 and 1,000,000 documents on two processors.
_WORKER_OVERHEAD = 1.4
# Random access costs more when it exceeds the caches: the cost per unit grows with this power of
# the documents, from the sample's on. Measured at 21,578, 300,000 and 1,000,000 documents.
_RANDOM_ACCESS = 0.25


SERVING_PROCESS = 300 * 2**20
"""Bytes of a process that serves, without the files of indexes: it has the engine."""

# Processor time of a request over HTTP, and of a search of a million documents, which grows with
# this power of the documents: `results/service.json` and `results/growth.json`.
_REQUEST_SECONDS = 0.0019
_SEARCH_SECONDS = 0.00055
_SEARCH_GROWTH = 0.48


@dataclass(frozen=True)
class PhaseCost:
    """Estimated time of one phase: number of units times seconds per unit."""

    phase: str
    unit: str
    units: int
    seconds_per_unit: float

    @property
    def seconds(self) -> float:
        """Return the seconds of the phase."""
        return self.units * self.seconds_per_unit


@dataclass(frozen=True)
class Plan:
    """Estimated costs of a build.

    source     name of the collection
    sampled    number of documents of the source that were read
    shape      shape of the collection, estimated unless all of it was read
    processes  number of processes for the analysis
    budget     memory limit in bytes
    phases     times of the phases, in order
    memory     peak memory of each phase in bytes, of all processes together
    disk       bytes of the index, by kind
    unread     files of the source folder that are not read
    passages   shape of the passages, which have phases, memory and disk of their own; None if
               documents are not divided
    """

    source: str
    sampled: int
    shape: Shape
    processes: int
    budget: int
    phases: tuple[PhaseCost, ...]
    memory: Mapping[str, int]
    disk: Mapping[str, int]
    unread: Unread = field(default_factory=Unread)
    passages: Shape | None = None

    @property
    def seconds(self) -> float:
        """Return the seconds of the build."""
        return sum(phase.seconds for phase in self.phases)

    @property
    def peak_memory(self) -> int:
        """Return the peak memory in bytes."""
        return max(self.memory.values())

    @property
    def size(self) -> int:
        """Return the size of the index in bytes."""
        return sum(self.disk.values())

    @property
    def serving_memory(self) -> int:
        """Return the bytes of memory of a service of one process that reads no file twice."""
        return SERVING_PROCESS + self.size

    @property
    def searches_per_second(self) -> int:
        """Return the expected searches per second over HTTP, of all processors.

        Processors like those of `docs/guides/capacity-planning.md`, at most 70% busy so that p99
        stays below 50 ms, and the default ranking.
        """
        search = _SEARCH_SECONDS * math.pow(self.shape.documents / 1e6, _SEARCH_GROWTH)
        return int(0.7 * self.processes / (_REQUEST_SECONDS + search))

    @property
    def fits(self) -> bool:
        """Return whether the peak memory is within the limit, so that the build would start."""
        return self.peak_memory <= self.budget

    def as_json(self) -> dict[str, Any]:
        """Return all values and sums as JSON."""
        phases = [{**asdict(phase), "seconds": phase.seconds} for phase in self.phases]
        sums = {
            "seconds": self.seconds,
            "peak_memory": self.peak_memory,
            "bytes": self.size,
            "serving_memory": self.serving_memory,
            "searches_per_second": self.searches_per_second,
        }
        unread = self.unread.as_json()
        return {**asdict(self), "phases": phases, "unread": unread, **sums, "fits": self.fits}


def plan(
    source: str | Path | Collection,
    *,
    memory: str | int | None = None,
    preset: str = "default",
    **options: Unpack[BuildOptions],
) -> Plan:
    """Return the estimated costs of `build` with the same arguments; builds nothing.

    Cost: some seconds, to read the first documents and to time each phase on them. Raise
    CollectionError, SettingsError.

    >>> costs = plan("reports.jsonl", memory="1GiB")
    >>> costs.fits
    True
    >>> costs
    Plan(source='reports.jsonl', sampled=6, shape=Shape(documents=6, ...
    >>> costs.phases[0]
    PhaseCost(phase='documents', ...)
    """
    reading, settings = split_options(options)
    chosen = Settings.of_preset(preset, **with_trusted_tokenizer(settings))
    budget = memory_budget(memory)
    if not isinstance(source, Collection):
        source = open_collection(source, **reading)
    sample = survey(source, chosen, most=_SAMPLE)
    planned = _planned(source.name, sample, chosen, budget)
    unread = source.unread if isinstance(source, OpenedCollection) else Unread()
    return replace(planned, sampled=sample.sampled.documents, unread=unread)


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
    words      mean number of words of a document, stop words included
    Sizes are those of English news of that size: see `shape_of_size`. Each phase is timed on this
    machine on texts of the Python documentation. Cost: some seconds. Raise SettingsError.

    >>> costs = plan_of_size(100_000, 80)
    >>> costs.shape.documents
    100000
    """
    for name, value in (("documents", documents), ("words", words)):
        if value < 1:
            raise SettingsError(f"{name} = {value}: give a number above 0", field=name)
    texts = open_collection(PYTHON_DOCS).documents()
    running = [word for document in texts for word in document.text.split()]
    number = max(1, min(documents, len(running) // words))
    few = [
        {"id": str(place), "text": " ".join(running[place * words : (place + 1) * words])}
        for place in range(number)
    ]
    reading, settings = split_options(options)
    chosen = Settings.of_preset(preset, **with_trusted_tokenizer(settings))
    sample = survey(open_collection(few, **reading), chosen, most=_SAMPLE)
    passages = sample.passages
    if passages is not None:
        share = passages.sampled.documents / number
        shape = shape_of_size(round(documents * share), max(1, round(words / share)))
        passages = replace(passages, shape=shape)
    sample = replace(sample, shape=shape_of_size(documents, words), passages=passages)
    source = f"{documents:,} documents of {words:,} words"
    return _planned(source, sample, chosen, memory_budget(memory))


def _planned(source: str, sample: Survey, settings: Settings, budget: int) -> Plan:
    """Return the plan of a survey."""
    processes, passages = processors(), sample.passages
    disk = disk_needed(sample.shape, settings)
    memory = memory_needed(sample.shape, settings, memory=budget, processes=processes)
    if passages is not None:
        disk["passages"] = sum(disk_needed(passages.shape, settings).values())
        needed = memory_needed(passages.shape, settings, memory=budget, processes=processes)
        memory |= {progress.passage_phase(phase): size for phase, size in needed.items()}
    phases = list(_costs(sample, settings, sum(disk.values()), processes))
    if passages is not None:  # before the files, which are hashed once
        phases[-1:-1] = [
            replace(cost, phase=progress.passage_phase(cost.phase))
            for cost in _costs(passages, settings, 0, processes)[:-1]
        ]
    return Plan(
        source=source,
        sampled=0,
        shape=sample.shape,
        processes=processes,
        budget=budget,
        phases=tuple(phases),
        memory=memory,
        disk=disk,
        passages=None if passages is None else passages.shape,
    )


def _costs(
    sample: Survey, settings: Settings, written: int, processes: int
) -> tuple[PhaseCost, ...]:
    """Return the times of all phases, measured on the sample."""
    shape, sampled = sample.shape, sample.sampled
    if not sampled.non_zeros:
        return ()
    work = sample.reading_seconds + sample.storing_seconds
    if processes > 1:
        work = max(sample.reading_seconds, work * _WORKER_OVERHEAD / processes)
    counts = _first(sample.counts, _SOLVER_SAMPLE)
    kernel, weighing = _timed(lambda: _kernel(counts, settings))
    wanted = solved_dimensions(shape.documents, settings)
    spectrum, solving = _timed(lambda: decompose(kernel, wanted, seed=settings.seed))
    scattered = max(shape.documents / len(kernel), 1.0) ** _RANDOM_ACCESS
    content = bytes(_HASHED)
    _, hashing = _timed(lambda: hashlib.sha256(content).digest())
    costs = [
        PhaseCost(progress.DOCUMENTS, "documents", shape.documents, work / sampled.documents),
        PhaseCost(
            progress.COUNTS, "tokens", shape.tokens, sample.counting_seconds / sampled.tokens
        ),
        PhaseCost(
            progress.POSTINGS,
            "non-zeros",
            shape.non_zeros,
            scattered * _each(weighing, counts.matrix.nnz),
        ),
        PhaseCost(
            progress.EIGENVECTORS,
            "features",
            shape.features,
            _each(solving, kernel.features.nnz),
        ),
        PhaseCost(progress.FILES, "bytes", written, hashing / _HASHED),
    ]
    queries = np.linspace(0, len(kernel) - 1, _NEIGHBOUR_SAMPLE).astype(np.int64)
    queries = np.unique(queries)
    rows, searching = _timed(lambda: nearest_rows(kernel, ENTRIES + 1, documents=queries))
    dimensions = min(wanted, settings.latent_dimensions)
    latent = LatentSpace.of(kernel, spectrum, dimensions, np.ones(counts.matrix.shape[1]))
    _, packing = _timed(lambda: SparseExpansion.of(kernel, rows, latent))
    of_feature = scattered * _each(packing, kernel.features.nnz)
    if stores_rows(shape.documents, settings):
        function = settings.spectral, settings.gamma, settings.head
        _, expanding = _timed(lambda: expansion_rows(kernel, spectrum, *function))
        entries = (shape.documents / len(kernel)) ** 2
        of_feature += _each(expanding * entries, shape.features)
    costs[-1:-1] = [
        PhaseCost(
            progress.NEIGHBOURS, "documents", shape.documents, scattered * searching / len(queries)
        ),
        PhaseCost(progress.EXPANSION, "features", shape.features, of_feature),
    ]
    return tuple(costs)


def _kernel(counts: TermCounts, settings: Settings) -> DocumentKernel:
    postings_of(counts, settings)
    return document_kernel(counts, settings)


def _first(counts: TermCounts, documents: int) -> TermCounts:
    return replace(counts, matrix=counts.matrix[:documents], pairs=counts.pairs[:documents])


def _each(seconds: float, number: int) -> float:
    """Return seconds for one; 0 if there is none: identical documents have no features."""
    return seconds / number if number else 0.0


def _timed(work: Callable[[], T]) -> tuple[T, float]:
    started = time.perf_counter()
    result = work()
    return result, time.perf_counter() - started
