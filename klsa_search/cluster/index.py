"""An index whose searches are executed by shards.

A query takes two rounds. In round 1 each shard returns its best documents by the query kernel; the
merged list gives the seeds, whose rows and features give the candidates. In round 2 each shard
scores its own candidates, and returns what rescoring adds to the best of them; the coordinator
applies the same rescorings as a single machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from klsa_search.cluster.calls import Replicas
from klsa_search.cluster.host import RemoteShards
from klsa_search.cluster.messages import (
    RerankRequest,
    RerankScores,
    ShardCandidates,
    ShardHits,
    ShardRequest,
)
from klsa_search.cluster.search import Read, Search
from klsa_search.cluster.shard import Share, merged
from klsa_search.collection.model import Document
from klsa_search.core.array_types import DocumentMask
from klsa_search.errors import StoreError, WritingRefused
from klsa_search.search.engine.formulas import Query, distinct_query
from klsa_search.search.engine.mask import Mask
from klsa_search.search.engine.reverse_neighbours import ReverseNeighbours
from klsa_search.search.engine.seeds import MAX_SEEDS, KlsaParams
from klsa_search.search.engine.workspace import MAX_TERMS, EngineQuery, IndexArrays, TopDocs
from klsa_search.search.index import Index
from klsa_search.search.models import NO_MODELS, Models
from klsa_search.search.passage_searcher import PassageSearcher
from klsa_search.search.pickling import reopen
from klsa_search.search.searcher import Engines, Searcher
from klsa_search.search.snapshot import Snapshot
from klsa_search.search.state import State
from klsa_search.search.writing import WriteResult

_F = np.float32


class Shards(Protocol):
    """The shards of one state of an index, which are called in parallel."""

    @property
    def shares(self) -> Sequence[Share]:
        """Doc ids of each shard."""

    def best(
        self, wanted: Sequence[ShardRequest], masks: Sequence[DocumentMask] | None
    ) -> Sequence[Sequence[ShardHits]]:
        """Run round 1, with a mask for each shard; return answers by shard, then by query."""

    def scores(
        self,
        request: Sequence[RerankRequest],
        asked: Sequence[Sequence[ShardCandidates]],
    ) -> Sequence[Sequence[RerankScores]]:
        """Run round 2; `asked` and the answers are by shard, then by query."""


class ShardedBm25Engine:
    """Exact BM25 by shards; see `Bm25Engine`."""

    def __init__(self, snapshot: Snapshot, shards: Shards) -> None:
        self._kernel, self._shards = snapshot.query_kernel, shards

    def top(
        self,
        queries: Sequence[Sequence[int]],
        k: int,
        mask: Mask | None = None,
        *,
        totals: bool = False,
    ) -> list[TopDocs]:
        """Return the k best documents of each query; one round for all queries."""
        k = min(k, self._kernel.size)
        count, within = (k, 0) if mask is None else (0, k)
        none = Query(np.zeros(0, np.int64), np.zeros(0, np.int64))
        wanted = [ShardRequest(terms, none, count, within, 0, 0, totals) for terms in queries]
        answers = self._shards.best(wanted, _masks(self._shards, mask))
        tops = []
        for found in zip(*answers, strict=True):
            lists = [(each.documents, each.steps) for each in found]
            if mask is not None:
                lists = [(each.allowed_documents, each.allowed_steps) for each in found]
            positions, steps = merged(lists, k)
            scores = (steps * self._kernel.postings.step).astype(_F)
            total = sum(each.total for each in found) if totals else 0
            tops.append(TopDocs(positions.astype(np.int32), scores, total))
        return tops


class ShardedKlsaEngine:
    """The default ranking by shards; see `KlsaEngine`."""

    def __init__(self, snapshot: Snapshot, shards: Shards) -> None:
        own, cut = snapshot.klsa_engine, snapshot.sparse_expansion
        if own is None or cut is None:
            raise ValueError("shards need a sparse expansion")
        self._own, self._shards = own, shards
        self._read = Read(
            snapshot.query_kernel,
            IndexArrays.of(
                snapshot.query_kernel, cut, snapshot.reverse or ReverseNeighbours.none()
            ),
            snapshot.live,
            snapshot.latent_dimensions,
            min(snapshot.neighbour_count, cut.rows.shape[1]),
        )

    def top(
        self,
        queries: Sequence[Sequence[int]],
        k: int,
        params: KlsaParams,
        mask: Mask | None = None,
        *,
        totals: bool = False,
    ) -> list[TopDocs | None]:
        """Return the k best documents of each query; two rounds for all queries.

        Queries of more than 256 terms, and for thousands of results, are executed here.
        """
        asked = EngineQuery(min(k, self._read.kernel.size), mask, totals)
        spread = [len(terms) <= MAX_TERMS for terms in queries]
        if params.seeds > MAX_SEEDS or not asked.k or not all(spread):
            return self._own.top(queries, k, params, mask, totals=totals)
        depths = self._own.depths(asked, params)
        kept = [distinct_query(self._read.kernel, terms) for terms in queries]
        count = max(params.best, asked.k)
        wanted = [
            ShardRequest(terms, query, count, depths.filtered, params.best, params.seeds, totals)
            for terms, query in zip(queries, kept, strict=True)
        ]
        found = zip(*self._shards.best(wanted, _masks(self._shards, mask)), strict=True)
        searches = [
            Search(self._read, query, asked, params, depths, list(each))
            for query, each in zip(kept, found, strict=True)
        ]
        open_ = [each for each in searches if each.open]
        if open_:
            candidates = [
                [each.candidates(share) for each in open_] for share in self._shards.shares
            ]
            scored = self._shards.scores([each.request() for each in open_], candidates)
            for each, answers in zip(open_, zip(*scored, strict=True), strict=True):
                each.take(list(answers))
        return [
            each.top if each.top is not None
            else self._own.top([terms], k, params, mask, totals=totals)[0]
            for each, terms in zip(searches, queries, strict=True)
        ]  # fmt: skip


def spread(snapshot: Snapshot, shards: Shards) -> Engines:
    """Return engines of a snapshot that execute searches by shards."""
    return Engines(ShardedBm25Engine(snapshot, shards), ShardedKlsaEngine(snapshot, shards))


def _masks(shards: Shards, mask: Mask | None) -> list[DocumentMask] | None:
    if mask is None:
        return None
    allowed = mask.allowed
    return [share.of(allowed).astype(np.bool_) for share in shards.shares]


class ShardCluster(Protocol):
    """Starts processes that serve the shards of generations."""

    def replicas(self, generation: Path, tokenizer: str | None) -> Replicas:
        """Return the replicas of a generation when they are ready; they end with the object."""


class ShardedIndex(Index):
    """An `Index` whose searches by the default ranking and BM25 are executed by shards.

    Results are the same; all other operations, and the search of passages, run in this process, on
    the same files.
    """

    def __init__(
        self, generation: Path, fleet: ShardCluster, *, models: Models = NO_MODELS
    ) -> None:
        self._fleet = fleet
        self._of_generation: tuple[Path, Replicas] | None = None
        super().__init__(generation, models=models)

    @property
    def replicas(self) -> Replicas:
        """Replicas of the current generation; StoreError if its expansion is not sparse."""
        if self._of_generation is None:
            raise StoreError(
                f"`{self.path}` cannot be searched by a cluster: its expansion is not "
                "sparse; rebuild it with --expansion sparse, or serve it without "
                "--cluster"
            )
        return self._of_generation[1]

    def _wrap(self, state: State) -> State:
        facts, snapshot = state.info, state.snapshot
        if snapshot.sparse_expansion is None:
            return state
        if self._of_generation is None or self._of_generation[0] != facts.path:
            replicas = self._fleet.replicas(facts.path, facts.settings.tokenizer)
            self._of_generation = facts.path, replicas
        built = snapshot.query_kernel.postings.parts[0].postings.size
        shards = RemoteShards(self._of_generation[1], built, facts.last)
        engines = spread(snapshot, shards)
        if state.passages is None:
            return replace(state, searcher=Searcher(snapshot, facts.defaults, engines))
        ranking = PassageSearcher(snapshot, facts.defaults, state.passages, engines)
        return replace(state, searcher=ranking)

    def write(self, puts: Sequence[Document] = (), deletes: Sequence[str] = ()) -> WriteResult:
        """Write one batch, as `Index` does.

        WritingRefused as well if a shard reads the log through a network file system.
        """
        if self._of_generation and (kind := self._of_generation[1].network):
            raise WritingRefused(
                f"index `{self.name}` is read-only: a machine of the cluster reads "
                f"it through a network file system ({kind}), where SQLite's "
                "write-ahead log does not work; add the documents to the source "
                "and rebuild, or serve it from one machine"
            )
        return super().write(puts, deletes)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[object, ...]]:
        """Pickle as an index without shards."""
        return reopen, (Index, self.path.absolute().parent, self.settings.tokenizer)
