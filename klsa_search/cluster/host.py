"""Processes that serve shards, and their client for one state of an index."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from klsa_search.analysis.tokenizers import trust
from klsa_search.cluster.calls import Replicas, call_all, current_shard_tally
from klsa_search.cluster.messages import (
    RerankRequest,
    RerankScores,
    ShardCandidates,
    ShardHits,
    ShardRequest,
)
from klsa_search.cluster.shard import Shard, Share, shard_postings
from klsa_search.kernels.postings import Postings
from klsa_search.search.engine.formulas import Query
from klsa_search.search.engine.mask import Mask
from klsa_search.search.log_tailer import LogTailer, PointInTime
from klsa_search.search.state import State, open_state
from klsa_search.storage.files import network_file_system
from klsa_search.storage.log import LogPosition

MAX_STATES: Final = 3
"""Number of recent states of a shard that a host keeps, for clients that lag behind writes."""


class Host:
    """Serves one shard of a generation; safe to share between threads.

    generation  folder of the generation, on storage shared by all machines
    number      number of the shard, of `shards`
    tokenizer   trusted tokenizer, if the index has one
    """

    def __init__(
        self, generation: str, number: int, shards: int, tokenizer: str | None = None
    ) -> None:
        if tokenizer is not None:
            trust(tokenizer)
        self._built = open_state(Path(generation))
        self._following, self._state = LogTailer(self._built), self._built
        self._share = Share(len(self._built.snapshot), number, shards)
        self._whole = self._built.snapshot.query_kernel.postings.parts[0].postings
        self._postings = shard_postings(self._built.snapshot, self._share)
        self._shards: dict[LogPosition, Shard] = {}
        self._taking_up = threading.Lock()
        self._shard(self._built.info.last)

    def ready(self) -> str | None:
        """Open and compile, then return the network file system of the index, or None."""
        shard = self._shard(self._built.info.last)
        none = Query(np.zeros(0, np.int64), np.zeros(0, np.int64))
        first = range(len(self._built.snapshot.vocabulary))[:1]  # an empty index has no term
        shard.best(ShardRequest(list(first), none, 1, 1, 1, 1, totals=True), None)
        return network_file_system(self._built.info.path)

    def process(self) -> int:
        """Return the ID of the process."""
        return os.getpid()

    def best(
        self, last: LogPosition, wanted: Sequence[ShardRequest], packed: bytes | None
    ) -> list[ShardHits]:
        """Answer round 1 of some queries, in the state after these writes."""
        shard = self._shard(last)
        mask = self._mask(shard, packed)
        return [shard.best(each, mask) for each in wanted]

    def scores(
        self,
        last: LogPosition,
        request: Sequence[RerankRequest],
        asked: Sequence[ShardCandidates],
    ) -> list[RerankScores]:
        """Answer round 2 of some queries."""
        shard = self._shard(last)
        return [shard.scores(*each) for each in zip(request, asked, strict=True)]

    def _shard(self, last: LogPosition) -> Shard:
        with self._taking_up:
            shard = self._shards.pop(last, None)
            if shard is None:
                state = self._state_of(last)
                shard = Shard(state.snapshot, self._share, self._own(state))
            self._shards[last] = shard  # moves it to the end
            for oldest in list(self._shards)[:-MAX_STATES]:
                del self._shards[oldest]
            return shard

    def _state_of(self, last: LogPosition) -> State:
        following = self._following
        if last.seq < self._state.info.last.seq:
            following = LogTailer(self._built)  # an earlier state, for a client that lags behind
            return following.state(self._built, moment=PointInTime(last, {}))
        self._state = following.state(self._state, moment=PointInTime(last, {}))
        return self._state

    def _own(self, state: State) -> Postings:
        """Return the postings of the build; they change only if writes change the mean length."""
        whole = state.snapshot.query_kernel.postings.parts[0].postings
        if whole is not self._whole:
            self._whole, self._postings = whole, shard_postings(state.snapshot, self._share)
        return self._postings

    @staticmethod
    def _mask(shard: Shard, packed: bytes | None) -> Mask | None:
        return None if packed is None else shard.mask(unpacked(packed, shard.size))


def packed(allowed: npt.NDArray[np.bool_]) -> bytes:
    """Return a mask as bits."""
    return np.packbits(allowed).tobytes()


def unpacked(bits: bytes, count: int) -> npt.NDArray[np.bool_]:
    """Return the mask of bits: (count,)."""
    return np.unpackbits(np.frombuffer(bits, np.uint8), count=count).astype(np.bool_)


_turn = count()


class RemoteShards:
    """The shards of one state of an index, served by replicas: see `index.Shards`.

    built  number of doc ids of the build
    last   last write of the state
    """

    def __init__(self, replicas: Replicas, built: int, last: LogPosition) -> None:
        self._replicas, self._last = replicas, last
        self.shares = [Share(built, each, replicas.shards) for each in range(replicas.shards)]

    def best(
        self, wanted: Sequence[ShardRequest], masks: Sequence[npt.NDArray[np.bool_]] | None
    ) -> list[list[ShardHits]]:
        """Run round 1; without failed shards, if partial answers are allowed."""

        def fits(shard: int, answer: Any) -> bool:
            return _each(answer, ShardHits, len(wanted)) and all(
                len(found.documents) <= query.results
                and self._has(shard, found.documents)
                and self._has(shard, found.allowed_documents)
                and len(found.saturations) == min(len(found.documents), query.best)
                for query, found in zip(wanted, answer, strict=True)
            )

        arguments = [
            (self._last, wanted, None if masks is None else packed(masks[shard]))
            for shard in range(len(self.shares))
        ]
        return self._asked("best", arguments, fits)

    def scores(
        self,
        request: Sequence[RerankRequest],
        asked: Sequence[Sequence[ShardCandidates]],
    ) -> list[list[RerankScores]]:
        """Run round 2 at the shards that answered round 1."""

        def fits(shard: int, answer: Any) -> bool:
            return _each(answer, RerankScores, len(request)) and all(
                self._has(shard, scored.documents)
                and len(scored.documents) == len(scored.scores) == len(scored.compared)
                for scored in answer
            )

        missing = current_shard_tally().failed
        arguments = [
            None if shard in missing else (self._last, request, asked[shard])
            for shard in range(len(self.shares))
        ]
        return self._asked("scores", arguments, fits)

    def _has(self, shard: int, documents: npt.NDArray[np.integer]) -> bool:
        return bool(self.shares[shard].holds(documents).all())

    def _asked(self, method: str, arguments: Sequence[Any], fits: Any) -> list[Any]:
        answers = call_all(
            self._replicas, method, arguments, fits, first=next(_turn) % self._replicas.replicas
        )
        current_shard_tally().add(len(self.shares), answers.failed)
        return [answers.given[shard] for shard in sorted(answers.given)]


def _each(answer: Any, kind: type, count: int) -> bool:
    """Return whether an answer is a list of `count` values of a type."""
    return (
        isinstance(answer, list)
        and len(answer) == count
        and all(isinstance(each, kind) for each in answer)
    )
