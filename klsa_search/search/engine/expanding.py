"""The engine of the default ranking where D is kept cut."""

from __future__ import annotations

import struct
import threading
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.arrays import Positions, Scores
from klsa_search.expansion.cut import CutExpansion
from klsa_search.kernel import Postings
from klsa_search.kernel.bounds import Bounds
from klsa_search.search.engine.expanded import search_expanded, search_expanded_many
from klsa_search.search.engine.room import Held, Room, directory
from klsa_search.search.engine.scan import LANES
from klsa_search.search.engine.seeds import MAX_SEEDS, Mix
from klsa_search.search.engine.state import MAX_TERMS, K, Scratch

Answer = tuple[Positions, Scores]

RESULTS: Final = 2**18
"""Results that one call of the compiled search makes room for."""

COVERED: Final = (128, 1024)
"""Candidates whose T is computed in full, at least and at most; 8 a result between."""
COMPARED: Final = (32, 192)
"""Candidates whose E is computed in full; 3 a result between."""


class ExpandingEngine:
    """The default ranking by a cut D; immutable, safe to share between threads.

    Each thread has scratch memory of its own: 4 bytes a document, 2 a feature, 50 a candidate,
    and for each of the best 4 bytes a term. What is exact and what is not: see `expanded`. The
    number of threads changes nothing.
    """

    def __init__(
        self,
        postings: Postings,
        bounds: Bounds,
        idf: npt.NDArray[np.float32],
        expansion: CutExpansion,
        dimensions: int,
        neighbours: int,
    ) -> None:
        self._postings, self._bounds = postings, bounds
        self._held = Held.of(postings, bounds, idf, expansion)
        self._neighbours = min(neighbours, expansion.rows.shape[1])
        self._dimensions, self._features = dimensions, len(expansion.mean)
        self._of_thread = threading.local()

    def best(self, terms: Sequence[int], k: int, mix: Mix) -> Answer | None:
        """Positions and scores of the k best documents, best first, ties by document order.

        Only scores above 0. None where the compiled search cannot take the query: see `Engine`;
        where there are more than 1,500 seeds; and where there is no document.
        """
        k = min(k, self._postings.size)
        if len(terms) > MAX_TERMS or mix.seeds > MAX_SEEDS or not k:
            return None
        scratch, arrays = self._memory(k, mix)
        struct.pack_into(f"{len(terms) + 2}q", scratch.bytes, K * 8, k, len(terms), *terms)
        found = search_expanded(scratch.state, arrays, mix, _depths(k), *scratch.addresses)
        if found < 0:
            return None
        return scratch.documents[:found].copy(), scratch.scores[:found].copy()

    def best_of_many(
        self, queries: Iterable[Sequence[int]], k: int, mix: Mix
    ) -> list[Answer | None]:
        """Answer each query as `best` does, many in one call that runs without the GIL."""
        asked = list(queries)
        k = min(k, self._postings.size)
        if mix.seeds > MAX_SEEDS or not k:
            return [None] * len(asked)
        at_once = max(1, RESULTS // k)
        parts = (asked[begin : begin + at_once] for begin in range(0, len(asked), at_once))
        return [answer for part in parts for answer in self._answers(part, k, mix)]

    def _answers(self, queries: Sequence[Sequence[int]], k: int, mix: Mix) -> list[Answer | None]:
        ends = np.cumsum([len(terms) for terms in queries])
        flat = np.fromiter((term for terms in queries for term in terms), np.int64, ends[-1])
        documents = np.empty((len(queries), k), np.int32)
        scores = np.empty((len(queries), k), np.float32)
        counts = np.empty(len(queries), np.int64)
        scratch, arrays = self._memory(k, mix)
        search_expanded_many(
            scratch.state, arrays, mix, _depths(k), flat, ends,
            documents, scores, counts,
        )  # fmt: skip
        return [
            (documents[number, :found].copy(), scores[number, :found].copy())
            if found >= 0
            else None
            for number, found in enumerate(counts.tolist())
        ]

    def _memory(self, k: int, mix: Mix) -> tuple[Scratch, npt.NDArray[np.int64]]:
        """Memory of this thread, made anew when more is asked for than ever before."""
        wide, best, seeds = max(k, mix.best), mix.best, mix.seeds
        held: _Memory | None = getattr(self._of_thread, "memory", None)
        if held is None or held.wide < wide or held.best < best or held.seeds < seeds:
            if held is not None:
                wide, best = max(wide, held.wide), max(best, held.best)
                seeds = max(seeds, held.seeds)
            scratch = Scratch(self._postings, self._bounds, wide)
            room = self._room(wide, best, seeds)
            held = _Memory(wide, best, seeds, scratch, room, directory(self._held, room))
            self._of_thread.memory = held
        return held.scratch, held.directory

    def _room(self, wide: int, best: int, seeds: int) -> Room:
        size = wide + min(self._postings.size, seeds * self._held.rows.shape[1]) + 1
        scores = np.zeros(size + LANES, np.float32)
        return Room(
            slots=np.zeros(self._postings.size, np.int32),
            among=np.zeros(self._postings.size // 32 + 1, np.uint32),
            documents=np.zeros(size, np.int32),
            lexical=np.zeros(wide + 1, np.float32),
            expanded=np.zeros(size, np.float32),
            covered=np.zeros(wide + 1, np.float32),
            scores=scores,
            bits=scores.view(np.int32),
            chosen=np.zeros(size, np.int32),
            keys=np.zeros(size, np.int64),
            spare=np.zeros(size, np.int64),
            impacts=np.zeros(MAX_TERMS * (best + 1), np.float32),
            near=np.zeros(self._neighbours + 1, np.int32),
            shares=np.zeros(self._neighbours + 1, np.float32),
            worth=np.zeros(MAX_TERMS, np.float32),
            half=np.ones(MAX_TERMS, np.float32),
            weights=np.zeros(seeds, np.float32),
            sums=np.zeros(self._features, np.int16),
            place=np.zeros(self._held.cards.shape[1], np.int16),
            fine=np.zeros(self._dimensions, np.float32),
        )


class _Memory(NamedTuple):
    wide: int  # documents of the query kernel
    best: int
    seeds: int
    scratch: Scratch
    room: Room  # owns what the directory tells the addresses of
    directory: npt.NDArray[np.int64]


def _depths(k: int) -> tuple[int, int]:
    return (
        min(max(COVERED[0], 8 * k), COVERED[1]),
        min(max(COMPARED[0], 3 * k), COMPARED[1]),
    )
