"""A search in one of several partitions of an index.

A search takes three steps. Each part finds its best documents. The best of all give the seeds, by
which each part ranks its documents. Parts that have hits of the page return them. Filters, facets,
sorting and snippets are computed in the part, and no step sends arrays as long as the index.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search._native import LocalSeeds, SharedSeeds
from klsa_search.core.array_types import DocIds, Numbers, Scores
from klsa_search.search.engine.engine import MAX_SEEDS, KlsaEngine, KlsaParams
from klsa_search.search.engine.evidence import NONE, Answers, AnswersPending, Evidence
from klsa_search.search.engine.top_docs import NO_HITS, TopDocs
from klsa_search.search.explain.explanation import Explanation
from klsa_search.search.models import NOT_EMBEDDED, EmbeddedQuery
from klsa_search.search.pages.applied_rules import NO_RULES, AppliedRules, Pin
from klsa_search.search.pages.collectors import (
    SortKey,
    collect,
    distinct_field,
    sort_keys,
    values_of,
)
from klsa_search.search.pages.facets import Facet
from klsa_search.search.pages.hits import explanation_of, fetch_hits
from klsa_search.search.pages.named_documents import id_match_of
from klsa_search.search.pages.planning import QueryPlan, plan_search
from klsa_search.search.pages.results import Hit
from klsa_search.search.pages.suggested_filters import Conditions, typed_filters
from klsa_search.search.query.query import Query
from klsa_search.search.ranking.searcher import (
    AllPartitions,
    SeedCandidates,
    ranks_with_klsa_engine,
)
from klsa_search.search.state.state import State

ALL_VALUES: Final = 2**31
"""Number of facet values that a partition returns, as their counts add up over partitions."""

_NO_VALUES: Final[Conditions] = {}  # which can be sent to another process, unlike a mappingproxy
_NO_ORDINALS: Final = np.zeros(0, np.int64)

Seeds = Sequence[SharedSeeds | None]
"""Seeds of a search as one partition needs them: see `AllPartitions`."""

SortValue = tuple[bool, Any]
"""Whether a document lacks the field, and its value."""


class PartPage(NamedTuple):
    """The first documents of a search in one partition.

    doc_ids       (n,) in this part, in order
    scores        (n,)
    total, facets  of all matches of the part
    ordinals      (n,) numbers that order documents with equal scores: see `Snapshot.ordinals_of`
    keys          values of the fields to sort by, of each document
    has_id_match  whether the first that is not pinned is the document whose ID is the query, and
                  comes first: not if fields order the documents
    distinct      value of the field whose values must be distinct, of each document; empty without
                  one
    pins          of the first documents, which rules pin
    typed_matches  whether each document contains what was typed, and comes before those that do
                  not; empty if none comes first, and if fields order the documents
    answers       to questions of the ranking that the evidence leaves open, from these documents;
                  if there are some, there are no documents
    hits          all hits, if another process returns them with the page
    typed         values of the documents of the part that are like what was typed
    """

    doc_ids: DocIds
    scores: Scores
    total: int
    facets: Mapping[str, Facet]
    ordinals: Numbers = _NO_ORDINALS
    keys: Sequence[Sequence[SortValue]] = ()
    has_id_match: bool = False
    distinct: Sequence[SortValue] = ()
    pins: Sequence[Pin] = ()
    typed_matches: Sequence[bool] = ()
    answers: Answers = NONE
    hits: Sequence[Hit] | None = None
    typed: Conditions = _NO_VALUES


class PartRequest(NamedTuple):
    """A search as all partitions run it.

    query       what is searched for
    evidence    of all partitions, by which the query is parsed
    ranks_only  whether it is a call of `Index.rank`: see `plan_search`
    embedded    vector of the query that an embedder made, if there are several parts
    query_is_id whether the query is the ID of a document of another partition: see `plan_search`
    """

    query: Query
    evidence: Answers
    ranks_only: bool = False
    embedded: EmbeddedQuery = NOT_EMBEDDED
    query_is_id: bool = False


class PartPlan(NamedTuple):
    """What one part returns when a search begins.

    plan     of the search in this partition, without masks of its doc ids
    seeds    candidates of the documents that are ranked, then of passages if these count; none if
             the ranking does not need seeds
    answers  to questions of the parser that the evidence of the request leaves open, from these
             documents; if there are some, the plan is preliminary and there are no seeds
    """

    plan: QueryPlan
    seeds: Sequence[SeedCandidates]
    answers: Answers = NONE

    @property
    def has_id_match(self) -> bool:
        """Return whether the query is the ID of a document of this partition."""
        return self.plan.id_match is not None


class PartSearch:
    """A search in one state of a partition, step by step.

    evidence  of all partitions, by default that of the request
    plan      of another partition in this process, which is the same but for numbers of terms

    query     what is searched for
    """

    def __init__(
        self,
        state: State,
        request: PartRequest,
        *,
        evidence: Evidence | None = None,
        plan: QueryPlan | None = None,
    ) -> None:
        self._state, self.query = state, request.query
        self._suggests = not request.ranks_only
        self._evidence = evidence or Evidence(request.evidence)
        self._ranked = state.searched_by(request.query.group)
        self._ranks_passages = self._ranked is not state
        if plan is None:
            self._ranked, plan = plan_search(
                state, request.query, self._evidence,
                ranks_only=request.ranks_only, embed=lambda: request.embedded,
                query_is_id=request.query_is_id,
            )  # fmt: skip
        self.plan = plan
        self._seeds: Sequence[LocalSeeds | None] = ()
        self._top: TopDocs | None = None

    def plan_for(self, state: State, request: PartRequest) -> QueryPlan | None:
        """Return the plan in another partition, if it has numbers of terms alone and is final."""
        plan, parsed = self.plan, self.plan.parsed
        of_documents = (
            plan.mask,
            plan.pinnable,
            plan.vector,
            parsed.typed_matches,
            parsed.stop_scores,
        )
        if (
            self._evidence.local
            or plan.request is not request.query
            or plan.rules is not NO_RULES
            or any(value is not None for value in (plan.id_match, *of_documents))
        ):
            return None
        ranked, group = self._ranked, request.query.group
        finds_id = group == "document" and not request.ranks_only
        if finds_id and id_match_of(state, request.query, None, self._evidence) is not None:
            return None
        state, collection = state.searched_by(group), ranked.snapshot.collection
        built = 0 if collection is None else len(collection)  # alike in all
        names, numbers = ranked.snapshot.vocabulary.terms, state.snapshot.vocabulary.numbers
        terms = [term if term < built else numbers[names[term]] for term in parsed.terms]
        parameters = plan.parameters
        if parameters is ranked.info.defaults:  # the same object saves the engine work
            parameters = state.info.defaults
        return plan._replace(parsed=parsed._replace(terms=terms), parameters=parameters)

    @property
    def is_collected(self) -> bool:
        """Return whether it has its first documents, whose hits can be fetched."""
        return self._top is not None

    @property
    def ranks_by_words(self) -> bool:
        """Return whether the hits are the best documents by the words of the query.

        That is so if `plan_for` returns a plan in all other partitions.
        """
        plan, query = self.plan, self.query
        selecting = (
            query.sort, query.facets, query.disjunctive_facets, query.distinct, query.positive,
            query.negative, query.explain, plan.offset,
        )  # fmt: skip
        is_selected = query.filter is not None or query.min_score is not None or any(selecting)
        uses_passages = self._ranked.searcher.uses_passages(plan.parameters)
        is_ranked = ranks_with_klsa_engine(plan.parameters) and plan.parameters.z <= MAX_SEEDS
        return is_ranked and not is_selected and not uses_passages

    @property
    def words(self) -> tuple[KlsaEngine, Sequence[int], KlsaParams]:
        """Return what the engine ranks by: see `KlsaEngine.top_of_all`."""
        state, plan = self._ranked, self.plan
        params = state.searcher.params(plan.parameters)
        return state.snapshot.klsa_engine, plan.parsed.terms, params

    def begin(self) -> PartPlan:
        """Return the plan and the best documents. Cost: a search by the query kernel."""
        plan, ranked, candidates = self.plan, self._ranked, list[SeedCandidates]()
        if not self._evidence.local:
            candidates = ranked.searcher.seed_candidates(plan.parsed, plan.parameters)
        self._seeds = [of_kind.seeds for of_kind in candidates]
        if self.query.explain:
            states = [ranked] if ranked.passages is None else [ranked, ranked.passages.state]
            for state, seeds in zip(states, self._seeds, strict=False):
                if seeds is not None:
                    records = state.documents.records(seeds.doc_ids.tolist())
                    seeds.names = [(record.id, record.title) for record in records]
        # Without what has the size of the partition.
        rules = AppliedRules(plan.rules.ids)
        parsed = plan.parsed._replace(typed_matches=None)
        plan = plan._replace(parsed=parsed, mask=None, pinnable=None, vector=None, rules=rules)
        return PartPlan(plan, candidates, self._evidence.local)

    def collect(self, shared: Seeds, answers: Answers = NONE) -> PartPage:
        """Return the first documents of all pages up to the requested one. Cost: a search.

        answers  of all partitions to questions of the ranking
        """
        evidence = Evidence(answers)
        of_ranked = evidence.of_passages() if self._ranks_passages else evidence
        ranked = self._ranked = with_seeds(self._ranked, shared, of_ranked, self._seeds)
        if self.plan.offset:
            last = self.plan.offset + self.plan.k
            self.plan = self.plan._replace(offset=0, k=last)
        plan = self.plan
        try:
            top, facets = collect(ranked, plan, pins_first=True)
        except AnswersPending:
            return PartPage(NO_HITS.doc_ids, NO_HITS.scores, 0, {}, answers=evidence.local)
        pins = plan.rules.pins
        pinned = [pins[doc_id] for doc_id in top.doc_ids[: len(pins)].tolist() if doc_id in pins]
        first = top.doc_ids[len(pinned) : len(pinned) + 1].tolist()
        is_sorted = bool(self.query.sort)
        typed_matches = None if is_sorted else plan.parsed.typed_matches
        field, values = distinct_field(self.query.distinct, ranked), list[tuple[SortValue, ...]]()
        if field is not None:
            values = sort_values([SortKey(field, descending=False)], top.doc_ids)
        return self.page(top)._replace(
            facets=facets,
            keys=sort_values(sort_keys(self.query.sort, ranked.fields), top.doc_ids),
            has_id_match=not is_sorted and first == [plan.id_match],
            distinct=[value for (value,) in values],
            pins=pinned,
            typed_matches=() if typed_matches is None else typed_matches[top.doc_ids].tolist(),
            answers=evidence.local,
        )

    def page(self, top: TopDocs) -> PartPage:
        """Return the page of a search by words, whose first documents these are."""
        self._top = top
        ordinals = self._ranked.snapshot.ordinals_of(top.doc_ids)
        return PartPage(top.doc_ids, top.scores, top.total, {}, ordinals, typed=self._typed())

    def _typed(self) -> Conditions:
        """Return the values that are like what was typed, unless nothing is suggested."""
        return typed_filters(self._state, self.query) if self._suggests else {}

    def fetch(self, positions: Sequence[int] | None) -> tuple[Hit, ...]:
        """Return the hits at some positions of the page, or all."""
        assert self._top is not None
        top = self._top if positions is None else self._top.at(np.array(positions, np.int64))
        return fetch_hits(self._state, self._ranked, self.plan, top)

    def explain(self, id_: str, shared: Seeds, answers: Answers) -> Explanation:
        """Return the explanation of the score of a document, found or not; DocumentNotFound."""
        state = with_seeds(self._state, shared, Evidence(answers))
        return explain_document(state, self.plan, id_)


def explain_document(state: State, plan: QueryPlan, id_: str) -> Explanation:
    """Return the explanation of the score of a document, found or not; DocumentNotFound."""
    (doc_id,) = state.documents.doc_ids([id_])
    parsed = plan.parsed._replace(mask=plan.mask)
    return explanation_of(state, parsed, plan.parameters, plan.vector, doc_id)


def with_seeds(
    state: State, shared: Seeds, evidence: Evidence, local: Sequence[LocalSeeds | None] = ()
) -> State:
    """Return the state of a partition that ranks by the seeds and the evidence of all."""
    return state.with_searcher(state.searcher.within(AllPartitions(shared, evidence, local)))


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
