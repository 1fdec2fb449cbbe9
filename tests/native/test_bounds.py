"""Arrays that do not fit together are refused before anything outside them is read or written."""

from __future__ import annotations

import numpy as np
import pytest

from klsa_search import _native


def longs(*values):
    return np.array(values, np.int64)


def ints(*values):
    return np.array(values, np.int32)


ENTRIES = np.zeros(3, np.uint32)
RUNS = np.array([[0, 2, 1]], np.uint16)
COUNTS = np.ones(2, np.float32)


@pytest.mark.parametrize(
    ("call", "fact"),
    [
        (
            lambda: _native.count_block(ints(0, 7), ints(2), ints(1), np.ones(3, bool), longs()),
            "words: a term has no place",
        ),
        (
            lambda: _native.count_block(ints(0), ints(2), ints(1), np.ones(3, bool), longs()),
            "lengths: there are fewer words",
        ),
        (
            lambda: _native.count_block(ints(0), ints(1), ints(2), np.ones(3, bool), longs()),
            "parts: there are fewer lengths",
        ),
        (
            lambda: _native.number_pairs(longs(1), longs(0, 1, 1), ints(1), longs(9), ints(1)),
            "keys: a pair has an unknown term",
        ),
        (
            lambda: _native.number_pairs(longs(1), longs(0, 2, 1), ints(1), longs(1), ints(1)),
            "starts: the offsets decrease",
        ),
        (lambda: _native.squares_of_rows(longs(0, 3), COUNTS, np.zeros(1)), "starts: the offsets"),
        (lambda: _native.add_to_columns(ints(0, 5), COUNTS, np.zeros(5)), "columns: a value"),
        (
            lambda: _native.rows_with(longs(0, 2), ints(0, -1), COUNTS, np.ones(2), np.zeros(1)),
            "columns: a value",
        ),
        (
            lambda: _native.scale_rows(longs(0, 2), COUNTS, np.ones(1), np.zeros(3)),
            "data and scaled: their lengths differ",
        ),
        (
            lambda: _native.count_postings(
                *(longs(0, 2), ints(0, 9), COUNTS, 6, longs(0), longs(0), longs(0))
            ),
            "terms: a value is outside",
        ),
        (
            lambda: _native.write_postings(
                *(longs(0, 2), ints(0, 0), COUNTS, np.ones(1), 6, longs(2), longs(0)),
                *(ENTRIES.copy(), RUNS.copy()),
            ),
            "places: there are fewer entries",
        ),
        (
            lambda: _native.add_steps(
                *(longs(0, 3), ENTRIES, longs(0, 1), RUNS, 6, longs(1), longs(1), longs(0))
            ),
            "terms: a value is outside",
        ),
        (
            lambda: _native.add_steps(
                *(longs(0, 2), ENTRIES, longs(0, 1), RUNS, 6, longs(0), longs(1), longs(0))
            ),
            "runs: a run leaves its term",
        ),
        (
            lambda: _native.add_steps(
                *(longs(0, 3), ENTRIES, longs(0, 1), RUNS, 6, longs(0), longs(1), longs())
            ),
            "entries: a document is unknown",
        ),
        (
            lambda: _native.add_cosines(
                np.zeros((1, 3), np.int8), ints(4), COUNTS[:1], np.zeros(3, np.int8), 1.0, COUNTS
            ),
            "documents: a value is outside",
        ),
    ],
)
def test_arrays_that_do_not_fit_are_refused(call, fact):
    with pytest.raises(ValueError, match=fact):
        call()
