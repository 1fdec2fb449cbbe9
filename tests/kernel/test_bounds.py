"""Bounds of impacts: by hand, and by their definition on random postings."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from klsa_search.features.bm25 import on_grid
from klsa_search.kernel import Postings
from klsa_search.kernel.bounds import (
    BLOCK_BITS,
    DEPTHS,
    SMALL,
    Bounds,
    bounds_arrays,
    bounds_of_arrays,
)


def some_bounds(size, terms=4, *, seed=0, block_bits=6):
    rng = np.random.default_rng(seed)
    held = rng.random((size, terms)) < np.linspace(1, 0.05, terms)
    impacts = np.where(held, rng.random((size, terms)), 0)
    weights, step = on_grid(sparse.csr_array(impacts))
    postings = Postings.of(weights)
    return postings, step, Bounds.of(postings, step, block_bits=block_bits)


def test_bounds_by_hand():
    """130 documents: three blocks of 64; the first term is in all, the second in five."""
    impacts = np.zeros((130, 3))
    impacts[:, 0] = 1
    impacts[[3, 64, 129], 0] = 2, 5, 3
    impacts[:5, 1] = 4
    bounds = Bounds.of(Postings.of(sparse.csr_array(impacts)), 0.5, block_bits=6)
    assert bounds.maxima.tolist() == [10, 8, 0]
    assert bounds.kth_best.tolist() == [[2, 2, 0], [0, 0, 0], [0, 0, 0]]
    assert bounds.rows.tolist() == [0, -1, -1]
    assert bounds.block_starts.tolist() == [[0, 64, 128, 130]]
    assert bounds.block_maxima.tolist() == [[4, 10, 6]]
    assert (bounds.blocks, bounds.block_bits) == (3, 6)


@settings(max_examples=40)
@given(
    size=st.sampled_from([0, 1, 9, 10, 11, 64, 65, 100, 1000, 1001]),
    seed=st.integers(0, 3),
    bits=st.sampled_from([6, 7, 9, 16]),
)
def test_bounds_are_their_definition(size, seed, bits):
    postings, step, bounds = some_bounds(size, seed=seed, block_bits=bits)
    width = 1 << bits
    assert bounds.blocks == max(1, -(-size // width))
    for term, row in enumerate(bounds.rows.tolist()):
        documents, weights = postings.of_term(term)
        steps = np.round(weights / step).astype(int)
        strongest = np.sort(steps)[::-1]
        assert bounds.maxima[term] == steps.max(initial=0)
        assert bounds.kth_best[term].tolist() == [
            strongest[depth - 1] if len(strongest) >= depth else 0 for depth in DEPTHS
        ]
        if row < 0:
            continue
        for block in range(bounds.blocks):
            inside = documents // width == block
            starts = bounds.block_starts[row, block : block + 2]
            assert np.flatnonzero(inside).tolist() == list(range(*starts))
            assert bounds.block_maxima[row, block] == steps[inside].max(initial=0)


def test_terms_with_a_posting_a_block_have_rows_where_there_are_blocks():
    postings, step, bounds = some_bounds(1000)
    lengths = np.diff(postings.starts)
    assert ((bounds.rows >= 0) == (lengths >= 64)).all()
    assert (Bounds.of(postings, step).rows == -1).all()


@pytest.mark.parametrize(
    ("size", "blocks", "bits"),
    [
        (0, 1, 6),
        (1, 1, 6),
        (64, 1, 6),
        (65, 1, 7),
        (SMALL, 1, 16),
        (SMALL + 1, 9, BLOCK_BITS),
        (1_000_000, 123, BLOCK_BITS),
    ],
)
def test_so_many_documents_make_so_many_blocks_that_hold_them_all(size, blocks, bits):
    empty = Postings(np.zeros(2, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32), size)
    bounds = Bounds.of(empty, 1.0)
    assert (bounds.blocks, bounds.block_bits) == (blocks, bits)
    assert blocks << bits >= size


@given(size=st.integers(1, 5000), bits=st.integers(6, 12))
def test_the_width_of_a_block_is_known_by_their_number(size, bits):
    blocks = -(-size // (1 << bits))
    kept = np.zeros((0, blocks), np.int32)
    none = np.zeros(0, np.int32)
    bounds = Bounds(1.0, none, none, none, none, kept, size)
    assert -(-size // (1 << bounds.block_bits)) == blocks
    assert bounds.block_bits == bits or blocks == 1


def test_bounds_come_back_from_their_arrays():
    _, _, bounds = some_bounds(300)
    arrays = bounds_arrays(bounds)
    back = bounds_of_arrays(arrays.__getitem__, bounds.size)
    assert (back.step, back.size, back.block_bits) == (bounds.step, 300, 6)
    for name in ("maxima", "kth_best", "rows", "block_starts", "block_maxima"):
        assert np.array_equal(getattr(back, name), getattr(bounds, name))
