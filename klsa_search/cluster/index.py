"""An index whose searches are answered by shards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from klsa_search.cluster.asking import Replicas
from klsa_search.cluster.live import LiveShards
from klsa_search.cluster.spread import spread
from klsa_search.collection import Document
from klsa_search.errors import StoreError, WritingRefused
from klsa_search.search.index import Index
from klsa_search.search.pickling import reopened
from klsa_search.search.ranking import Ranking
from klsa_search.search.state import State
from klsa_search.search.writing import WriteResult


class Fleet(Protocol):
    """Has processes that answer for the shards of generations."""

    def replicas(self, generation: Path, tokenizer: str | None) -> Replicas:
        """Those of one generation, once they are there; they stay while somebody holds them."""


class SpreadIndex(Index):
    """The index of a generation; what it answers, and all it can do, is the same as of `Index`.

    Shards answer the default ranking and BM25. All else this process answers by itself, of the
    same files.
    """

    def __init__(self, generation: Path, fleet: Fleet) -> None:
        self._fleet = fleet
        self._of_generation: tuple[Path, Replicas] | None = None
        super().__init__(generation)

    @property
    def replicas(self) -> Replicas:
        """Those of the generation in use; StoreError where its D is whole, which has none."""
        if self._of_generation is None:
            raise StoreError(
                f"`{self.path}` cannot be searched by a cluster: its expansion is not "
                "sparse; rebuild it with --expansion sparse, or serve it without "
                "--cluster"
            )
        return self._of_generation[1]

    def _searched(self, state: State) -> State:
        facts, snapshot = state.facts, state.snapshot
        if snapshot.cut is None:
            return state
        if self._of_generation is None or self._of_generation[0] != facts.path:
            replicas = self._fleet.replicas(facts.path, facts.settings.tokenizer)
            self._of_generation = facts.path, replicas
        built = snapshot.bm25.postings.parts[0].postings.size
        shards = LiveShards(self._of_generation[1], built, facts.last)
        ranking = Ranking(snapshot, facts.defaults, spread(snapshot, shards))
        return replace(state, ranking=ranking)

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
        """Pickle as an index that needs no shards."""
        return reopened, (Index, self.path.absolute().parent, self.settings.tokenizer)
