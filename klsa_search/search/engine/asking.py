"""Asking the compiled search: one query, or many in one call that runs without the GIL."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from klsa_search.arrays import Positions, Scores
from klsa_search.search.engine.mask import Mask
from klsa_search.search.engine.record import ASKED_AT, MAX_TERMS, Scratch


class Top(NamedTuple):
    """The best documents of a query, best first, ties by document order.

    positions, scores  of the documents that may be answered and score above 0, k at most
    total              of these, how many hold a term of the query, or were answered if that is
                       more; 0 where it was not asked for
    """

    positions: Positions
    scores: Scores
    total: int


class Asked(NamedTuple):
    """What is asked for with every query of a call."""

    k: int
    mask: Mask | None = None
    totals: bool = False


def ask_one(
    scratch: Scratch, asked: Asked, terms: Sequence[int], search: Callable[..., int], *given: Any
) -> Top:
    """Answer one query of at most `MAX_TERMS` terms."""
    mask = 0 if asked.mask is None else asked.mask.address
    count = len(terms)
    struct.pack_into(
        f"{count + 4}q", scratch.bytes, ASKED_AT, mask, asked.totals, asked.k, count, *terms
    )
    found = search(scratch.record, *given)
    total = max(scratch.total(), found) if asked.totals else 0
    return Top(scratch.documents[:found].copy(), scratch.scores[:found].copy(), total)


def ask_many(
    scratch: Scratch,
    asked: Asked,
    queries: Sequence[Sequence[int]],
    search_many: Callable[..., None],
    *given: Any,
) -> list[Top | None]:
    """Answer each query as `ask_one` does; None for one of more than `MAX_TERMS` terms."""
    ends = np.cumsum([len(terms) for terms in queries])
    flat = np.fromiter((term for terms in queries for term in terms), np.int64, ends[-1])
    documents = np.empty((len(queries), asked.k), np.int32)
    scores = np.empty((len(queries), asked.k), np.float32)
    counts, totals = np.empty((2, len(queries)), np.int64)
    mask = 0 if asked.mask is None else asked.mask.address
    struct.pack_into("2q", scratch.bytes, ASKED_AT, mask, asked.totals)
    search_many(scratch.record, *given, flat, ends, documents, scores, counts, totals)
    return [
        Top(
            documents[number, :found].copy(),
            scores[number, :found].copy(),
            max(total, found) if asked.totals else 0,
        )
        if found >= 0
        else None
        for number, (found, total) in enumerate(zip(counts.tolist(), totals.tolist(), strict=True))
    ]


def fits(terms: Sequence[int]) -> bool:
    """Whether the compiled search has room for a query."""
    return len(terms) <= MAX_TERMS
