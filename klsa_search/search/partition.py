"""One partition of an index: an ordinary index that ranks by the statistics and seeds of all.

A search takes three steps. Each partition finds its best documents. The best of all give the seeds,
by which each partition ranks its documents. Partitions that have hits of the page return them.
Filters, facets, sorting and snippets are computed in the partition, and no step sends arrays as
long as the index.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.collection.model import Document
from klsa_search.core.array_types import DocIds, Scores
from klsa_search.core.build_settings import FieldType
from klsa_search.core.config import Settings
from klsa_search.errors import QueryError
from klsa_search.search.collection_statistics import (
    CollectionStatistics,
    PartitionStatistics,
    PartitionTerms,
    Weighing,
)
from klsa_search.search.collectors import SortKey, collect, distinct_field, sort_keys, values_of
from klsa_search.search.engine.engine import NO_HITS, ScoreDetails, TopDocs
from klsa_search.search.engine.local_seeds import LocalSeeds
from klsa_search.search.engine.mask import Mask
from klsa_search.search.engine.params import MAX_SEEDS, KlsaParams
from klsa_search.search.engine.shared_seeds import SharedSeeds
from klsa_search.search.explain.explanation import Explanation
from klsa_search.search.facets import Facet
from klsa_search.search.generation_reader import GenerationReader
from klsa_search.search.hit_explanations import explanation_of
from klsa_search.search.hits import fetch_hits
from klsa_search.search.index import Index
from klsa_search.search.models import NO_MODELS
from klsa_search.search.options import Query
from klsa_search.search.planning import QueryPlan, plan_search
from klsa_search.search.query.evidence import Answers, Evidence
from klsa_search.search.rankers.klsa import klsa_params
from klsa_search.search.results import Hit
from klsa_search.search.searcher import Engines, Searcher, ranks_with_klsa_engine
from klsa_search.search.snapshot import Snapshot
from klsa_search.search.state import State
from klsa_search.storage.collection_terms import CollectionTerms
from klsa_search.storage.log import document_as_json

ALL_VALUES: Final = 2**31
"""Number of facet values that a partition returns, as their counts add up over partitions."""

SortValue = tuple[bool, Any]
"""Whether a document lacks the field, and its value."""


class SharedSeedsEngine:
    """Ranks documents of one partition by the seeds of all.

    shared  with doc ids instead of ordinals in `near`; None if the query has no seeds
    """

    def __init__(self, snapshot: Snapshot, shared: SharedSeeds | None) -> None:
        self._engine, self.shared = snapshot.klsa_engine, shared
        if shared is not None:
            near, is_here = snapshot.doc_ids_of(shared.near.astype(np.int64))
            near, estimates = near[is_here].astype(np.int32), shared.estimates[is_here]
            self.shared = shared._replace(near=near, estimates=estimates)

    def top(
        self,
        queries: Sequence[Sequence[int]],
        k: int,
        params: KlsaParams,
        mask: Mask | None = None,
        *,
        totals: bool = False,
    ) -> list[TopDocs | None]:
        """Return the k best documents of each query: see `KlsaEngine.top_shared`."""
        if self.shared is None:
            return [NO_HITS] * len(queries)
        return [
            self._engine.top_shared(terms, k, params, self.shared, mask, totals=totals)
            for terms in queries
        ]

    def explain(
        self,
        terms: Sequence[int],
        doc_ids: DocIds,
        exact: npt.NDArray[np.uint8],
        params: KlsaParams,
    ) -> ScoreDetails:
        """Return what the scores of documents consist of: see `KlsaEngine.explain`."""
        return self._engine.explain(terms, doc_ids, exact, params, self.shared)


class PartitionPage(NamedTuple):
    """The first documents of a search in one partition.

    doc_ids   (n,) in this partition, in order
    scores    (n,)
    ordinals  (n,) numbers that order documents with equal scores: see `Snapshot.ordinals_of`
    keys      values of the fields to sort by, of each document
    named     whether the first is the document whose ID is the query, which comes before all others
    distinct  value of the field whose values must be distinct, of each document; empty without one
    total, facets  of all matches of the partition
    """

    doc_ids: DocIds
    scores: Scores
    ordinals: npt.NDArray[np.int64]
    keys: Sequence[Sequence[SortValue]]
    named: bool
    distinct: Sequence[SortValue]
    total: int
    facets: Mapping[str, Facet]


class PartitionRequest(NamedTuple):
    """A search as all partitions run it.

    query       what is searched for
    evidence    of all partitions, by which the query is parsed
    ranks_only  whether it is a call of `Index.rank`: see `plan_search`
    """

    query: Query
    evidence: Answers
    ranks_only: bool = False


class PartitionPlan(NamedTuple):
    """What one partition returns when a search begins.

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
    answers: Answers

    @property
    def named(self) -> bool:
        """Return whether the query is the ID of a document of this partition."""
        return self.plan.named is not None


class PartitionHits(NamedTuple):
    """Hits of one partition, and their best quality if it was requested."""

    hits: tuple[Hit, ...]
    best: float | None


class PartitionSearch:
    """A search in one state of a partition, step by step."""

    def __init__(self, state: State, request: PartitionRequest) -> None:
        self._state, self._query = state, request.query
        self._evidence = Evidence(request.evidence)
        self._ranked, self._plan = plan_search(
            state, request.query, NO_MODELS, self._evidence, ranks_only=request.ranks_only
        )
        self._top: TopDocs | None = None

    def begin(self) -> PartitionPlan:
        """Return the plan and the best documents. Cost: a search by the query kernel."""
        snapshot, plan = self._state.snapshot, self._plan
        params, seeds = klsa_params(snapshot, plan.parameters), None
        ranks_by_seeds = ranks_with_klsa_engine(plan.parameters) and not self._evidence.own
        if ranks_by_seeds:
            if params.seeds > MAX_SEEDS:
                raise QueryError(
                    f"z = {params.seeds}: an index in partitions ranks by at most {MAX_SEEDS} "
                    "seeds; choose fewer, or build the index with one partition",
                    field="z",
                )
            seeds = snapshot.klsa_engine.seeds(plan.parsed.terms, params)
        if seeds is not None:
            if self._query.explain:
                records = self._state.documents.records(seeds.documents.tolist())
                seeds = seeds._replace(names=tuple((each.id, each.title) for each in records))
            rows = snapshot.seed_rows(seeds.documents[: params.seeds])
            seeds = seeds._replace(documents=snapshot.ordinals_of(seeds.documents), rows=rows)
        if any(each is not None for each in (plan.mask, plan.pinnable, plan.vector)):
            plan = replace(plan, mask=None, pinnable=None, vector=None)
        step = snapshot.query_kernel.postings.step
        return PartitionPlan(plan, seeds, params, step, self._evidence.own)

    def collect(self, shared: SharedSeeds | None) -> PartitionPage:
        """Return the first documents of all pages up to the requested one. Cost: a search."""
        ranked = self._ranked = with_seeds(self._ranked, shared)
        if self._plan.offset:
            last = self._plan.offset + self._plan.k
            self._plan = replace(self._plan, offset=0, k=last)
        plan = self._plan
        top, facets = collect(ranked, plan)
        self._top = top
        keys = sort_values(sort_keys(self._query.sort, ranked.fields), top.doc_ids)
        ordinals = self._state.snapshot.ordinals_of(top.doc_ids)
        is_named = not any(keys) and top.doc_ids[:1].tolist() == [plan.named]
        field = distinct_field(self._query.distinct, ranked)
        own = [] if field is None else sort_values([SortKey(field, descending=False)], top.doc_ids)
        distinct = [value for (value,) in own]
        return PartitionPage(
            top.doc_ids, top.scores, ordinals, keys, is_named, distinct, top.total, facets
        )

    def fetch(self, places: Sequence[int]) -> PartitionHits:
        """Return the hits at some places of the page."""
        assert self._top is not None
        chosen = np.array(places, np.int64)
        return PartitionHits(
            *fetch_hits(self._state, self._ranked, self._plan, self._top.at(chosen))
        )

    def explain(self, id_: str, shared: SharedSeeds | None) -> Explanation:
        """Return the explanation of the score of a document, found or not; DocumentNotFound."""
        state, plan = with_seeds(self._state, shared), self._plan
        (doc_id,) = state.documents.doc_ids([id_])
        return explanation_of(state, plan.parsed, plan.parameters, plan.dimensions, None, doc_id)


class LocalSearches:
    """One search in all partitions of this process: see `partitioned_search.PartitionSearches`."""

    def __init__(self, states: Sequence[State]) -> None:
        self._states = states
        self._searches: list[PartitionSearch | None] = [None] * len(states)

    @property
    def count(self) -> int:
        """Return the number of partitions."""
        return len(self._states)

    def begin(self, requests: Sequence[PartitionRequest | None]) -> list[PartitionPlan | None]:
        """Plan the search in each partition, and find its best documents."""
        begun: list[PartitionPlan | None] = []
        for number, (state, request) in enumerate(zip(self._states, requests, strict=True)):
            if request is None:
                begun.append(None)
                continue
            search = self._searches[number] = PartitionSearch(state, request)
            begun.append(search.begin())
        return begun

    def collect(self, shared: Sequence[SharedSeeds | None]) -> list[PartitionPage]:
        """Return the first documents of each partition, ranked by the seeds of all."""
        return [
            search.collect(own)
            for search, own in zip(self._searches, shared, strict=True)
            if search is not None
        ]

    def fetch(self, places: Sequence[Sequence[int]]) -> list[PartitionHits]:
        """Return the hits at some places of the pages."""
        return [
            search.fetch(own) if own else PartitionHits((), None)
            for search, own in zip(self._searches, places, strict=True)
            if search is not None
        ]

    def explain(self, partition: int, id_: str, shared: SharedSeeds | None) -> Explanation:
        """Return the explanation of the score of a document of a partition; DocumentNotFound."""
        search = self._searches[partition]
        assert search is not None
        return search.explain(id_, shared)


class Partition(Index):
    """An index of some of the documents, with the statistics of all.

    terms  of all partitions
    """

    def __init__(self, reader: GenerationReader, terms: PartitionTerms) -> None:
        super().__init__(reader)
        self._generation_reader, self._terms = reader, terms

    @classmethod
    def open(cls, generation: Path, terms: CollectionTerms) -> Partition:
        """Open a generation of a partition; `terms` are those of all partitions."""
        own_terms = PartitionTerms.of(terms, generation.parent)
        reader = GenerationReader.open(generation, vocabulary=own_terms.vocabulary)
        return cls(reader, own_terms)

    def view(self) -> Partition:
        """Return a read-only partition of the present state; it closes with this one."""
        return Partition(self._generation_reader.view(), self._terms)

    def statistics(self) -> PartitionStatistics:
        """Return the statistics of the live documents."""
        return self._terms.statistics(self._state().snapshot)

    def weigh_by(self, statistics: CollectionStatistics) -> None:
        """Weigh words by all documents from now on."""
        self._generation_reader.weigh(Weighing(self._terms, statistics))

    @property
    def field_types(self) -> dict[str, FieldType]:
        """Return the types of the metadata fields that are columns."""
        return {name: field.type for name, field in self.fields.items()}

    def configure(self, synonyms: Mapping[str, Sequence[str]], settings: Settings) -> None:
        """Use synonyms and query settings of the whole index, from the next `weigh_by` on."""
        self._generation_reader.configure(synonyms, settings)

    def refuse(self, puts: Sequence[Document]) -> None:
        """Raise the error with which `write` would refuse documents."""
        for put in self._prepared(self._state(), puts):
            document_as_json(put)

    def state(self) -> State:
        """Return the present state."""
        return self._state()


def with_seeds(state: State, shared: SharedSeeds | None) -> State:
    """Return the state of a partition that ranks by the seeds of all."""
    snapshot = state.snapshot
    engines = Engines(snapshot.bm25_engine, SharedSeedsEngine(snapshot, shared), shared)
    return replace(state, searcher=Searcher(snapshot, state.info.defaults, engines))


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
