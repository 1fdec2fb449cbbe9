"""Searcher: choose an engine or ranker for a query and return its best documents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from itertools import chain
from typing import Final, NamedTuple, Self, TypeVar

import numpy as np
import numpy.typing as npt

from klsa_search._native import LocalSeeds, SharedSeeds
from klsa_search.core.array_types import DocIds, Scores
from klsa_search.core.deadlines import check_deadline
from klsa_search.core.lazy import lazy_property
from klsa_search.core.parameters import RankingSettings
from klsa_search.errors import QueryError
from klsa_search.lowrank.sparse_expansion import is_multiple_of_kernel
from klsa_search.search.engine.engine import MAX_SEEDS, KlsaParams, ScoreDetails
from klsa_search.search.engine.evidence import LOCAL, Evidence
from klsa_search.search.engine.mask import Mask, intersection
from klsa_search.search.engine.query_terms import QueryTerms
from klsa_search.search.engine.snapshot import Snapshot
from klsa_search.search.engine.top_docs import NO_HITS, Rank, TopDocs, best_of
from klsa_search.search.query.parser import ParsedQuery
from klsa_search.search.rankers import ranker_of
from klsa_search.search.rankers.klsa import klsa_params

Q = TypeVar("Q")
T = TypeVar("T")

CHUNK: Final = 64
"""Queries that a thread takes at once: enough to keep it busy, few enough to balance threads."""


def in_parallel(
    work: Callable[[Sequence[Q]], list[T]], queries: Iterable[Q], threads: int
) -> list[T]:
    """Call `work` with chunks of queries in threads; return the results in order of the queries.

    The first exception of a chunk is raised when all chunks before it are done.
    """
    queries_ = list(queries)
    chunks = [queries_[begin : begin + CHUNK] for begin in range(0, len(queries_), CHUNK)]
    if threads == 1 or len(chunks) <= 1:
        return list(chain.from_iterable(map(work, chunks)))
    with ThreadPoolExecutor(min(threads, len(chunks))) as pool:
        return list(chain.from_iterable(pool.map(work, chunks)))


EXHAUSTIVE_LIMIT: Final = 100
"""Documents up to which all are scored: the rows of few seeds would miss related documents."""


class SeedCandidates(NamedTuple):
    """What one of several partitions adds to the seeds of all.

    seeds   its best documents; None without words
    params  of the ranking, as the engine takes them
    step    value of one step of the scores by the query kernel
    """

    seeds: LocalSeeds | None
    params: KlsaParams
    step: float


class AllPartitions(NamedTuple):
    """What a search in one of several partitions needs of all of them.

    seeds     of the query, then those of passages if these count; none if it does not rank by seeds
    evidence  of the words of the query
    local     seeds that this partition found, likewise; none if they are not at hand
    """

    seeds: Sequence[SharedSeeds | None]
    evidence: Evidence
    local: Sequence[LocalSeeds | None] = ()


class TopRequest(NamedTuple):
    """Which documents a ranking returns.

    k        number of the best ones
    mask     documents to choose from; None for all. It changes no score
    totals   also count those of the mask that score above 0
    matches  also return which they are
    """

    k: int
    mask: Mask | None = None
    totals: bool = False
    matches: bool = False


class Searcher:
    """Ranks the documents of a snapshot; thread-safe.

    `parameters` are validated by the caller; `defaults` are those of the index.
    """

    _partitions: AllPartitions | None = None

    def __init__(self, snapshot: Snapshot, defaults: RankingSettings) -> None:
        self.snapshot, self._defaults = snapshot, defaults

    def within(self, partitions: AllPartitions) -> Self:
        """Return a searcher of one of several partitions, for one search."""
        _ = self._defaults_use_klsa_engine, self._default_params  # made once for all searches
        searcher = copy(self)
        searcher._partitions = partitions
        return searcher

    @property
    def evidence(self) -> Evidence:
        """Return the evidence of all documents, also of those of other partitions."""
        return LOCAL if self._partitions is None else self._partitions.evidence

    @property
    def explained_seeds(self) -> SharedSeeds | None:
        """Return the seeds of several partitions that scores depend on, if they are explained."""
        return self._seeds if self._seeds is not None and self._seeds.names else None

    @property
    def _seeds(self) -> SharedSeeds | None:
        partitions = self._partitions
        return None if partitions is None or not partitions.seeds else partitions.seeds[0]

    def seed_candidates(
        self, query: ParsedQuery, parameters: RankingSettings
    ) -> list[SeedCandidates]:
        """Return what the documents of a partition add to the seeds of all; then their passages.

        Empty if scores do not depend on seeds. Cost: a search by the query kernel.
        """
        if not ranks_by_seeds(parameters):
            return []
        params, snapshot = self.params(parameters), self.snapshot
        if params.seeds > MAX_SEEDS:
            raise QueryError(
                f"z = {params.seeds}: an index in partitions ranks by at most {MAX_SEEDS} "
                "seeds; choose fewer, or build the index with one partition",
                field="z",
            )
        seeds = snapshot.klsa_engine.seeds(query.terms, params)
        return [SeedCandidates(seeds, params, snapshot.query_kernel.postings.step)]

    def uses_passages(self, parameters: RankingSettings) -> bool:
        """Return whether passages count."""
        return False

    def scores(self, query: ParsedQuery, parameters: RankingSettings) -> Scores:
        """Return the scores of all documents: (N,) float32."""
        if query.stop_scores is None:
            scores = self._scores(query.terms, parameters)
        else:
            scores = query.stop_scores * self.snapshot.live_docs()
        return scores if query.mask is None else scores * query.mask.allowed

    def _scores(self, terms: Sequence[int], parameters: RankingSettings) -> Scores:
        snapshot = self.snapshot
        if snapshot.small and self._allows_klsa_engine(parameters):
            # In a small collection it rescores all candidates.
            tops = self._klsa_top([terms], parameters, TopRequest(len(snapshot)))
            if tops is not None:
                (top,) = tops
                scores = np.zeros(len(snapshot), np.float32)
                scores[top.doc_ids] = top.scores
                return scores
        return self._score_all(terms, parameters)

    def top(
        self, queries: Sequence[ParsedQuery], parameters: RankingSettings, request: TopRequest
    ) -> list[TopDocs]:
        """Return the best documents of each query.

        Queries that allow all documents go through the engines in one call, without the GIL.
        """
        plain = [
            query.terms for query in queries if query.mask is None and query.stop_scores is None
        ]
        if len(plain) == len(queries):
            return self._top(plain, parameters, request)
        tops = list[TopDocs]()
        for query in queries:
            allowed = intersection(request.mask, query.mask)
            if query.stop_scores is not None:
                scores = query.stop_scores * self.snapshot.live_docs()
                tops.append(best_of(scores, request.k, allowed))
            else:
                tops += self._top([query.terms], parameters, request._replace(mask=allowed))
        return tops

    def ranking(self, query: ParsedQuery, parameters: RankingSettings) -> Rank:
        """Return the ranking of a query, which counts all documents of a mask that match."""

        def rank(k: int, mask: Mask | None, *, matches: bool = False) -> TopDocs:
            (top,) = self.top([query], parameters, TopRequest(k, mask, True, matches))
            if matches and top.matches is None:  # a query without seeds, or an empty index
                top = top._replace(matches=Mask(np.zeros(len(self.snapshot), np.bool_)))
            return top

        return rank

    def _top(
        self, queries: list[Sequence[int]], parameters: RankingSettings, request: TopRequest
    ) -> list[TopDocs]:
        mask = self.snapshot.allowed(request.mask)
        if mask is not request.mask:
            request = request._replace(mask=mask)
        if parameters.ranker == "bm25" and not parameters.boost_factors:
            k, mask, totals, matches = request
            return self.snapshot.bm25_engine.top(queries, k, mask, totals=totals, matches=matches)
        if self._allows_klsa_engine(parameters):
            tops = self._klsa_top(queries, parameters, request)
            if tops is not None:
                return tops
        every = (self._score_all(terms, parameters) for terms in queries)
        return [best_of(scores, request.k, request.mask) for scores in every]

    def explain(
        self,
        terms: Sequence[int],
        doc_ids: DocIds,
        exact: npt.NDArray[np.uint8],
        parameters: RankingSettings,
    ) -> ScoreDetails:
        """Return what scores by the engine of the default ranking consist of.

        exact  which parts of each score are not estimates: see `TopDocs`
        """
        engine = self.snapshot.klsa_engine
        return engine.explain(terms, doc_ids, exact, self.params(parameters), self._seeds)

    def params(self, parameters: RankingSettings) -> KlsaParams:
        """Return the parameters as the engine takes them: for those of the index, made once."""
        is_default = parameters is self._defaults
        return self._default_params if is_default else klsa_params(self.snapshot, parameters)

    def _klsa_top(
        self, queries: list[Sequence[int]], parameters: RankingSettings, request: TopRequest
    ) -> list[TopDocs] | None:
        """Return the best documents by the engine of the default ranking; None if it cannot."""
        check_deadline()
        params, (k, mask, totals, matches) = self.params(parameters), request
        engine = self.snapshot.klsa_engine
        if self._partitions is None:
            return engine.top(queries, k, params, mask, totals=totals, matches=matches)
        seeds = self._seeds
        if seeds is None:
            return [NO_HITS] * len(queries)
        (terms,) = queries
        local = next(iter(self._partitions.local), None)
        top = engine.top_shared(
            terms, k, params, seeds, mask, local=local, totals=totals, matches=matches
        )
        return [top]

    def _score_all(self, terms: Sequence[int], parameters: RankingSettings) -> Scores:
        check_deadline()
        snapshot, query = self.snapshot, QueryTerms.of(terms)
        scores = ranker_of(parameters.ranker).scores(snapshot, query, parameters, self.evidence)
        return scores if snapshot.live is None else scores * snapshot.live.allowed

    def _allows_klsa_engine(self, parameters: RankingSettings) -> bool:
        few = self.snapshot.query_kernel.counts.documents <= EXHAUSTIVE_LIMIT
        if few and self._partitions is None:
            return False
        if parameters is self._defaults:
            return self._defaults_use_klsa_engine
        return ranks_with_klsa_engine(parameters)

    @lazy_property
    def _defaults_use_klsa_engine(self) -> bool:
        return ranks_with_klsa_engine(self._defaults)

    @lazy_property
    def _default_params(self) -> KlsaParams:
        return klsa_params(self.snapshot, self._defaults)


def ranks_with_klsa_engine(parameters: RankingSettings) -> bool:
    """Return whether the engine computes a ranking."""
    return ranks_by_seeds(parameters) and not (parameters.exact or parameters.boost_factors)


def ranks_by_seeds(parameters: RankingSettings) -> bool:
    """Return whether scores depend on seed documents, and D is a multiple of K."""
    return (
        parameters.ranker == "klsa"
        and parameters.alpha > 0
        and is_multiple_of_kernel(parameters.spectral, parameters.gamma, parameters.head)
    )
