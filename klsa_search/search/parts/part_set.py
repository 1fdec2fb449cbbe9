"""The parts of an index in one state: its only generation, or its partitions.

A part is read by functions of its state, which run where the state is: in this process, or in
another one, to which the name of the function is sent.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Concatenate, Final, NamedTuple, ParamSpec, Protocol, Self, TypeVar

from klsa_search.core.lazy import lazy_property
from klsa_search.errors import PartitionsUnsupported, StoreError
from klsa_search.search.costs import restriction_cost
from klsa_search.search.engine.collection_statistics import (
    CollectionStatistics,
)
from klsa_search.search.engine.evidence import SharedAnswers
from klsa_search.search.engine.snapshot import IndexArrays
from klsa_search.search.filters.masks import FilterLike, key_of
from klsa_search.search.parts.joined import joined
from klsa_search.search.parts.rounds import LocalSearches, PartSearches, run_rounds
from klsa_search.search.state.state import (
    GenerationInfo,
    QueryConfiguration,
    State,
    bytes_of,
    restricted_to,
    statistics_of,
    with_statistics,
)
from klsa_search.storage.columns.columns import Fields
from klsa_search.storage.manifest import Manifest
from klsa_search.storage.write_log import LogPosition

P = ParamSpec("P")
T = TypeVar("T")

MAX_ANSWERS: Final = 2**16
"""Answers that searches of one state share, at most."""

_VIEWS_SIZE: Final = 2**28
"""Bytes of cached views of an index, at most: see `bytes_of`."""
_FEWEST_VIEWS: Final = 4
_MOST_VIEWS: Final = 256
"""Cached views, at least and at most."""


class Part(Protocol):
    """A generation of an index in one state: a `State`, if it is in this process."""

    @property
    def info(self) -> GenerationInfo:
        """Return the facts about it."""

    @property
    def fields(self) -> Fields:
        """Return the metadata fields that are columns; without values in another process."""

    @property
    def state(self) -> State:
        """Return the state; StoreError if it is in another process."""

    def read(
        self, function: Callable[Concatenate[State, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Return the result of a function of a module for the state.

        In another process arguments and result are pickled; iterators become lists.
        """


class IndexFacts(NamedTuple):
    """Facts about an index in one state that need none of its parts.

    path         of the generation, or of that which names the partitions
    manifest     of all documents of the build; without files if there are several parts
    generations  that have the documents, by number of the partition
    lengths      of the build, if it has partitions: see `PartitionSet.lengths`
    terms        generation of the terms of all partitions, and its manifest; None without any
    documents    number of live documents
    last_write   last write to the only part, or the number of writes to all parts
    """

    path: Path
    manifest: Manifest
    configuration: QueryConfiguration
    generations: Sequence[Path]
    lengths: tuple[float, ...] = ()
    terms: tuple[Path, Manifest] | None = None
    documents: int = 0
    last_write: LogPosition = LogPosition()

    def after(self, positions: Iterable[LogPosition], documents: int) -> IndexFacts:
        """Return the facts after the last writes of all parts, with so many live documents.

        Writes to an index follow one another, and a state has all writes up to one of them, so
        another process with this number of writes to all partitions, or a larger one, has the same
        writes.
        """
        seqs, undos = zip(*positions, strict=True)
        return self._replace(documents=documents, last_write=LogPosition(sum(seqs), sum(undos)))


@dataclass(frozen=True, eq=False)
class PartSet(ABC):
    """The parts of an index in one state; none once it is closed."""

    facts: IndexFacts
    parts: Sequence[Part]

    @property
    def only_state(self) -> State | None:
        """Return the state of the only part, if there is one only, in this process."""
        return None

    @property
    def arrays(self) -> IndexArrays:
        """Return the arrays of all documents; PartitionsUnsupported if there are none here."""
        raise PartitionsUnsupported(
            f"the partitions of index `{self.facts.path.parent.name}` are in other processes, and "
            "exploration needs the arrays of all documents in one; open the index without the "
            "cluster"
        )

    @abstractmethod
    def searches(self) -> PartSearches:
        """Return a new search of all parts."""

    @abstractmethod
    def complete(self, searches: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
        """Run searches together, and return their results; a round of all is one of calls."""

    @abstractmethod
    def restricted(self, filter_: FilterLike) -> PartSet:
        """Return the parts with the documents that match a filter."""

    def restriction_cost(self, filter_: FilterLike) -> float:
        """Return about how many milliseconds `restricted` takes; 0 if the view is cached."""
        return sum(part.read(restriction_cost, filter_) for part in self.parts)

    def of_part(self, number: int) -> Self:
        """Return one part as if it were all."""
        part = self.parts[number]
        info = part.info
        facts = self.facts._replace(
            path=info.path,
            manifest=info.manifest,
            documents=info.documents,
            last_write=info.last,
        )
        return replace(self, facts=facts, parts=(part,))

    def require_open(self) -> Self:
        """Return the same; StoreError if the index was closed."""
        if not self.parts:
            path = self.facts.path.parent
            raise StoreError(
                f"index `{path.name}` is closed; open it again with open_index({str(path)!r})"
            )
        return self


@dataclass(frozen=True, eq=False)
class LocalParts(PartSet):
    """The parts of an index in this process.

    unrestricted  returns the arrays of those that these are a restriction of, if they are several
    """

    parts: Sequence[State]
    unrestricted: Callable[[], IndexArrays] | None = None
    _views: OrderedDict[tuple[str, str], LocalParts] = field(
        init=False, default_factory=OrderedDict
    )
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock)  # of the views
    _answers: list[SharedAnswers] = field(init=False, default_factory=lambda: [SharedAnswers()])

    @property
    def only_state(self) -> State | None:
        """Return the state of the only part, if there is one only."""
        return self.parts[0] if len(self.parts) == 1 else None

    @property
    def arrays(self) -> IndexArrays:
        """Return the arrays of all documents. Cost: that of `joined` for several parts."""
        return self._joined() if self.only_state is None else self.only_state.snapshot

    @lazy_property
    def _joined(self) -> Callable[[], IndexArrays]:
        # Views of these keep it, and must not keep these.
        return cache(partial(joined, [part.snapshot for part in self.parts], self.unrestricted))

    def searches(self) -> LocalSearches:
        """Return a new search of all parts."""
        if len(self._answers[0]) > MAX_ANSWERS:
            self._answers[0] = SharedAnswers()  # running searches keep theirs
        return LocalSearches(self.parts, self._answers[0])

    def complete(self, searches: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
        """Run searches, which wait for nothing, and return their results."""
        return run_rounds(searches, list)

    def restricted(self, filter_: FilterLike) -> LocalParts:
        """Return the parts with the documents that match a filter, cached. Cost: 2 µs if it is."""
        key = key_of(filter_)
        views = self._views
        with self._lock:
            if key in views:
                views.move_to_end(key)
                return views[key]
        view = self._restricted_to(filter_)
        size = max(sum(map(bytes_of, self.parts)), 1)
        with self._lock:
            views[key] = view
            while len(views) > min(max(_VIEWS_SIZE // size, _FEWEST_VIEWS), _MOST_VIEWS):
                views.popitem(last=False)
        return view

    def restriction_cost(self, filter_: FilterLike) -> float:
        """Return about how many milliseconds `restricted` takes; 0 if the view is cached."""
        return 0.0 if key_of(filter_) in self._views else super().restriction_cost(filter_)

    def _restricted_to(self, filter_: FilterLike) -> LocalParts:
        parts = [restricted_to(part, filter_) for part in self.parts]
        unrestricted = None
        if self.facts.terms is not None:
            statistics = CollectionStatistics.of(list(map(statistics_of, parts)))
            parts = [with_statistics(part, statistics) for part in parts]
            unrestricted = self._joined
        documents = sum(part.info.documents for part in parts)
        return LocalParts(self.facts._replace(documents=documents), parts, unrestricted)
