"""Selecting and sorting keys."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klsa_search.core.selection import LOW, select_largest, sort_ascending, sort_descending


def keys_of(scores):
    positions = np.random.default_rng(0).permutation(len(scores))
    return (np.array(scores, np.int64) << 32) | (LOW - positions)


scores = st.integers(1, 400).flatmap(
    lambda size: st.lists(st.integers(1, 2**24) | st.integers(1, 3), min_size=size, max_size=size)
)


@given(scores=scores, data=st.data())
def test_the_largest_come_to_the_front_and_the_kth_is_last_of_them(scores, data):
    keys = keys_of(scores)
    k = data.draw(st.integers(1, len(keys)))
    expected = np.sort(keys)[::-1][:k]
    select_largest(keys, len(keys), k)
    assert np.array_equal(np.sort(keys[:k])[::-1], expected)
    assert keys[k - 1] == expected[-1]


@given(keys=st.lists(st.integers(-3, 3), min_size=1, max_size=30), k=st.integers(1, 40))
def test_of_equal_keys_as_many_come_to_the_front_as_are_wanted(keys, k):
    chosen = np.array(keys, np.int64)
    select_largest(chosen, len(chosen), k)
    expected = sorted(keys, reverse=True)[:k]
    assert sorted(chosen[:k].tolist(), reverse=True) == expected
    assert chosen[len(expected) - 1] == expected[-1]
    assert sorted(chosen.tolist()) == sorted(keys)


@given(scores=scores)
def test_keys_are_sorted_by_score_and_then_by_position(scores):
    keys = keys_of(scores)
    expected = np.sort(keys)[::-1]
    sort_descending(keys, len(keys), np.zeros_like(keys))
    assert np.array_equal(keys, expected)


@pytest.mark.parametrize("count", [0, 1, 2, 48, 49, 399])
def test_keys_beyond_the_count_stay_where_they_are(count):
    given = keys_of([*range(1, 401)])
    for work in (
        lambda keys: select_largest(keys, count, max(1, count // 2)),
        lambda keys: sort_descending(keys, count, np.zeros(count, np.int64)),
    ):
        keys = given.copy()
        work(keys)
        assert np.array_equal(keys[count:], given[count:])
        assert np.array_equal(np.sort(keys[:count]), np.sort(given[:count]))


@pytest.mark.parametrize("levels", [1, 2, 10**6])
def test_many_keys(levels):
    keys = keys_of(np.random.default_rng(2).integers(1, levels + 1, 20_000))
    expected = np.sort(keys)[::-1]
    sort_descending(keys, len(keys), np.zeros_like(keys))
    assert np.array_equal(keys, expected)


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 48, 49, 50, 300, 5000])
def test_sorting_upwards(kind, count):
    values = np.random.default_rng(count).integers(-count, count + 1, count + 6).astype(kind)
    expected = np.concatenate((values[:3], np.sort(values[3:-3]), values[-3:]))
    sort_ascending(values, 3, count + 3)
    assert np.array_equal(values, expected)
