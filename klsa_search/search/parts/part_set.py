"""The parts of an index in one state, its only generation or its partitions, and their searches.

A part is read by functions of its state, which run where the state is: in this process, or in
another one, to which the name of the function is sent.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Concatenate, Final, NamedTuple, ParamSpec, Protocol, Self, TypeVar, cast

from klsa_search.core.lazy import lazy_property
from klsa_search.errors import StoreError
from klsa_search.search.costs import restriction_cost
from klsa_search.search.engine.collection_statistics import CollectionStatistics
from klsa_search.search.engine.engine import KlsaEngine
from klsa_search.search.engine.evidence import (
    LOCAL,
    Answer,
    Answers,
    Evidence,
    Question,
    SharedAnswers,
)
from klsa_search.search.engine.query_terms import UNKNOWN
from klsa_search.search.engine.snapshot import IndexArrays
from klsa_search.search.explain.explanation import Explanation
from klsa_search.search.filters.masks import FilterLike, key_of
from klsa_search.search.pages.planning import QueryPlan
from klsa_search.search.pages.results import Hit
from klsa_search.search.parts.joined import joined
from klsa_search.search.parts.part_search import PartPage, PartPlan, PartRequest, PartSearch, Seeds
from klsa_search.search.parts.reading import max_doc
from klsa_search.search.query.matching import documents_with
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


class PartSearches(ABC):
    """One search in all parts of an index, here or in other processes.

    Answers are in the order of the parts; None for one that does not answer, if partial answers are
    allowed.

    answers  of all parts that are known, to add others
    """

    def __init__(self, parts: Sequence[Part], answers: dict[Question, Any]) -> None:
        self.count, self.answers, self._parts = len(parts), answers, parts

    @property
    def sizes(self) -> list[int]:
        """Return the numbers of doc ids of the parts."""
        return [part.read(max_doc) for part in self._parts]

    def at_once(self, request: PartRequest) -> tuple[QueryPlan, Sequence[PartPage]] | None:
        """Return the plan and the pages of a search that needs no rounds; else None."""
        return None

    @abstractmethod
    def begin(self, requests: Sequence[PartRequest | None]) -> Sequence[PartPlan | None]:
        """Plan the search in each part, and find its best documents.

        requests  None for a part that keeps its earlier plan
        """

    def collect(self, shared: Sequence[Seeds], answers: Answers) -> Sequence[PartPage | None]:
        """Return the first documents of each part: see `PartSearch.collect`.

        shared  seeds of all parts as each part needs them
        """
        arguments = {number: (seeds, answers) for number, seeds in enumerate(shared)}
        return self._round(PartSearch.collect, arguments)

    def fetch(self, positions: Sequence[Sequence[int]]) -> Sequence[Sequence[Hit] | None]:
        """Return the hits at some positions of the page of each part; None for no positions."""
        arguments = {number: (of_part,) for number, of_part in enumerate(positions) if of_part}
        return self._round(PartSearch.fetch, arguments)

    def explain(self, number: int, id_: str, shared: Seeds, answers: Answers) -> Explanation | None:
        """Return the explanation of the score of a document of a part: see `PartSearch.explain`."""
        return self._round(PartSearch.explain, {number: (id_, shared, answers)})[number]

    @abstractmethod
    def _round(
        self, step: Callable[..., T], arguments: Mapping[int, tuple[object, ...]]
    ) -> list[T | None]:
        """Return the results of a step of the search; None for parts that failed.

        arguments  of the step, by number of the part; others are not called
        """


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
    @abstractmethod
    def local(self) -> LocalParts:
        """Return the same parts in this process, for what reads all documents.

        Cost: opening those of other processes, once in a state.
        """

    @property
    @abstractmethod
    def fields(self) -> Fields:
        """Return the metadata fields that are columns; those of other processes have no values."""

    @abstractmethod
    def searches(self) -> PartSearches:
        """Return a new search of all parts."""

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
            path=info.path, manifest=info.manifest, documents=info.documents, last_write=info.last
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


class _EvidenceOfAll(Evidence):
    """Evidence of all partitions of this process, so that parsing need not wait for phrases.

    Most questions are how many documents have words side by side, and name all that the answer
    depends on. Others are answered by partitions that parse the query: see `Evidence`.
    """

    def __init__(self, shared: SharedAnswers, states: Sequence[State]) -> None:
        super().__init__(shared)
        self._shared, self._states = shared, states

    def of(self, question: Question, answer: Callable[[], Answer]) -> Answer:
        kind, *words = cast(tuple[str, ...], question)
        of_kind = (*self._kind, *question)
        if kind == "phrase" and of_kind not in self._shared:
            numbers = [
                [state.snapshot.vocabulary.numbers.get(word, UNKNOWN) for word in words]
                for state in self._states
            ]
            if UNKNOWN not in numbers[0]:  # no stop words, which are named by numbers
                snapshots = (state.snapshot for state in self._states)
                self._shared[of_kind] = sum(
                    documents_with(snapshot, terms, LOCAL)
                    for snapshot, terms in zip(snapshots, numbers, strict=True)
                )
        return super().of(question, answer)


class LocalSearches(PartSearches):
    """One search in all parts in this process: see `PartSearches`."""

    def __init__(self, states: Sequence[State], answers: SharedAnswers) -> None:
        super().__init__(states, answers)
        self._states, self._shared = states, answers
        self._searches: dict[int, PartSearch] = {}  # by number of the part
        self._first: PartSearch | None = None  # planned, but not begun

    def at_once(self, request: PartRequest) -> tuple[QueryPlan, list[PartPage]] | None:
        """Return the plan and pages of a search by words alone, of one call; else None."""
        if request.query.mask is not None:
            return None
        request = request._replace(evidence=self.answers)
        first = self._first = self._parsed(0, request)
        if not first.ranks_by_words:
            return None
        searches = [first]
        for state in self._states[1:]:
            plan = first.plan_for(state, request)
            if plan is None:
                return None
            searches.append(PartSearch(state, request, plan=plan))
        self._searches = dict(enumerate(searches))
        tops = KlsaEngine.top_of_all([search.words for search in searches], first.plan.k)
        return first.plan, [search.page(top) for search, top in zip(searches, tops, strict=True)]

    def _parsed(self, number: int, request: PartRequest) -> PartSearch:
        """Return the search of a partition that parses the query, for all of them if it can."""
        first, self._first = self._first, None
        if first is not None and number == 0 and first.query is request.query:
            return first
        shares = request.evidence is self.answers
        states = [state.searched_by(request.query.group) for state in self._states]
        evidence = _EvidenceOfAll(self._shared, states) if shares else None
        return PartSearch(self._states[number], request, evidence=evidence)

    def begin(self, requests: Sequence[PartRequest | None]) -> list[PartPlan | None]:
        """Plan the search in each partition, and find its best documents.

        The first one parses the query, for all of them unless the plan has documents in it.
        """
        begun: list[PartPlan | None] = []
        first: PartSearch | None = None
        for number, (state, request) in enumerate(zip(self._states, requests, strict=True)):
            if request is None:
                begun.append(None)
                continue
            if first is None:
                first = search = self._parsed(number, request)
            else:
                search = PartSearch(state, request, plan=first.plan_for(state, request))
            self._searches[number] = search
            begun.append(search.begin())
        return begun

    def _round(
        self, step: Callable[..., T], arguments: Mapping[int, tuple[object, ...]]
    ) -> list[T | None]:
        return [
            step(search, *arguments[number]) if number in arguments else None
            for number, search in sorted(self._searches.items())
        ]


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
    def local(self) -> LocalParts:
        """Return the same."""
        return self

    @lazy_property
    def fields(self) -> Fields:
        """The metadata fields that are columns."""
        only = self.only_state
        return (
            Fields.of_parts([part.fields for part in self.parts]) if only is None else only.fields
        )

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
