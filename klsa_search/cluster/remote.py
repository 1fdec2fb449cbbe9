"""An index whose partitions are in other processes: their versions, searches and documents."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Concatenate, Final, ParamSpec, Protocol, TypeVar
from uuid import uuid4

from klsa_search.cluster.calls import Call, Replicas, Responses, call_all, current_tally, missing
from klsa_search.cluster.host import (
    REQUEST_ERRORS,
    HostedSearch,
    PublishedStatistics,
    Version,
    VersionNotPrepared,
)
from klsa_search.core.lazy import lazy_property
from klsa_search.errors import IndexNotFound, StoreError
from klsa_search.search.batches import WriteResult
from klsa_search.search.engine.collection_statistics import CollectionStatistics
from klsa_search.search.engine.evidence import Answers
from klsa_search.search.filters.masks import FilterLike, key_of
from klsa_search.search.index import Index
from klsa_search.search.models import NO_MODELS, Models
from klsa_search.search.parts.generation import OpenGeneration
from klsa_search.search.parts.open_parts import OpenParts
from klsa_search.search.parts.part_search import PartPage, PartPlan, PartRequest, PartSearch, Seeds
from klsa_search.search.parts.part_set import IndexFacts, LocalParts, PartSearches, PartSet
from klsa_search.search.parts.reader import Reader
from klsa_search.search.parts.reading import field_types, info
from klsa_search.search.query.query import estimated_tokens
from klsa_search.search.state.state import GenerationInfo, State
from klsa_search.storage.columns.columns import Field, Fields
from klsa_search.storage.partitions import CollectionTerms, open_collection_terms
from klsa_search.storage.write_log import LogPosition, WriteLog

P = ParamSpec("P")
T = TypeVar("T")

WRITER: Final = 0
"""The replica that writes, so that the log of a partition has one writer."""

WRITE_TIMEOUT: Final = 600.0
"""Seconds after which a write, or the change to another version, counts as failed."""

_UNKNOWN: Final = LogPosition(-1)  # of no log
_ATTEMPTS: Final = 5  # to read all partitions between two writes
_turn = count()
_CHANGED: Final = "its documents have changed since the search began"


class Cluster(Protocol):
    """Starts processes that serve partitions."""

    def replicas(self, generations: Sequence[Path], tokenizer: str | None) -> Replicas:
        """Return the replicas of partitions when they are ready; they end with the object."""


def open_cluster_index(path: Path, cluster: Cluster, models: Models = NO_MODELS) -> Index:
    """Open the index in a folder, with its partitions in other processes, when these are ready.

    Results are the same. This process reads only the file that names the partitions, merges, and
    passes documents on; the processes of the partitions write their logs.
    """

    def open_group(facts: IndexFacts) -> RemotePartitions:
        if facts.terms is None:
            raise IndexNotFound(
                f"`{path}` has no partitions; open it again without the cluster, or divide it"
            )
        tokenizer = facts.configuration.settings.tokenizer
        return RemotePartitions(cluster.replicas(facts.generations, tokenizer))

    return Index(Reader(OpenParts(path, open_group), models=models))


def _digest(*facts: object) -> str:
    """Return the name of a version from what makes it."""
    return hashlib.sha256(repr(facts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


class RemotePartitions:
    """The hosts of the partitions of one build of an index: see `host.PartitionHost`.

    It is a `search.parts.open_parts.PartGroup`.
    """

    def __init__(self, replicas: Replicas) -> None:
        self._replicas = replicas
        self._published: dict[int, PublishedStatistics] = {}
        self._positions: Mapping[int, LogPosition] = {}  # that were seen last
        self._unpublished: set[int] = set()  # written since they published

    @property
    def count(self) -> int:
        """Return the number of partitions."""
        return self._replicas.partitions

    def refresh(self) -> bool:
        """Read the logs of all partitions; return whether any was written since."""
        answers = self._call([("refresh",)] * self.count, WRITER, alone=True)
        if answers.failed:
            raise missing(answers.failed, self.count)
        before, self._positions = self._positions, answers.values
        return answers.values != before

    def state(self, facts: IndexFacts) -> RemoteParts:
        """Prepare all partitions for their last writes; return this state. Cost: O(V).

        If a partition does not answer, the others use the statistics that it published before, and
        the version lacks it if it was written since. PartitionMissing if it never published.
        """
        for _ in range(_ATTEMPTS):
            version, failed = self._published_version(facts)
            prepared = self.prepare(version, set(range(self.count)) - failed.keys())
            if all(number in prepared or number in failed for number in range(self.count)):
                self._positions = dict(enumerate(version.positions))
                facts = facts.after(version.positions, version.statistics.documents)
                return RemoteParts.of(self, version, facts)
        raise StoreError(
            "cannot read the partitions in one state: they are written faster than they are read, "
            "or restart; try again"
        )

    def _published_version(self, facts: IndexFacts) -> tuple[Version, dict[int, str]]:
        answers = self._call([("publish",)] * self.count, WRITER, alone=True)
        self._published |= answers.values
        self._unpublished -= answers.values.keys()
        unknown = {
            number: why for number, why in answers.failed.items() if number not in self._published
        }
        current_tally().add(self.count, unknown)
        if unknown:
            raise missing(unknown, self.count)
        published = [self._published[number] for number in range(self.count)]
        # Replicas that have not read the last write must not answer as if there were none.
        positions = tuple(
            _UNKNOWN if number in self._unpublished else partition.position
            for number, partition in enumerate(published)
        )
        # Folders in the index, which may have another path on each machine.
        folders = [generation.parts[-2:] for generation in facts.generations]
        name = _digest(folders, positions, facts.configuration)
        statistics = CollectionStatistics.of(
            [partition.statistics for partition in published], facts.lengths
        )
        return Version(name, positions, statistics, facts.configuration), answers.failed

    def restricted(self, version: Version, filter_: FilterLike) -> Version:
        """Return a version of the documents that match a filter; PartitionMissing.

        Hosts make it when they are first called for it.
        """
        calls = [("visible", version.name, filter_)] * self.count
        answers = self.read(version, calls, next(_turn))
        if answers.failed:
            raise missing(answers.failed, self.count)
        statistics = CollectionStatistics.of([answers.values[n] for n in range(self.count)])
        name = _digest(version.name, key_of(filter_))
        return version._replace(name=name, statistics=statistics, restricts=(version, filter_))

    def prepare(self, version: Version, numbers: set[int]) -> set[int]:
        """Prepare all replicas of some partitions; return the partitions of which one is ready."""
        calls = [("prepare", version, n) if n in numbers else None for n in range(self.count)]
        prepared: set[int] = set()
        for replica in range(self._replicas.replicas):
            answers = self._call(calls, replica, alone=True)
            prepared |= {number for number, is_made in answers.values.items() if is_made}
        return prepared

    def read(self, version: Version, calls: Sequence[Call | None], first: int) -> Responses:
        """Return the answers to calls in a version; a host that was restarted is prepared again."""
        answers = self._call(calls, first)
        stale = {n for n, value in answers.values.items() if isinstance(value, VersionNotPrepared)}
        if not stale:
            return answers
        prepared = self.prepare(version, stale)
        again = [call if n in prepared else None for n, call in enumerate(calls)]
        repeated = self._call(again, first)
        values, failed = answers.values | repeated.values, answers.failed | repeated.failed
        for number in stale:
            if isinstance(values[number], VersionNotPrepared):
                del values[number]
                failed.setdefault(number, _CHANGED)
        return Responses(values, failed)

    def write(
        self,
        number: int,
        function: Callable[Concatenate[OpenGeneration, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Return the result of a method of a partition."""
        calls = self.calls_to(number, ("write", function, args, kwargs))
        result: T = self.answer_of(self._call(calls, WRITER, alone=True), number)
        if isinstance(result, WriteResult):
            self._unpublished.add(number)
        return result

    def calls_to(self, partition: int, call: Call) -> list[Call | None]:
        """Return calls of all partitions, of which one is called."""
        return [call if number == partition else None for number in range(self.count)]

    def answer_of(self, answers: Responses, partition: int) -> Any:
        """Return the answer of a partition; PartitionMissing if there is none."""
        if partition in answers.failed:
            raise missing(answers.failed, self.count)
        return answers.values[partition]

    def _call(
        self, calls: Sequence[Call | None], replica: int, *, alone: bool = False
    ) -> Responses:
        """Return the answers of partitions; raise the error of the first that refuses.

        alone  call no other replica, and wait as long as a write may take
        """
        timeout = WRITE_TIMEOUT if alone else None
        first = replica % self._replicas.replicas
        answers = call_all(self._replicas, calls, first=first, alone=alone, timeout=timeout)
        for answer in answers.values.values():
            if isinstance(answer, REQUEST_ERRORS):
                raise answer
        return answers


class RemotePart:
    """A partition of a version in another process: see `search.parts.part_set.Part`.

    number  of the partition
    """

    def __init__(self, partitions: RemotePartitions, version: Version, number: int) -> None:
        self._partitions, self._version, self.number = partitions, version, number

    @lazy_property
    def info(self) -> GenerationInfo:
        """Return the facts about it."""
        return self.read(info)

    def read(
        self, function: Callable[Concatenate[State, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Return the result of a function of a module for the state."""
        call = "read", self._version.name, function, args, kwargs
        answers = self._partitions.read(
            self._version, self._partitions.calls_to(self.number, call), next(_turn)
        )
        result: T = self._partitions.answer_of(answers, self.number)
        return result


class RemoteSearches(PartSearches):
    """One search in all partitions of a version: see `search.parts.part_set.PartSearches`.

    All rounds call the same replicas first, which keep the search; others begin it again.
    """

    def __init__(
        self, parts: Sequence[RemotePart], partitions: RemotePartitions, version: Version
    ) -> None:
        super().__init__(parts, {})
        self._partitions, self._version = partitions, version
        self._name, self._first = uuid4().hex, next(_turn)
        self._begun = 0
        self._hosted: dict[int, HostedSearch] = {}  # by number of the partition
        self._failed: dict[int, str] = {}

    def begin(self, requests: Sequence[PartRequest | None]) -> Sequence[PartPlan | None]:
        """Plan the search in each partition, and find its best documents."""
        self._begun += 1
        for number, request in enumerate(requests):
            if request is not None:
                # The two cannot always be pickled.
                evidence = dict(request.evidence or {})
                query = request.query.model_copy(update={"count_tokens": estimated_tokens})
                partition_request = request._replace(query=query, evidence=evidence)
                name = f"{self._name}-{self._begun}"
                self._hosted[number] = HostedSearch(self._version.name, name, partition_request)
        begun = {n: () for n, request in enumerate(requests) if request is not None}
        return self._round(PartSearch.begin, begun)

    def collect(self, shared: Sequence[Seeds], answers: Answers) -> Sequence[PartPage | None]:
        """Return the first documents of each partition."""
        for number, seeds in enumerate(shared):
            self._hosted[number] = self._hosted[number]._replace(ranking=(seeds, answers))
        return super().collect(shared, answers)

    def _round(
        self, step: Callable[..., T], arguments: Mapping[int, tuple[object, ...]]
    ) -> list[T | None]:
        calls: list[Call | None] = [None] * self.count
        for number in arguments.keys() - self._failed.keys():
            calls[number] = ("step", self._hosted[number], step, *arguments[number])
        answers = self._partitions.read(self._version, calls, self._first)
        self._failed |= answers.failed
        current_tally().add(self.count, answers.failed)
        return [answers.values.get(number) for number in range(self.count)]


def _written(generation: Path, terms: CollectionTerms, last: LogPosition) -> OpenGeneration:
    """Open a partition in this process, as it was after a write; StoreError."""
    if last == _UNKNOWN:
        return OpenGeneration(generation, terms)
    if WriteLog(generation).last() < last:
        raise StoreError(
            f"`{generation}` lacks writes that the cluster has already read; try again in a moment"
        )
    return OpenGeneration(generation, terms, last)


@dataclass(frozen=True, eq=False)
class RemoteParts(PartSet):
    """The partitions of an index in a version, in other processes.

    unrestricted  those that these are a restriction of
    """

    parts: Sequence[RemotePart]
    partitions: RemotePartitions
    version: Version
    unrestricted: RemoteParts | None = None

    @classmethod
    def of(
        cls,
        partitions: RemotePartitions,
        version: Version,
        facts: IndexFacts,
        unrestricted: RemoteParts | None = None,
    ) -> RemoteParts:
        """Return all partitions in a version."""
        parts = [RemotePart(partitions, version, n) for n in range(partitions.count)]
        return cls(facts, parts, partitions, version, unrestricted)

    @lazy_property
    def local(self) -> LocalParts:
        """The same parts in this process; StoreError if its files lack writes that hosts have.

        Cost: opening the index.
        """
        if self.unrestricted is not None and self.version.restricts is not None:
            _, filter_ = self.version.restricts
            return self.unrestricted.local.restricted(filter_)
        facts, version = self.facts, self.version
        assert facts.terms is not None
        terms = open_collection_terms(facts.terms[0])
        parts = [
            _written(facts.generations[part.number], terms, version.positions[part.number])
            for part in self.parts
        ]
        states = [part.configure(version.configuration, version.statistics) for part in parts]
        return LocalParts(facts, states)

    @lazy_property
    def fields(self) -> Fields:
        """The metadata fields that are columns, without values."""
        types, unfilterable = self.parts[0].read(field_types)
        return Fields(
            {name: Field(name, type_, ()) for name, type_ in types.items()}, unfilterable, 0
        )

    def searches(self) -> RemoteSearches:
        """Return a new search of all parts."""
        return RemoteSearches(self.parts, self.partitions, self.version)

    def restricted(self, filter_: FilterLike) -> RemoteParts:
        """Return the parts with the documents that match a filter; PartitionMissing."""
        version = self.partitions.restricted(self.version, filter_)
        facts = self.facts._replace(documents=version.statistics.documents)
        return RemoteParts.of(self.partitions, version, facts, self)
