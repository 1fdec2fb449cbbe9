"""Packing of entries into 32 bits and back."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from klsa_search.lowrank.sparse_expansion import (
    LEVELS,
    NUMBERS,
    pack_rows,
    pack_table,
    unpack_rows,
    unpack_table,
)


def some_rows(seed=0, size=40, columns=50):
    random = np.random.default_rng(seed)
    return sparse.csr_array(random.random((size, columns)) * (random.random((size, columns)) < 0.3))


def test_rows_come_back_within_half_a_step():
    rows = some_rows()
    ranks = np.random.default_rng(1).permutation(50)
    starts, entries, steps = pack_rows(rows, ranks)
    back = unpack_rows(starts, entries, steps, 50).toarray()[:, ranks]
    dense = rows.toarray()
    assert unpack_rows(starts, entries, steps, 50).indices.dtype == np.int32
    assert steps == pytest.approx(dense.max(axis=1) / LEVELS)
    assert (np.abs(back - dense) <= 0.5001 * steps[:, None])[dense > steps[:, None]].all()
    assert ((back > 0) == (dense > 0)).all()  # small ones become one step, not nothing


def test_a_row_by_hand():
    starts, entries, steps = pack_rows(sparse.csr_array([[0, 5.1, 2.55], [0, 0, 0]]), np.arange(3))
    assert starts.tolist() == [0, 2, 2]
    assert entries.tolist() == [(1 << 8) | 255, (2 << 8) | 128]
    assert steps.tolist() == pytest.approx([0.02, 0])


def test_what_24_bits_cannot_number_is_left_out():
    ranks = np.array([NUMBERS, 0, NUMBERS - 1])
    starts, entries, _ = pack_rows(sparse.csr_array([[1.0, 1.0, 1.0]]), ranks)
    assert starts.tolist() == [0, 2]
    assert (entries >> 8).tolist() == [0, NUMBERS - 1]


def test_a_table_holds_the_strongest_others_strongest_first():
    rows = sparse.csr_array([[9.0, 1, 4, 2], [0, 9, 0, 0], [3, 3, 9, 3], [0, 0, 0, 0]])
    table, steps = pack_table(rows, 2)
    assert (table >> 8).tolist() == [[2, 3], [0, 0], [0, 1], [0, 0]]
    assert (table & 255).tolist() == [[255, 127], [0, 0], [255, 255], [0, 0]]
    assert steps.tolist() == pytest.approx([4 / 255, 0, 3 / 255, 0])


def test_a_table_comes_back_in_levels():
    rows = some_rows(2, 30, 30)
    table, steps = pack_table(rows, 30)
    back = unpack_table(table).toarray() * steps[:, None]
    others = rows.toarray()
    np.fill_diagonal(others, 0)
    assert np.abs(back - others).max() <= 0.5001 * steps.max()
