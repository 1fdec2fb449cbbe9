"""A process that serves one partition: its searches, its documents and its writes."""

from __future__ import annotations

import logging
import os
import pickle
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from klsa_search.analysis.tokenizers import trust
from klsa_search.errors import KlsaError, StoreError
from klsa_search.search.engine.collection_statistics import CollectionStatistics
from klsa_search.search.engine.evidence import Answers
from klsa_search.search.filters.masks import FilterLike, key_of
from klsa_search.search.parts.generation import OpenGeneration
from klsa_search.search.parts.part_search import PartPage, PartPlan, PartRequest, PartSearch, Seeds
from klsa_search.search.parts.reading import warm_up
from klsa_search.search.state.state import (
    QueryConfiguration,
    State,
    restricted_to,
    statistics_of,
    with_statistics,
)
from klsa_search.storage.current import current_generation
from klsa_search.storage.manifest import read_manifest
from klsa_search.storage.objects import absolute
from klsa_search.storage.partitions import open_collection_terms, terms_folder
from klsa_search.storage.repository import Repository, build_id
from klsa_search.storage.restore import follow_partition, restore_partition
from klsa_search.storage.write_log import LogPosition

MAX_VERSIONS: Final = 3
"""Number of recent versions that a host keeps, for searches that began before a write."""

MAX_RESTRICTED: Final = 128
"""Number of restricted views that a host keeps: two of a filter, as one lacks the statistics."""

FEW_HITS: Final = 20
"""Documents of a partition whose hits are returned with them, at most: another round costs more."""

MAX_SEARCHES: Final = 256
"""Number of searches that a host keeps between their rounds."""

REQUEST_ERRORS: Final = KlsaError, IndexError
"""Errors of a request, which the calling process raises again; IndexError for unused doc ids."""

_Value = TypeVar("_Value")

_log = logging.getLogger(__name__)


class FollowedBuild(NamedTuple):
    """A build of a partition that comes from a repository of backups.

    repository  its directory or URL
    every       seconds between two checks for a later log
    build       see `storage.repository.build_id`
    terms       build of the terms that all partitions share
    """

    repository: str
    every: float
    build: str
    terms: str


def followed_builds(
    generations: Sequence[Path], repository: str, every: float
) -> list[FollowedBuild]:
    """Return the builds of the partitions in these folders, for their hosts."""
    terms = build_id(read_manifest(current_generation(terms_folder(generations[0].parent))))
    builds = [build_id(read_manifest(generation)) for generation in generations]
    return [FollowedBuild(absolute(repository), every, build, terms) for build in builds]


class PublishedStatistics(NamedTuple):
    """Statistics of a partition after a write."""

    position: LogPosition
    statistics: CollectionStatistics


class Version(NamedTuple):
    """A state of all partitions, whose statistics weigh the words of each.

    name           digest of the writes of all partitions, and of filters
    positions      last write of each partition
    statistics     of the whole index
    configuration  of the whole index
    restricts      of a restricted version: the one of which it has some documents, and the filter
                   of these
    """

    name: str
    positions: tuple[LogPosition, ...]
    statistics: CollectionStatistics
    configuration: QueryConfiguration
    restricts: tuple[Version, FilterLike] | None = None


class HostedSearch(NamedTuple):
    """A search in a version of a partition, as each round names it to the host.

    version  name of the version
    name     of the search
    request  by which it begins, and begins again if the host does not have it
    ranking  seeds and answers by which it collects its page; None before
    """

    version: str
    name: str
    request: PartRequest
    ranking: tuple[Seeds, Answers] | None = None


class VersionNotPrepared(Exception):
    """A host does not have a version: it was started since, or the version is old."""


class PartitionHost:
    """Serves one partition; safe to share between threads.

    folder     of its generation
    tokenizer  trusted tokenizer, if the index has one
    followed   build to restore if this machine does not have it, and to take later writes from
    """

    def __init__(
        self, folder: str, tokenizer: str | None = None, followed: FollowedBuild | None = None
    ) -> None:
        if tokenizer is not None:
            trust(tokenizer)
        self._generation, self._followed = Path(folder), followed
        self._followed_at = float("-inf")
        if followed is not None:
            repository = Repository(followed.repository)
            path = self._generation.parent
            self._generation = restore_partition(repository, path, followed.build)
            restore_partition(repository, terms_folder(path), followed.terms)
        terms = open_collection_terms(current_generation(terms_folder(self._generation.parent)))
        self._partition = OpenGeneration(self._generation, terms)
        self._views: OrderedDict[str, State] = OrderedDict()
        self._restricted: OrderedDict[str, State] = OrderedDict()
        self._searches: OrderedDict[str, PartSearch] = OrderedDict()
        self._lock = threading.Lock()  # of the three above
        self._preparing = threading.Lock()  # while the partition changes its state

    def ready(self) -> int:
        """Prepare what searches need; return the process ID."""
        warm_up(self._partition.state)
        return os.getpid()

    def packed_answer(self, call: bytes) -> bytes:
        """Return the pickled answer to a pickled call: see `answer`.

        Ray itself would make arrays read-only, which the searches of a partition write in.
        """
        return pickle.dumps(self.answer(*pickle.loads(call)), pickle.HIGHEST_PROTOCOL)  # noqa: S301 - of the cluster, whose processes trust each other

    def answer(self, method: str, *arguments: Any) -> Any:
        """Return the result of a method, or an error of the request or the version."""
        try:
            return getattr(self, method)(*arguments)
        except (*REQUEST_ERRORS, VersionNotPrepared) as error:
            return error

    def refresh(self) -> LogPosition:
        """Read the log; return the last write."""
        with self._preparing:
            self._follow()
            self._partition.refresh()
            return self._partition.state.info.last

    def publish(self) -> PublishedStatistics:
        """Return the statistics after the last write: see `statistics_of`."""
        with self._preparing:
            self._follow()
            self._partition.refresh()
            return PublishedStatistics(
                self._partition.state.info.last, statistics_of(self._partition.state)
            )

    def visible(self, version: str, filter_: FilterLike) -> CollectionStatistics:
        """Return the statistics of the documents of a version that match a filter."""
        return statistics_of(self._restricted_part(version, filter_))

    def prepare(self, version: Version, number: int) -> bool:
        """Make a version; return False if the partition was written since. Cost: O(V).

        number  of the partition
        """
        versions = self._views if version.restricts is None else self._restricted
        with self._lock:
            if version.name in versions:
                versions.move_to_end(version.name)
                return True
        if version.restricts is not None:
            unrestricted, filter_ = version.restricts
            if not self.prepare(unrestricted, number):
                return False
            part = self._restricted_part(unrestricted.name, filter_)
            part = with_statistics(part, version.statistics)
            with self._lock:
                _keep(self._restricted, version.name, part, MAX_RESTRICTED)
            return True
        with self._preparing:
            if self._partition.state.info.last != version.positions[number]:
                self._follow(now=True)
                self._partition.refresh()
            if self._partition.state.info.last != version.positions[number]:
                return False
            part = self._partition.configure(version.configuration, version.statistics)
            with self._lock:
                _keep(self._views, version.name, part, MAX_VERSIONS)
            return True

    def step(
        self, hosted: HostedSearch, step: Callable[..., _Value], *arguments: object
    ) -> _Value | PartPage:
        """Return the result of a step of a search, a method of `PartSearch`.

        A page of few hits has these. The search is kept for its next round, and begins again if the
        host does not have it.
        """
        with self._lock:
            search = self._searches.pop(hosted.name, None)
        search = search or PartSearch(self._view(hosted.version), hosted.request)
        if step is PartSearch.fetch and not search.is_collected:
            assert hosted.ranking is not None
            search.collect(*hosted.ranking)
        result = step(search, *arguments)
        if isinstance(result, PartPage) and not result.answers and len(result.doc_ids) <= FEW_HITS:
            return result._replace(hits=search.fetch(None))
        if isinstance(result, PartPlan | PartPage):
            with self._lock:
                _keep(self._searches, hosted.name, search, MAX_SEARCHES)
        return result

    def write(
        self,
        function: Callable[..., _Value],
        arguments: tuple[Any, ...],
        keywords: Mapping[str, Any],
    ) -> _Value:
        """Return the result of a method of the partition."""
        return function(self._partition, *arguments, **keywords)

    def read(
        self,
        version: str,
        function: Callable[..., _Value],
        arguments: tuple[Any, ...],
        keywords: Mapping[str, Any],
    ) -> _Value:
        """Return the result of a function for the state of a version."""
        return self._view(version).read(function, *arguments, **keywords)

    def _follow(self, *, now: bool = False) -> None:
        """Replace the log by a later one of the repository, if it is time to check for one.

        A log that cannot be read stays as it is: the service, which follows the same repository,
        reports the fault.
        """
        followed = self._followed
        if followed is None or not (now or time.monotonic() > self._followed_at + followed.every):
            return
        try:
            repository = Repository(followed.repository)
            follow_partition(repository, self._generation, followed.build)
        except StoreError as fault:
            _log.warning("cannot follow `%s`: %s", self._generation, fault.message)
        self._followed_at = time.monotonic()

    def _view(self, version: str) -> State:
        with self._lock:
            view = self._views.get(version) or self._restricted.get(version)
        if view is None:
            raise VersionNotPrepared(version)
        return view

    def _restricted_part(self, version: str, filter_: FilterLike) -> State:
        """Return a version with the documents that match a filter, without their statistics."""
        name = repr((version, key_of(filter_)))
        with self._lock:
            part = self._restricted.get(name)
        if part is None:
            part = restricted_to(self._view(version), filter_)
            with self._lock:
                _keep(self._restricted, name, part, MAX_RESTRICTED)
        return part


def _keep(kept: OrderedDict[str, _Value], name: str, value: _Value, most: int) -> None:
    """Add a value, and remove the oldest if there are too many."""
    kept[name] = value
    while len(kept) > most:
        kept.popitem(last=False)
