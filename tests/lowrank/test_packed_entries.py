"""Packing of entries into 32 bits and back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from klsa_search.lowrank.expansion_matrix import largest_entries
from klsa_search.lowrank.sparse_expansion import (
    LEVELS,
    NUMBERS,
    pack_rows,
    pack_table,
    unpack_rows,
)


def some_rows(seed=0, size=40, columns=50):
    random = np.random.default_rng(seed)
    dense = random.random((size, columns)) * (random.random((size, columns)) < 0.3)
    return sparse.csr_array(dense.astype(np.float32))


def test_rows_come_back_within_half_a_step():
    rows = some_rows()
    ranks = np.random.default_rng(1).permutation(50).astype(np.int32)
    starts, entries, steps = pack_rows(rows, ranks)
    back = unpack_rows(starts, entries, steps, 50).toarray()[:, ranks]
    dense = rows.toarray()
    assert unpack_rows(starts, entries, steps, 50).indices.dtype == np.int32
    assert steps == pytest.approx(dense.max(axis=1) / LEVELS)
    assert (np.abs(back - dense) <= 0.5001 * steps[:, None])[dense > steps[:, None]].all()
    assert ((back > 0) == (dense > 0)).all()  # small ones become one step, not nothing


def test_a_row_by_hand():
    starts, entries, steps = pack_rows(
        sparse.csr_array([[0, 5.1, 2.55], [0, 0, 0]]), np.arange(3, dtype=np.int32)
    )
    assert starts.tolist() == [0, 2, 2]
    assert entries.tolist() == [(1 << 8) | 255, (2 << 8) | 128]
    assert steps.tolist() == pytest.approx([0.02, 0])


def test_entries_beyond_24_bits_are_left_out():
    ranks = np.array([NUMBERS, 0, NUMBERS - 1], np.int32)
    starts, entries, _ = pack_rows(sparse.csr_array([[1.0, 1.0, 1.0]]), ranks)
    assert starts.tolist() == [0, 2]
    assert (entries >> 8).tolist() == [0, NUMBERS - 1]


def test_a_table_holds_the_strongest_others_strongest_first():
    dense = [[9, 1, 4, 2], [0, 9, 0, 0], [3, 3, 9, 3], [0, 0, 0, 0]]
    rows = sparse.csr_array(np.array(dense, np.float32))
    table, steps, _ = pack_table(rows, 2)
    assert (table >> 8).tolist() == [[2, 3], [0, 0], [0, 1], [0, 0]]
    assert (table & 255).tolist() == [[255, 127], [0, 0], [255, 255], [0, 0]]
    assert steps.tolist() == pytest.approx([4 / 255, 0, 3 / 255, 0])


def test_a_table_comes_back_in_levels():
    rows = some_rows(2, 30, 30)
    table, steps, _ = pack_table(rows, 30)
    back = np.zeros((30, 30))
    np.add.at(back, (np.arange(30)[:, None], table >> 8), (table & 255) * steps[:, None])
    others = rows.toarray()
    np.fill_diagonal(others, 0)
    assert np.abs(back - others).max() <= 0.5001 * steps.max()


def test_a_partition_table_divides_the_strongest_by_partition():
    # Rows 2 and 3 of five documents; the table of 3 entries a row is divided.
    rows = np.array([[5, 2, 9, 4, 4], [1, 0, 0, 9, 8]], np.float32)
    ordinals = np.array([10, 11, 12, 14, 13])
    table, steps, elsewhere = pack_table(sparse.csr_array(rows), 3, 2, ordinals)
    assert (table >> 8).tolist() == [[1, 0, 0], [0, 0, 0]]
    assert (table & 255).tolist() == [[204, 0, 0], [0, 0, 0]]
    assert elsewhere.documents.tolist() == [[10, 13, 0], [13, 10, 0]]
    assert elsewhere.levels.tolist() == [[255, 204, 0], [255, 32, 0]]
    assert steps == pytest.approx([5 / 255, 8 / 255])


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_packed_rows_are_those_of_numpy(kind):
    random = np.random.default_rng(3)
    rows = sparse.random_array((60, 90), density=0.3, rng=random, dtype=kind)
    rows = sparse.csr_array(rows)
    rows.data[::7] *= -1
    starts, entries, steps = pack_rows(rows)
    dense = rows.toarray()
    assert np.array_equal(steps, np.float32(dense.max(axis=1)) / np.float32(LEVELS))
    documents, columns = np.nonzero(dense > 0)
    levels = np.maximum(np.rint(dense[documents, columns] / steps[documents]), 1)
    assert np.array_equal(entries, columns << 8 | levels.astype(np.int64))
    assert np.array_equal(np.diff(starts), np.bincount(documents, minlength=60))


@pytest.mark.parametrize(
    ("row", "z", "positions"),
    [
        ([1, 3, 2], 2, [1, 2]),
        ([5, 5, 5], 2, [0, 1]),
        ([0, 1, 0], 2, [1]),
        ([0, -1], 3, []),
        ([], 1, []),
        ([2, 1], 9, [0, 1]),
    ],
)
def test_worked_examples(row, z, positions):
    row = np.array(row, dtype=np.float32)
    found, values = largest_entries(row, z)
    assert found.tolist() == positions
    assert values.tolist() == row[positions].tolist()


@given(st.lists(st.integers(-2, 4), max_size=30), st.integers(1, 12))
def test_largest_entries_are_those_of_a_truncated_stable_sort(row, z):
    expected = sorted((i for i, value in enumerate(row) if value > 0), key=lambda i: -row[i])[:z]
    assert largest_entries(np.array(row, dtype=np.float32), z)[0].tolist() == expected
