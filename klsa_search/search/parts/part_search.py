"""A search in one part of an index: its only generation, or one of its partitions.

A search takes three steps. Each part finds its best documents. The best of all give the seeds, by
which each part ranks its documents. Parts that have hits of the page return them. Filters, facets,
sorting and snippets are computed in the part, and no step sends arrays as long as the index. A part
without others ranks by its own seeds, which the engine finds in the same call.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from klsa_search._native import LocalSeeds, SharedSeeds
from klsa_search.core.array_types import DocIds, Scores
from klsa_search.core.parameters import SearchParameters
from klsa_search.errors import EmbedderFailed, QueryError
from klsa_search.search.engine.engine import MAX_SEEDS, NO_HITS, KlsaParams
from klsa_search.search.engine.evidence import (
    NONE,
    Answers,
    Evidence,
    OpenQuestions,
    Question,
    SharedAnswers,
)
from klsa_search.search.engine.mask import intersection
from klsa_search.search.engine.top_docs import TopDocs
from klsa_search.search.explain.explanation import Explanation
from klsa_search.search.models import NO_MODELS, NOT_EMBEDDED, EmbeddedQuery, Models
from klsa_search.search.pages.applied_rules import AppliedRules, Pin
from klsa_search.search.pages.collectors import (
    SortKey,
    collect,
    distinct_field,
    sort_keys,
    values_of,
)
from klsa_search.search.pages.facets import Facet
from klsa_search.search.pages.hit_explanations import explanation_of
from klsa_search.search.pages.hits import fetch_hits, hits_of
from klsa_search.search.pages.planning import QueryPlan, Ranking, plan_search, query_vector
from klsa_search.search.pages.results import Hit
from klsa_search.search.query.query import Query
from klsa_search.search.rankers.klsa import klsa_params
from klsa_search.search.ranking.parameters import checked_mask
from klsa_search.search.ranking.searcher import AllPartitions, ranks_by_seeds
from klsa_search.search.ranking.vector_ranking import vector_parts, with_vectors
from klsa_search.search.state.state import State

_Round = TypeVar("_Round")
_Answer = TypeVar("_Answer")
_Result = TypeVar("_Result")

ALL_VALUES: Final = 2**31
"""Number of facet values that a partition returns, as their counts add up over partitions."""

_NO_ORDINALS: Final = np.zeros(0, np.int64)

SortValue = tuple[bool, Any]
"""Whether a document lacks the field, and its value."""


class PartPage(NamedTuple):
    """The first documents of a search in one partition.

    doc_ids   (n,) in this part, in order
    scores    (n,)
    total, facets  of all matches of the part
    ordinals  (n,) numbers that order documents with equal scores: see `Snapshot.ordinals_of`
    keys      values of the fields to sort by, of each document
    named     whether the first that is not pinned is the document whose ID is the query
    distinct  value of the field whose values must be distinct, of each document; empty without one
    pins      of the first documents, which rules pin
    leading   whether each document contains the codes of the query; empty without codes
    answers   to questions of the ranking that the evidence leaves open, from these documents; if
              there are some, there are no documents
    """

    doc_ids: DocIds
    scores: Scores
    total: int
    facets: Mapping[str, Facet]
    ordinals: npt.NDArray[np.int64] = _NO_ORDINALS
    keys: Sequence[Sequence[SortValue]] = ()
    named: bool = False
    distinct: Sequence[SortValue] = ()
    pins: Sequence[Pin] = ()
    leading: Sequence[bool] = ()
    answers: Answers = NONE


class PartRequest(NamedTuple):
    """A search as all partitions run it.

    query       what is searched for
    evidence    of all partitions, by which the query is parsed; None if there is one part only
    ranks_only  whether it is a call of `Index.rank`: see `plan_search`
    embedded    vector of the query that an embedder made, if there are several parts
    """

    query: Query
    evidence: Answers | None
    ranks_only: bool = False
    embedded: EmbeddedQuery = NOT_EMBEDDED


class PartPlan(NamedTuple):
    """What one part returns when a search begins.

    plan     of the search in this partition, without masks of its doc ids
    seeds    best documents of the partition; None if the ranking does not need them
    params   of the ranking, as the engine takes them
    step     value of one step of the scores by the query kernel
    answers  to questions of the parser that the evidence of the request leaves open, from these
             documents; if there are some, the plan is preliminary and there are no seeds
    """

    plan: QueryPlan
    seeds: LocalSeeds | None
    params: KlsaParams
    step: float
    answers: Answers = NONE

    @property
    def named(self) -> bool:
        """Return whether the query is the ID of a document of this partition."""
        return self.plan.named is not None


class PartSearch:
    """A search in one state of a partition, step by step."""

    def __init__(self, state: State, request: PartRequest, models: Models = NO_MODELS) -> None:
        self._state, self._query = state, request.query
        self._evidence = None if request.evidence is None else Evidence(request.evidence)
        self._ranked, self.plan = plan_search(
            state, request.query, models, self._evidence,
            ranks_only=request.ranks_only, embedded=request.embedded,
        )  # fmt: skip
        self._top: TopDocs | None = None

    def begin(self) -> PartPlan:
        """Return the plan and the best documents. Cost: a search by the query kernel."""
        assert self._evidence is not None, "nothing is merged with a part without others"
        snapshot, plan = self._state.snapshot, self.plan
        params, seeds = klsa_params(snapshot, plan.parameters), None
        if ranks_by_seeds(plan.parameters) and not self._evidence.local:
            if params.seeds > MAX_SEEDS:
                raise QueryError(
                    f"z = {params.seeds}: an index in partitions ranks by at most {MAX_SEEDS} "
                    "seeds; choose fewer, or build the index with one partition",
                    field="z",
                )
            seeds = snapshot.klsa_engine.seeds(plan.parsed.terms, params)
        if seeds is not None and self._query.explain:
            records = self._state.documents.records(seeds.doc_ids.tolist())
            seeds.names = [(record.id, record.title) for record in records]
        # Without what has the size of the partition.
        rules = AppliedRules(plan.rules.ids)
        parsed = plan.parsed._replace(leading=None)
        plan = plan._replace(parsed=parsed, mask=None, pinnable=None, vector=None, rules=rules)
        step = snapshot.query_kernel.postings.step
        return PartPlan(plan, seeds, params, step, self._evidence.local)

    def collect(self, shared: SharedSeeds | None, answers: Answers = NONE) -> PartPage:
        """Return the first documents of all pages up to the requested one. Cost: a search.

        answers  of all partitions to questions of the ranking
        A part without others returns the requested page.
        """
        if self._evidence is None:
            self._top, facets = collect(self._ranked, self.plan)
            return PartPage(self._top.doc_ids, self._top.scores, self._top.total, facets)
        evidence = Evidence(answers)
        ranked = self._ranked = with_seeds(self._ranked, shared, evidence)
        if self.plan.offset:
            last = self.plan.offset + self.plan.k
            self.plan = self.plan._replace(offset=0, k=last)
        plan = self.plan
        try:
            top, facets = collect(ranked, plan, pins_first=True)
        except OpenQuestions:
            return PartPage(NO_HITS.doc_ids, NO_HITS.scores, 0, {}, answers=evidence.local)
        self._top = top
        pins = plan.rules.pins
        pinned = [pins[doc_id] for doc_id in top.doc_ids[: len(pins)].tolist() if doc_id in pins]
        first = top.doc_ids[len(pinned) : len(pinned) + 1].tolist()
        keys = sort_values(sort_keys(self._query.sort, ranked.fields), top.doc_ids)
        ordinals = self._state.snapshot.ordinals_of(top.doc_ids)
        is_named = not any(keys) and first == [plan.named]
        field = distinct_field(self._query.distinct, ranked)
        values = (
            [] if field is None else sort_values([SortKey(field, descending=False)], top.doc_ids)
        )
        distinct = [value for (value,) in values]
        return PartPage(
            top.doc_ids, top.scores, top.total, facets, ordinals, keys, is_named, distinct, pinned,
            () if plan.parsed.leading is None else plan.parsed.leading[top.doc_ids].tolist(),
            evidence.local,
        )  # fmt: skip

    def fetch(self, positions: Sequence[int] | None) -> tuple[Hit, ...]:
        """Return the hits at some places of the page, or all."""
        assert self._top is not None
        top = self._top if positions is None else self._top.at(np.array(positions, np.int64))
        return fetch_hits(self._state, self._ranked, self.plan, top)

    def explain(self, id_: str, shared: SharedSeeds | None, answers: Answers) -> Explanation:
        """Return the explanation of the score of a document, found or not; DocumentNotFound."""
        state, plan = self._state, self.plan
        if self._evidence is not None:
            state = with_seeds(state, shared, Evidence(answers))
        (doc_id,) = state.documents.doc_ids([id_])
        parsed = plan.parsed._replace(mask=plan.mask)
        return explanation_of(state, parsed, plan.parameters, plan.vector, doc_id)


class PartSearches(Protocol):
    """One search in all parts of an index, here or in other processes; each method is one round.

    Searches wait for rounds, which `PartSet.complete` makes for several at once.
    Answers are in the order of the partitions; None for one that does not answer, if partial
    answers are allowed.
    """

    @property
    def count(self) -> int:
        """Return the number of parts."""

    @property
    def answers(self) -> dict[Question, Any]:
        """Return the answers of all partitions that are known, to add others."""

    @property
    def sizes(self) -> Sequence[int]:
        """Return the numbers of doc ids of the parts."""

    async def begin(self, requests: Sequence[PartRequest | None]) -> Sequence[PartPlan | None]:
        """Plan the search in each partition, and find its best documents.

        requests  None for a partition that keeps its earlier plan
        """

    async def collect(
        self, shared: Sequence[SharedSeeds | None], answers: Answers
    ) -> Sequence[PartPage | None]:
        """Return the first documents of each partition, ranked by the seeds of all.

        shared   the seeds, as each partition needs them
        answers  of all partitions to questions of the ranking
        """

    async def fetch(
        self, positions: Sequence[Sequence[int] | None]
    ) -> Sequence[Sequence[Hit] | None]:
        """Return the hits at some places of the pages; partitions without places do nothing.

        places  None for all of a page
        """

    async def explain(
        self, partition: int, id_: str, shared: SharedSeeds | None, answers: Answers
    ) -> Explanation:
        """Return the explanation of the score of a document of a partition; DocumentNotFound."""


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


class LocalSearches:
    """One search in all partitions in this process: see `PartSearches`."""

    def __init__(self, states: Sequence[State], answers: SharedAnswers) -> None:
        self.count, self.answers, self._states = len(states), answers, states
        self._searches: list[PartSearch | None] = [None] * len(states)

    @property
    def sizes(self) -> list[int]:
        """Return the numbers of doc ids of the parts."""
        return [len(state.snapshot) for state in self._states]

    async def begin(self, requests: Sequence[PartRequest | None]) -> list[PartPlan | None]:
        """Plan the search in each partition, and find its best documents."""
        begun: list[PartPlan | None] = []
        for number, (state, request) in enumerate(zip(self._states, requests, strict=True)):
            if request is None:
                begun.append(None)
                continue
            search = self._searches[number] = PartSearch(state, request)
            begun.append(search.begin())
        return begun

    async def collect(
        self, shared: Sequence[SharedSeeds | None], answers: Answers
    ) -> list[PartPage]:
        """Return the first documents of each partition, ranked by the seeds of all."""
        return [
            search.collect(seeds, answers)
            for search, seeds in zip(self._searches, shared, strict=True)
            if search is not None
        ]

    async def fetch(self, positions: Sequence[Sequence[int] | None]) -> list[Sequence[Hit]]:
        """Return the hits at some places of the pages; all of one if that is None."""
        return [
            () if positions_of == [] else search.fetch(positions_of)
            for search, positions_of in zip(self._searches, positions, strict=True)
            if search is not None
        ]

    async def explain(
        self, partition: int, id_: str, shared: SharedSeeds | None, answers: Answers
    ) -> Explanation:
        """Return the explanation of the score of a document of a partition; DocumentNotFound."""
        search = self._searches[partition]
        assert search is not None
        return search.explain(id_, shared, answers)


def scores_of(state: State, query: str, parameters: SearchParameters) -> Scores:
    """Return the scores of all documents: see `Index.scores`."""
    reading, chosen = state.parameters.read(parameters)
    parsed = state.query_parser.parse(query, reading)
    return state.searcher.scores(parsed, chosen)


def rank_queries(
    state: State, queries: Sequence[str], ranking: Ranking, models: Models
) -> list[TopDocs]:
    """Return the best documents of each query: see `Index.rank`.

    Cost: a call of the engine for all queries, or one for each if they have vectors.
    """
    k, mask, vector, parameters = ranking
    reading, chosen = state.parameters.read(parameters)
    allowed = None if mask is None else checked_mask(mask, len(state.snapshot))
    parsed = [state.query_parser.parse(query, reading) for query in queries]
    if vector is None and not (models.embedders and state.snapshot.vectors):
        return state.searcher.top(parsed, k, chosen, allowed)
    tops = []
    for query, words in zip(queries, parsed, strict=True):
        query_vector_, warnings = query_vector(state, state, query, vector, models.embedders)
        if warnings:
            raise EmbedderFailed(warnings[0], field="embedder")
        rank = state.searcher.ranking(words._replace(mask=None), chosen)
        searched = intersection(allowed, words.mask)
        if query_vector_ is not None:
            parts = vector_parts(state.snapshot, query_vector_, rank, searched)
            rank = with_vectors(rank, parts, np.zeros(0, np.int64))
        tops.append(rank(k, searched))
    return tops


def warm_up(state: State) -> None:
    """Load what the first queries need, by ranking and returning a document."""
    for ranker in ("bm25", state.info.defaults.ranker):
        rank_queries(state, [""], Ranking(10, None, None, {"ranker": ranker}), NO_MODELS)
    first = np.flatnonzero(state.snapshot.live_docs())[:1]
    hits_of(state, first, np.zeros(len(first), np.float32), (), ())


def with_seeds(state: State, shared: SharedSeeds | None, evidence: Evidence) -> State:
    """Return the state of a partition that ranks by the seeds and the evidence of all."""
    return state.with_searcher(state.searcher.within(AllPartitions(shared, evidence)))


def sort_values(
    keys: Sequence[SortKey], doc_ids: npt.NDArray[np.integer[Any]]
) -> list[tuple[SortValue, ...]]:
    """Return the values that documents are sorted by, comparable between partitions."""
    columns: list[list[SortValue]] = []
    for key in keys:
        values, present = values_of(key.field, doc_ids.astype(np.int64), key.descending)
        column: list[SortValue] = []
        for value, has_value in zip(values.tolist(), present.tolist(), strict=True):
            text = key.field.texts[value] if has_value and key.field.type == "keyword" else value
            column.append((not has_value, text if has_value else None))
        columns.append(column)
    return list(zip(*columns, strict=True)) if columns else [()] * len(doc_ids)
