"""The largest entries, ties by document order."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klsa_search.lowrank.expansion_matrix import largest_entries


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
