"""Arrays that do not fit together are refused before anything outside them is read or written."""

import struct

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
        (lambda: _native.Features(ints(0, 5), COUNTS, 5), "columns: a value"),
        (lambda: _native.Features(ints(0, -1), COUNTS, 2), "columns: a value"),
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
            lambda: _native.PostingLists(1, 6, longs(0, 3), ENTRIES, longs(0, 1), RUNS).add_steps(
                longs(1), longs(1), longs(0)
            ),
            "terms: a value is outside",
        ),
        (
            lambda: _native.PostingLists(1, 6, longs(0, 3), ENTRIES, longs(0, 1), RUNS).add_steps(
                longs(0), longs(1), longs()
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


def packed(values, dtype):
    wide = b"\0" if dtype is np.int64 else b""  # 64 bits each
    return struct.pack("<q", len(values)) + wide + np.array(values, dtype).tobytes()


def loaded(state, of=_native.LocalSeeds):
    seeds = of.__new__(of)
    seeds.__setstate__(state)
    return seeds


def state_of_seeds(documents=4, steps=(9, 8, 7, 6), shape=(2, 2, 2), *, named=False):
    """Four seeds of one term as bytes; `shape` is the columns, width and neighbours of rows."""
    return b"".join(
        [
            *(packed(range(documents), np.int32), packed(range(4), np.int64)),
            *(packed(steps, np.int64), packed([5] * 4, np.int32), packed([1] * 4, np.float32)),
            *(packed([1], np.float32), packed([1], np.float32), struct.pack("<df", 1, 0.1)),
            *(packed(range(5), np.int64), packed([263] * 4, np.uint32)),
            *(packed([0.1] * 12, np.float32), packed([1] * 8, np.int64)),
            *(packed([3] * 8, np.uint8), packed([0.5] * 8, np.float32), struct.pack("<3q", *shape)),
            struct.pack("<q", 4) + struct.pack("<qcqc", 1, b"a", 1, b"b") * 4
            if named
            else struct.pack("<q", 0),
        ]
    )


PARAMS = (4, 8, 0.5, 0.1, 0.3, 0.3, 0.3, 1.0, 1.0, 1.0, True, 1.0, 0.1)


def shared_seeds(*states):
    return _native.share_seeds([loaded(state) for state in states], PARAMS, 0.01)


def rows_of_shared_seeds(columns):
    state = shared_seeds(state_of_seeds(named=True))[0].__getstate__()
    shape = struct.pack("<3q", 2, 2, 2)
    assert state.count(shape) == 1
    shared = loaded(state.replace(shape, struct.pack("<3q", columns, 2, 2)), _native.SharedSeeds)
    return shared.rows


def expansion_model(levels, *more):
    rows = _native.DocumentRows(
        *(np.zeros((4, 8), np.uint32), np.zeros((4, 2), np.float32), longs(0, 0, 0, 0, 0)),
        *(ENTRIES[:0], np.zeros((4, 16), np.int8)),
    )
    elsewhere = np.zeros((4, 1), np.uint32), np.zeros((4, levels), np.uint8)
    return _native.ExpansionModel([rows, *more], np.zeros((2, 16), np.int8), *elsewhere, None, 1, 1)


def score_all(*parts):
    results = (np.zeros((len(parts), 1), dtype) for dtype in (np.int32, np.float32, np.uint8))
    return _native.Engine.score_all(parts, 0.01, False, *results)


def engine_of(lists):
    weights = _native.TermWeights(longs(1), longs(1), longs(), 1, 1.0, 1.0, "lucene")
    best = np.zeros((1, 4), np.uint16)
    return _native.Engine([(0, lists, None, None)], weights, best, 0.01, 0, None, None, None)


@pytest.mark.parametrize(
    ("call", "fact"),
    [
        (lambda: engine_of(None), "segments: one is None"),
        (lambda: expansion_model(1, None), "parts: one is None"),
        (lambda: score_all(), "parts: there is none"),
        (lambda: score_all((None, [0], PARAMS, (1, 1, 1, False))), "parts: one is None"),
    ],
)
def test_objects_that_are_missing_are_refused(call, fact):
    with pytest.raises(ValueError, match=fact):
        call()


def test_parts_that_find_different_numbers_of_seeds_are_refused():
    weights = _native.TermWeights(longs(1), longs(1), longs(), 1, 1.0, 1.0, "lucene")
    lists = _native.PostingLists(4, 6, longs(0, 1), ENTRIES[:1], longs(0, 1), RUNS)
    reverse = np.zeros(5, np.int32), np.zeros((4, 1), np.uint32), np.ones(4, np.float32)
    segments, best = [(0, lists, None, None)], np.zeros((1, 4), np.uint16)
    engine = _native.Engine(segments, weights, best, 0.01, 0, None, expansion_model(1), reverse)
    fewer = (PARAMS[0] - 1, *PARAMS[1:])
    with pytest.raises(ValueError, match="parts: they have different numbers of seeds"):
        score_all(*((engine, [0], params, (1, 1, 1, False)) for params in (PARAMS, fewer)))


def test_documents_of_terms_that_an_engine_has_not_are_refused():
    lists = _native.PostingLists(1, 6, longs(0, 1), ENTRIES[:1], longs(0, 1), RUNS)
    engine, allowed = engine_of(lists), np.ones(1, np.bool_)
    assert engine.containing_all([0]).tolist() == [0]
    assert engine.count_within([0], allowed).tolist() == [1]
    for call in (
        lambda: engine.containing_all([1]),
        lambda: engine.containing_any([0, -1]),
        lambda: engine.count_within([1], allowed),
    ):
        with pytest.raises(ValueError, match="terms: a value is outside"):
            call()
    with pytest.raises(ValueError, match="terms: there is none"):
        engine.containing_all([])
    with pytest.raises(ValueError, match="allowed: not a value for each document"):
        engine.count_within([0], allowed[:0])
    words = np.zeros((1, 2), np.uint64)
    with pytest.raises(ValueError, match="matches: not the words of a mask"):
        engine.bm25(
            [[0]], None, True, words, np.zeros((1, 1), np.int32), np.zeros((1, 1), np.float32)
        )


def test_undamaged_seeds_are_shared():
    assert shared_seeds(state_of_seeds(named=True))[0].rows[0].shape == (4, 2)
    assert rows_of_shared_seeds(2)[0].shape == (4, 2)
    assert expansion_model(1)


@pytest.mark.parametrize(
    ("call", "fact"),
    [
        (lambda: shared_seeds(state_of_seeds(steps=())), "parts: lengths differ"),
        (lambda: shared_seeds(state_of_seeds(documents=9)), "parts: lengths differ"),
        (lambda: shared_seeds(state_of_seeds(shape=(2**62 + 2, 2, 2))), "rows: not one"),
        (lambda: shared_seeds(state_of_seeds(shape=(2, -3, -3))), "rows: not one"),
        (lambda: shared_seeds(state_of_seeds(shape=(2, 2, -1))), "rows: not one"),
        (lambda: shared_seeds(state_of_seeds(named=True), state_of_seeds()), "not a name of each"),
        (lambda: shared_seeds(state_of_seeds(), state_of_seeds(named=True)), "not a name of each"),
        (lambda: rows_of_shared_seeds(2**20), "rows: not one"),
        (lambda: rows_of_shared_seeds(2**62 + 2), "rows: not one"),
        (lambda: loaded(state_of_seeds(named=True)[:-1]), "bytes are missing"),
        (lambda: loaded(state_of_seeds()[:-8] + struct.pack("<q", 2**62)), "bytes are missing"),
        (lambda: loaded(state_of_seeds()[:-8] + struct.pack("<q", -1)), "bytes are missing"),
        (lambda: loaded(struct.pack("<q", 99) + bytes(99)), "bytes are missing"),
        (lambda: loaded(state_of_seeds() + b"more"), "bytes are left over"),
        (lambda: expansion_model(8), "remote_rows: their shape"),
    ],
)
def test_damaged_seeds_are_refused(call, fact):
    with pytest.raises(ValueError, match=fact):
        call()
