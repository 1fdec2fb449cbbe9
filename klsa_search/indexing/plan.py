"""Plan a build: estimate its memory, time and disk, and what serves its index."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Unpack

from klsa_search.analysis.tokenizers import with_trusted_tokenizer
from klsa_search.collection.model import Collection, Unread
from klsa_search.collection.opened_collection import OpenedCollection
from klsa_search.collection.opening import open_collection
from klsa_search.core.config import Settings
from klsa_search.core.parallel import processors
from klsa_search.errors import SettingsError
from klsa_search.indexing.build import BuildOptions, split_options
from klsa_search.indexing.checks import memory_budget
from klsa_search.indexing.estimate import (
    Size,
    disk_needed,
    memory_needed,
    processor_seconds_needed,
    size_of,
)

_BYTES_OF_WORD = 6  # of English, with the blank


SERVING_PROCESS = 300 * 2**20
"""Bytes of a process that serves, without the files of indexes: it has the engine."""

# Processor time of a request over HTTP, and of a search of a million documents, which grows with
# this power of the documents: `results/service.json` and `results/growth.json`.
_REQUEST_SECONDS = 0.0019
_SEARCH_SECONDS = 0.00055
_SEARCH_GROWTH = 0.48


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
    reading, settings = split_options(options)
    chosen = Settings.of_preset(preset, **with_trusted_tokenizer(settings))
    if not isinstance(source, Collection):
        source = open_collection(source, **reading)
    size = size_of(source, chosen)
    unread = source.unread if isinstance(source, OpenedCollection) else Unread()
    return _planned(source.name, size, chosen, memory_budget(memory), unread)


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
    _, settings = split_options(options)
    chosen = Settings.of_preset(preset, **with_trusted_tokenizer(settings))
    passages = 0
    if chosen.passage_words is not None and words > chosen.passage_words:
        passages = documents * -(-words // chosen.passage_words)
    size = Size(documents, documents * words * _BYTES_OF_WORD, 0, passages)
    source = f"{documents:,} documents of {words:,} words"
    return _planned(source, size, chosen, memory_budget(memory), Unread())


def _planned(source: str, size: Size, settings: Settings, budget: int, unread: Unread) -> Plan:
    return Plan(
        source=source,
        size=size,
        processes=processors(),
        budget=budget,
        seconds=processor_seconds_needed(size),
        peak_memory=memory_needed(size, settings),
        disk=disk_needed(size, settings),
        unread=unread,
    )
