"""One block: postings added up, and what passes gathered."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from klsa_search.compiled import compiled
from klsa_search.search.engine import state as s
from klsa_search.search.engine.memory import float32_at, int32_at, int64_at
from klsa_search.search.engine.scan import LANES, add_postings, find, lowest_bit, mask_above
from klsa_search.search.engine.terms import State, Table
from klsa_search.selection import LOW, Keys, select_largest


@compiled
def add_terms(
    table: Table,
    begin: int,
    end: int,
    accumulator: npt.NDArray[np.float32],
    documents: npt.NDArray[np.int32],
    weights: npt.NDArray[np.float32],
    first: int,
) -> int:
    """Add the block's postings of terms begin to end; returns how many."""
    added = 0
    for j in range(begin, end):
        low, high = table[s.FROM, j], table[s.TO, j]
        times = np.float32(table[s.TIMES, j])
        add_postings(accumulator, documents[low:high], weights[low:high], np.int32(first), times)
        added += high - low
    return added


@compiled
def walk(
    state: State,
    table: Table,
    terms: int,
    accumulator: npt.NDArray[np.float32],
    documents: npt.NDArray[np.int32],
    first: int,
    k: int,
    held: int,
    least: int,
) -> tuple[int, int]:
    """Keep what passes of a block with a handful of postings, and clear behind."""
    keys = int64_at(state[s.KEYS], s.buffer_size(k))
    for j in range(terms):
        for i in range(table[s.FROM, j], table[s.TO, j]):
            document = int(documents[i])
            score = int(accumulator[document - first] * state[s.GRID])
            accumulator[document - first] = 0
            held, least = _keep(keys, score, document, k, held, least)
    return held, least


@compiled
def scan_block(
    state: State,
    table: Table,
    optional: int,
    slack: int,
    first: int,
    span: int,
    k: int,
    held: int,
    least: int,
) -> tuple[int, int]:
    """Keep what passes of a block, looking the optional terms up, strongest first."""
    postings = int64_at(state[s.STARTS], state[s.TERMS] + 1)[state[s.TERMS]]
    documents = int32_at(state[s.POSTINGS_DOCUMENTS], postings)
    weights = float32_at(state[s.POSTINGS_WEIGHTS], postings)
    accumulator = float32_at(state[s.ACCUMULATOR], span)
    keys = int64_at(state[s.KEYS], s.buffer_size(k))
    grid = state[s.GRID]
    for place in range(0, span, LANES):
        bar = np.float32(((least >> 32) - slack) / grid)
        mask = mask_above(state[s.ACCUMULATOR] + 4 * place, bar)
        while mask != 0:
            offset = place + lowest_bit(mask)
            mask &= mask - np.uint64(1)
            score = int(accumulator[offset] * grid)
            document = first + offset
            rest = slack
            j = optional - 1
            while j >= 0 and score + rest > least >> 32:
                low, high = table[s.FROM, j], table[s.TO, j]
                if high > low:
                    found = find(documents, low, high, document)
                    if documents[found] == document:
                        score += int(weights[found] * grid) * table[s.TIMES, j]
                rest -= table[s.BOUND, j]
                j -= 1
            held, least = _keep(keys, score, document, k, held, least)
    return held, least


@compiled
def _keep(keys: Keys, score: int, document: int, k: int, held: int, least: int) -> tuple[int, int]:
    """Put a key into the buffer if it passes; cut back a full buffer, which raises the bar."""
    key = (score << 32) | (LOW - document)
    if key <= least:
        return held, least
    keys[held] = key
    held += 1
    if held < len(keys):
        return held, least
    select_largest(keys, held, k)
    return k, keys[k - 1]
