"""The rounds of a search in several parts of an index, and those in this process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar, cast

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
from klsa_search.search.explain.explanation import Explanation
from klsa_search.search.pages.planning import QueryPlan
from klsa_search.search.pages.results import Hit
from klsa_search.search.parts.part_search import (
    PartPage,
    PartPlan,
    PartRequest,
    PartSearch,
    Seeds,
)
from klsa_search.search.query.matching import documents_with
from klsa_search.search.state.state import State

_Round = TypeVar("_Round")
_Answer = TypeVar("_Answer")
_Result = TypeVar("_Result")


class PartSearches(ABC):
    """One search in all parts of an index, here or in other processes.

    Searches wait for rounds, which `PartSet.complete` makes for several at once. Answers are in the
    order of the parts; None for one that does not answer, if partial answers are allowed.

    count    number of parts
    answers  of all parts that are known, to add others
    """

    count: int
    answers: dict[Question, Any]

    @property
    @abstractmethod
    def sizes(self) -> Sequence[int]:
        """Return the numbers of doc ids of the parts."""

    def at_once(self, request: PartRequest) -> tuple[QueryPlan, Sequence[PartPage]] | None:
        """Return the plan and the pages of a search that needs no rounds; else None."""
        return None

    @abstractmethod
    async def begin(self, requests: Sequence[PartRequest | None]) -> Sequence[PartPlan | None]:
        """Plan the search in each part, and find its best documents.

        requests  None for a part that keeps its earlier plan
        """

    @abstractmethod
    async def collect(self, shared: Sequence[Seeds], answers: Answers) -> Sequence[PartPage | None]:
        """Return the first documents of each part: see `PartSearch.collect`.

        shared  seeds of all parts as each part needs them
        """

    @abstractmethod
    async def fetch(self, positions: Sequence[Sequence[int]]) -> Sequence[Sequence[Hit] | None]:
        """Return the hits at some positions of the page of each part."""

    @abstractmethod
    async def explain(
        self, number: int, id_: str, shared: Seeds, answers: Answers
    ) -> Explanation | None:
        """Return the explanation of the score of a document of a part: see `PartSearch.explain`."""


def run_rounds(
    searches: Sequence[Coroutine[_Round, _Answer, _Result]],
    answer: Callable[[Sequence[_Round]], Sequence[_Answer]],
) -> list[_Result]:
    """Run searches together until all are done, and return their results.

    answer  returns the answers to the rounds that searches wait for
    """
    results: dict[int, _Result] = {}
    answers: dict[int, Any] = dict.fromkeys(range(len(searches)))
    try:
        while answers:
            rounds: dict[int, _Round] = {}
            for number, search_answer in answers.items():
                try:
                    rounds[number] = searches[number].send(search_answer)
                except StopIteration as done:
                    results[number] = done.value
            answers = dict(zip(rounds, answer(list(rounds.values())), strict=True))
    finally:
        for search in searches:
            search.close()
    return [results[number] for number in range(len(searches))]


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
        self.count, self._states = len(states), states
        self.answers = self._shared = answers
        self._searches: dict[int, PartSearch] = {}  # by number of the part
        self._first: PartSearch | None = None  # planned, but not begun

    @property
    def sizes(self) -> list[int]:
        """Return the numbers of doc ids of the parts."""
        return [len(state.snapshot) for state in self._states]

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

    async def begin(self, requests: Sequence[PartRequest | None]) -> list[PartPlan | None]:
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

    async def collect(self, shared: Sequence[Seeds], answers: Answers) -> list[PartPage]:
        """Return the first documents of each part."""
        return [
            self._searches[number].collect(seeds, answers) for number, seeds in enumerate(shared)
        ]

    async def fetch(self, positions: Sequence[Sequence[int]]) -> list[tuple[Hit, ...]]:
        """Return the hits at some positions of the page of each part."""
        return [
            self._searches[number].fetch(of_part) if of_part else ()
            for number, of_part in enumerate(positions)
        ]

    async def explain(self, number: int, id_: str, shared: Seeds, answers: Answers) -> Explanation:
        """Return the explanation of the score of a document of a part."""
        return self._searches[number].explain(id_, shared, answers)
