"""Term pairs: decoding inverts encoding; features are numbered as in a sparse D."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from klsa_search._native import encode_pairs
from klsa_search.delta.statistics import MIN_FREQUENCY, Pairs, most_frequent


@st.composite
def known_features(draw):
    """How many documents hold each term, keys of pairs and how many hold those."""
    terms = draw(st.lists(st.integers(1, 300), min_size=1, max_size=12))
    size = len(terms)
    keys = [lesser * size + other for lesser in range(size) for other in range(lesser + 1, size)]
    chosen = sorted(draw(st.sets(st.sampled_from(keys)))) if keys else []
    held = draw(
        st.lists(st.integers(MIN_FREQUENCY, 2**20), min_size=len(chosen), max_size=len(chosen))
    )
    return np.array(terms), np.array(chosen, np.int64), np.array(held, np.int64)


@given(known_features())
def test_numbers_and_frequencies_come_back(features):
    terms, keys, held = features
    pairs = Pairs.of(encode_pairs(keys, held, len(terms)), terms)
    both = np.concatenate((terms, held))
    numbers = np.empty(len(both), np.int64)
    numbers[np.argsort(-both, kind="stable")] = np.arange(len(both))
    assert pairs.terms.tolist() == numbers[: len(terms)].tolist()
    assert pairs.find(keys, len(terms)).tolist() == numbers[len(terms) :].tolist()
    assert pairs.document_frequencies(numbers).tolist() == both.tolist()
    assert pairs.by_number[numbers].tolist() == list(range(len(both)))


@given(known_features(), st.integers(0, 5))
def test_a_pair_that_is_not_a_feature_has_no_number(features, more):
    """Keys may be made with more terms than the epoch knows."""
    terms, keys, held = features
    pairs = Pairs.of(encode_pairs(keys, held, len(terms)), terms)
    size = len(terms) + more
    all_pairs = [(a, b) for a in range(size) for b in range(a + 1, size)]
    found = pairs.find(np.array([a * size + b for a, b in all_pairs], np.int64), size)
    known = {(int(key) // len(terms), int(key) % len(terms)) for key in keys}
    assert [number >= 0 for number in found.tolist()] == [pair in known for pair in all_pairs]


def test_a_pair_takes_three_bytes():
    rng = np.random.default_rng(0)
    lesser, greater = np.sort(rng.zipf(1.3, (2, 200_000)) % 50_000, axis=0)
    keys = np.unique(lesser.astype(np.int64) * 50_000 + greater)
    held = 2 + rng.zipf(2.0, len(keys)) % 1000
    assert len(encode_pairs(keys, held, 50_000)) < 3 * len(keys) + 50_000


@given(st.lists(st.integers(0, 6), max_size=40), st.integers(0, 40))
def test_the_most_frequent_pairs_have_numbers_and_the_first_of_equal_ones(held, most):
    held = np.array(held, np.int64)
    numbered = most_frequent(held, most)
    wanted = np.sort(np.argsort(-held, kind="stable")[:most])
    assert np.flatnonzero(numbered).tolist() == wanted.tolist()
