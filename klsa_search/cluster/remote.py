"""The partitions of an index in other processes: their versions, searches and documents."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import partial
from inspect import getattr_static
from itertools import count
from pathlib import Path
from typing import Any, Final, NamedTuple
from uuid import uuid4

from klsa_search.cluster.calls import Answers, Call, Replicas, call_all, current_tally, missing
from klsa_search.cluster.host import (
    Preparation,
    Published,
    Refused,
    Restriction,
    Uncollected,
    Unprepared,
)
from klsa_search.collection.model import Document
from klsa_search.core.build_settings import FieldType
from klsa_search.errors import StoreError
from klsa_search.search.engine.collection_statistics import CollectionStatistics
from klsa_search.search.engine.shared_seeds import SharedSeeds
from klsa_search.search.explain.explanation import Explanation
from klsa_search.search.filters.conditions import And
from klsa_search.search.filters.masks import FilterLike, filter_of, key_of
from klsa_search.search.pages.budget import estimated_tokens
from klsa_search.search.parts.generation_reader import GenerationReader
from klsa_search.search.parts.opened_partitions import PartitionFiles
from klsa_search.search.parts.part_search import (
    PartHits,
    PartPage,
    PartPlan,
    PartRequest,
)
from klsa_search.search.query.evidence import Answers as EvidenceAnswers
from klsa_search.search.query.evidence import Question
from klsa_search.search.writing import Changes, WriteResult
from klsa_search.storage.log import LogPosition

WRITER: Final = 0
"""The replica that writes, so that the log of a partition has one writer."""

WRITE_TIMEOUT: Final = 600.0
"""Seconds after which a write, or the change to another version, counts as failed."""

_UNKNOWN: Final = LogPosition(-1)  # of no log
_ATTEMPTS: Final = 5  # to read all partitions between two writes
_turn = count()
_CHANGED: Final = "its documents have changed since the search began"


class Version(NamedTuple):
    """A state of all partitions, whose statistics weigh the words of each.

    name          digest of the writes of all partitions
    preparations  what makes the version in each partition
    restrictions  what makes it, if it has some of the documents only
    """

    name: str
    preparations: tuple[Preparation, ...]
    restrictions: tuple[Restriction, ...] = ()


class RemotePartitions:
    """The hosts of the partitions of an index: see `host.PartitionHost`."""

    def __init__(self, replicas: Replicas) -> None:
        self._replicas = replicas
        self._published: dict[int, Published] = {}
        self._refreshed: dict[int, LogPosition] = {}  # since the last version
        self._unpublished: set[int] = set()  # written since they published

    @property
    def count(self) -> int:
        """Return the number of partitions."""
        return self._replicas.partitions

    def refresh(self, partition: int) -> bool:
        """Read the log of a partition; return whether it was written since."""
        before = self._refreshed.get(partition, self._published[partition].position)
        self._refreshed[partition] = self._write(partition, "refresh")
        return bool(self._refreshed[partition] != before)

    def weigh(self, files: PartitionFiles) -> Version:
        """Prepare all partitions for their last writes; return the version. Cost: O(V).

        If a partition does not answer, the others use the statistics that it published before, and
        the version lacks it if it was written since. PartitionMissing if it never published.
        """
        self._refreshed.clear()
        for _ in range(_ATTEMPTS):
            version, failed = self._published_version(files)
            prepared = self.prepare(version, set(range(self.count)) - failed.keys())
            if all(number in prepared or number in failed for number in range(self.count)):
                return version
        raise StoreError(
            "cannot read the partitions in one state: they are written faster than they are read, "
            "or restart; try again"
        )

    def _published_version(self, files: PartitionFiles) -> tuple[Version, dict[int, str]]:
        calls = [("publish",)] * self.count
        answers = self._call(calls, WRITER, alone=True)
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
        positions = [
            _UNKNOWN if number in self._unpublished else partition.position
            for number, partition in enumerate(published)
        ]
        facts = (files.partition_set.folders, positions, files.configuration)
        name = hashlib.sha256(repr(facts).encode("utf-8", "surrogatepass")).hexdigest()[:32]
        statistics = CollectionStatistics.of(
            [partition.statistics for partition in published], files.partition_set.length
        )
        preparations = tuple(
            Preparation(name, position, statistics, files.configuration) for position in positions
        )
        return Version(name, preparations), answers.failed

    def restricted(self, version: Version, filter_: FilterLike) -> Version:
        """Return a version of the documents that match a filter; PartitionMissing.

        Hosts make it when they are first called for it.
        """
        calls = [("visible", version.name, filter_)] * self.count
        answers = self.read(version, calls, next(_turn))
        if answers.failed:
            raise missing(answers.failed, self.count)
        statistics = CollectionStatistics.of([answers.values[n] for n in range(self.count)], 1.0)
        facts = repr((version.name, key_of(filter_)))
        name = hashlib.sha256(facts.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        if version.restrictions:
            filter_ = And((filter_of(version.restrictions[0].filter), filter_of(filter_)))
        restrictions = tuple(
            Restriction(name, preparation, filter_, statistics)
            for preparation in version.preparations
        )
        return Version(name, version.preparations, restrictions)

    def prepare(self, version: Version, numbers: set[int]) -> set[int]:
        """Prepare all replicas of some partitions; return the partitions of which one is ready."""
        steps: list[Call] = [("prepare", preparation) for preparation in version.preparations]
        if version.restrictions:
            steps = [("restrict", restriction) for restriction in version.restrictions]
        calls = [step if number in numbers else None for number, step in enumerate(steps)]
        prepared: set[int] = set()
        for replica in range(self._replicas.replicas):
            answers = self._call(calls, replica, alone=True)
            prepared |= {number for number, is_made in answers.values.items() if is_made}
        return prepared

    def read(self, version: Version, calls: Sequence[Call | None], first: int) -> Answers:
        """Return the answers to calls in a version; a host that was restarted is prepared again."""
        answers = self._call(calls, first)
        stale = {n for n, answer in answers.values.items() if isinstance(answer, Unprepared)}
        if not stale:
            return answers
        prepared = self.prepare(version, stale)
        again = [call if n in prepared else None for n, call in enumerate(calls)]
        repeated = self._call(again, first)
        answered = {
            n: answer for n, answer in answers.values.items() if n not in stale
        } | repeated.values
        failed = answers.failed | repeated.failed
        for number in stale:
            if isinstance(answered.get(number, Unprepared("")), Unprepared):
                answered.pop(number, None)
                failed.setdefault(number, _CHANGED)
        return Answers(answered, failed)

    def use(
        self, version: Version | None, partition: int, name: str,
        arguments: Sequence[Any] | None, keywords: Mapping[str, Any],
    ) -> Any:  # fmt: skip
        """Return an attribute of a partition, or the result of a method: see `host.use`."""
        if version is None:
            return self._write(partition, "use", None, name, arguments, keywords)
        call = ("use", version.name, name, arguments, keywords)
        answers = self.read(version, self._only(partition, call), next(_turn))
        return self._one(answers, partition)

    def write(self, partition: int, *call: Any) -> WriteResult:
        """Return the result of a call that writes to a partition."""
        result: WriteResult = self._write(partition, "write", *call)
        self._unpublished.add(partition)
        return result

    def check(self, partition: int, puts: Sequence[Document]) -> None:
        """Raise the error with which a partition would refuse documents."""
        self._write(partition, "write", "check", puts)

    def _write(self, partition: int, *call: Any) -> Any:
        answers = self._call(self._only(partition, call), WRITER, alone=True)
        return self._one(answers, partition)

    def _only(self, partition: int, call: Call) -> list[Call | None]:
        return [call if number == partition else None for number in range(self.count)]

    def _one(self, answers: Answers, partition: int) -> Any:
        if partition in answers.failed:
            raise missing(answers.failed, self.count)
        return answers.values[partition]

    def _call(self, calls: Sequence[Call | None], replica: int, *, alone: bool = False) -> Answers:
        """Return the answers of partitions; raise the error of the first that refuses.

        alone  call no other replica, and wait as long as a write may take
        """
        timeout = WRITE_TIMEOUT if alone else None
        first = replica % self._replicas.replicas
        answers = call_all(self._replicas, calls, first=first, alone=alone, timeout=timeout)
        for answer in answers.values.values():
            if isinstance(answer, Refused):
                raise answer.error
        return answers


class RemoteSearches:
    """One search in all partitions of a version: see `search.parts.part_search.PartSearches`.

    All rounds call the same replicas first, which keep the search; others begin it again.
    """

    def __init__(self, partitions: RemotePartitions, version: Version) -> None:
        self._partitions, self._version = partitions, version
        self._first, self._name = next(_turn), uuid4().hex
        self._begun = 0
        self._begins: list[tuple[str, PartRequest] | None] = [None] * partitions.count
        self._rankings: Sequence[tuple[SharedSeeds | None, EvidenceAnswers]] = ()
        self._failed: dict[int, str] = {}
        self.answers: dict[Question, Any] = {}

    alone = None

    @property
    def count(self) -> int:
        """Return the number of partitions."""
        return self._partitions.count

    @property
    def sizes(self) -> list[int]:
        """Return the numbers of doc ids of the partitions."""
        numbers = range(self.count)
        return [self._partitions.use(self._version, n, "max_doc", None, {}) for n in numbers]

    def begin(self, requests: Sequence[PartRequest | None]) -> list[PartPlan | None]:
        """Plan the search in each partition, and find its best documents."""
        self._begun += 1
        for number, request in enumerate(requests):
            if request is not None:
                # The two cannot always be pickled.
                evidence = dict(request.evidence or {})
                query = request.query.model_copy(update={"count_tokens": estimated_tokens})
                partition_request = request._replace(query=query, evidence=evidence)
                self._begins[number] = f"{self._name}-{self._begun}", partition_request
        return self._round("begin", [None if request is None else () for request in requests])

    def collect(
        self, shared: Sequence[SharedSeeds | None], answers: EvidenceAnswers
    ) -> list[PartPage | None]:
        """Return the first documents of each partition, ranked by the seeds of all."""
        self._rankings = [(seeds, dict(answers)) for seeds in shared]
        return self._round("collect", self._rankings)

    def fetch(self, places: Sequence[Sequence[int] | None]) -> list[PartHits | None]:
        """Return the hits at some places of the pages."""
        hits = self._round(
            "fetch", [(page_places,) if page_places else None for page_places in places]
        )
        again = [
            (page_places, ranking) if isinstance(part, Uncollected) else None
            for part, page_places, ranking in zip(hits, places, self._rankings, strict=True)
        ]
        if not any(again):
            return hits
        repeated = self._round("fetch", again)
        return [
            after if isinstance(before, Uncollected) else before
            for before, after in zip(hits, repeated, strict=True)
        ]

    def explain(
        self, partition: int, id_: str, shared: SharedSeeds | None, answers: EvidenceAnswers
    ) -> Explanation:
        """Return the explanation of the score of a document of a partition; DocumentNotFound."""
        call = id_, shared, dict(answers)
        calls = [call if n == partition else None for n in range(self.count)]
        explanation: Explanation | None = self._round("explain", calls)[partition]
        if explanation is None:
            raise missing(self._failed, self.count)
        return explanation

    def _round(self, method: str, arguments: Sequence[Call | None]) -> list[Any]:
        """Return the answers by partition; None for those that failed, or are not called."""
        calls: list[Call | None] = []
        for number, (argument, begun) in enumerate(zip(arguments, self._begins, strict=True)):
            if argument is None or begun is None or number in self._failed:
                calls.append(None)
            else:
                calls.append((method, self._version.name, *begun, *argument))
        answers = self._partitions.read(self._version, calls, self._first)
        self._failed |= answers.failed
        current_tally().add(self.count, answers.failed)
        return [answers.values.get(number) for number in range(self.count)]


class RemoteField(NamedTuple):
    """A metadata field, without its values."""

    type: FieldType


class RemotePartition:
    """A partition in another process, with the methods of readers whose results can be sent.

    version  in which it is read; None for the present state, which is written to
    """

    def __init__(
        self, partitions: RemotePartitions, number: int, path: Path, version: Version | None = None
    ) -> None:
        self.partitions, self.path, self.version = partitions, path, version
        self._number = number
        self._attributes: dict[str, Any] = {}

    @property
    def name(self) -> str:
        """Return the name of the folder."""
        return self.path.parent.name

    @property
    def fields(self) -> dict[str, RemoteField]:
        """Return the metadata fields, without their values."""
        return {name: RemoteField(kind) for name, kind in self.field_types.items()}

    def in_version(self, version: Version) -> RemotePartition:
        """Return a read-only view of a version."""
        return RemotePartition(self.partitions, self._number, self.path, version)

    def refresh(self) -> bool:
        """Read the log; return whether it was written."""
        return self.partitions.refresh(self._number)

    def check(self, puts: Sequence[Document]) -> None:
        """Raise the error with which `write` would refuse documents."""
        self.partitions.check(self._number, puts)

    def write(self, puts: Sequence[Document], deletes: Sequence[str]) -> WriteResult:
        """Write a batch: see `GenerationWriter.write`."""
        return self.partitions.write(self._number, "write", puts, deletes)

    def patch(self, changes: Sequence[Changes], embedded: Mapping[str, Document]) -> WriteResult:
        """Merge changes into documents: see `GenerationWriter.patch`."""
        return self.partitions.write(self._number, "patch", changes, embedded)

    def state(self) -> Any:
        """Raise StoreError: the state is in another process."""
        raise StoreError(
            f"partition `{self.name}` is served by a cluster, which does not support this; use the "
            "index on its own machine, without the cluster"
        )

    def close(self) -> None:
        """Do nothing: the process ends with the index."""

    def __len__(self) -> int:
        """Return the number of live documents."""
        return int(self._attribute("__len__", ()))

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the partition, or a function that calls its method."""
        member = getattr_static(GenerationReader, name, None)
        if name.startswith("_") or member is None:
            raise AttributeError(name)
        if isinstance(member, property):
            return self._attribute(name, None)
        return partial(self._method, name)

    def _method(self, name: str, *arguments: Any, **keywords: Any) -> Any:
        return self.partitions.use(self.version, self._number, name, arguments, keywords)

    def _attribute(self, name: str, arguments: Sequence[Any] | None) -> Any:
        if self.version is None:  # it changes with every write
            return self.partitions.use(None, self._number, name, arguments, {})
        if name not in self._attributes:
            value = self.partitions.use(self.version, self._number, name, arguments, {})
            self._attributes[name] = value
        return self._attributes[name]
