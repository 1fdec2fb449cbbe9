"""The terms of a query: merged, ordered by strength, and what they can reach in a block."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from klsa_search.compiled import compiled
from klsa_search.kernel.bounds import DEPTHS
from klsa_search.search.engine import state as s
from klsa_search.search.engine.memory import int32_at, int64_at

State = npt.NDArray[np.int64]
Table = npt.NDArray[np.int64]

CHEAP = 256  # postings of optional terms below which they are simply added
SHARE = 4  # optional terms may hold a 4th of the threshold
OPTIONAL_K = 100  # k above which nothing is optional: the threshold is too low to pay


@compiled
def table_of(state: State) -> Table:
    """View the table of the query's terms; its rows are named in `state`."""
    return int64_at(state[s.TABLE], s.TABLE_ROWS * s.MAX_TERMS).reshape(s.TABLE_ROWS, s.MAX_TERMS)


@compiled
def ask(state: State, terms: npt.NDArray[np.int64], first: int, after: int) -> bool:
    """Put a query of some terms into the state; whether it has room for them."""
    asked = after - first
    if asked > s.MAX_TERMS:
        return False
    state[s.COUNT] = asked
    for i in range(asked):
        state[s.QUERY + i] = terms[first + i]
    return True


@compiled
def distinct_terms(state: State, table: Table) -> int:
    """Fill the table with the query's distinct known terms, weakest first; returns how many."""
    starts = int64_at(state[s.STARTS], state[s.TERMS] + 1)
    maxima = int32_at(state[s.MAXIMA], state[s.TERMS])
    rows = int32_at(state[s.ROWS], state[s.TERMS])
    terms = 0
    for i in range(state[s.COUNT]):
        term = state[s.QUERY + i]
        if term < 0:
            continue
        times = 1
        place = terms
        for j in range(terms):
            if table[s.TERM, j] == term:  # asked for again: it only gets stronger
                times = table[s.TIMES, j] + 1
                place = j
                break
        if place == terms:
            terms += 1
        largest = times * maxima[term]
        while place > 0 and table[s.LARGEST, place - 1] > largest:
            _copy_term(table, place - 1, place)
            place -= 1
        while place < terms - 1 and table[s.LARGEST, place + 1] < largest:
            _copy_term(table, place + 1, place)
            place += 1
        table[s.TERM, place] = term
        table[s.TIMES, place] = times
        table[s.LARGEST, place] = largest
    for j in range(terms):
        term = table[s.TERM, j]
        table[s.CURSOR, j] = starts[term]
        table[s.END, j] = starts[term + 1]
        table[s.ROW, j] = rows[term]
    return terms


@compiled
def _copy_term(table: Table, source: int, target: int) -> None:
    table[s.TERM, target] = table[s.TERM, source]
    table[s.TIMES, target] = table[s.TIMES, source]
    table[s.LARGEST, target] = table[s.LARGEST, source]


@compiled
def known_to_be_reached(state: State, table: Table, terms: int, k: int) -> int:
    """A score that falls short of what k documents certainly reach, by one step at least."""
    column = 0
    while column < len(DEPTHS) and DEPTHS[column] < k:
        column += 1
    threshold = 0
    if column < len(DEPTHS):
        kth_best = int32_at(state[s.KTH_BEST], state[s.TERMS] * len(DEPTHS))
        for j in range(terms):
            reached = kth_best[table[s.TERM, j] * len(DEPTHS) + column] * table[s.TIMES, j]
            threshold = max(threshold, reached - 1)
    return threshold


@compiled
def enter_block(
    state: State,
    table: Table,
    terms: int,
    block: int,
    after: int,
    documents: npt.NDArray[np.int32],
) -> int:
    """Find each term's postings in a block and their bound; returns the sum of the bounds."""
    blocks = state[s.BLOCKS]
    starts = int32_at(state[s.BLOCK_STARTS], state[s.BLOCK_ROWS] * (blocks + 1))
    maxima = int32_at(state[s.BLOCK_MAXIMA], state[s.BLOCK_ROWS] * blocks)
    last = block == blocks - 1
    whole = 0
    for j in range(terms):
        row = table[s.ROW, j]
        if row >= 0:
            place = row * (blocks + 1) + block
            begin = table[s.CURSOR, j] + starts[place]
            end = table[s.CURSOR, j] + starts[place + 1]
            bound = maxima[row * blocks + block] * table[s.TIMES, j]
        else:
            begin = table[s.CURSOR, j]
            end = table[s.END, j] if last else begin
            while end < table[s.END, j] and documents[end] < after:
                end += 1
            table[s.CURSOR, j] = end
            bound = table[s.LARGEST, j] if end > begin else 0
        table[s.FROM, j] = begin
        table[s.TO, j] = end
        table[s.BOUND, j] = bound
        whole += bound
    return whole


@compiled
def optional_terms(table: Table, terms: int, threshold: int, k: int) -> tuple[int, int, int]:
    """How many of the first terms are optional, the sum of their bounds, and their postings."""
    if k > OPTIONAL_K:
        return 0, 0, 0
    count, slack, spared = 0, 0, 0
    while count < terms and (slack + table[s.BOUND, count]) * SHARE <= threshold:
        slack += table[s.BOUND, count]
        spared += table[s.TO, count] - table[s.FROM, count]
        count += 1
    if spared < CHEAP:
        return 0, 0, 0
    return count, slack, spared
