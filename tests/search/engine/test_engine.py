"""The engine finds what the plain row of the query kernel finds, to the bit."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from klsa_search.expansion import top_z
from klsa_search.features.bm25 import on_grid
from klsa_search.kernel import Postings
from klsa_search.kernel.bounds import Bounds
from klsa_search.search.engine import Engine
from klsa_search.search.engine.state import MAX_TERMS
from klsa_search.search.query import QueryTerms


def collection(size, terms=12, *, density=0.4, levels=0, seed=0, block_bits=6):
    """Postings of random impacts, of a few levels only where ties are wanted, and their engine."""
    rng = np.random.default_rng(seed)
    frequencies = density / np.arange(1, terms + 1) ** 0.5
    held = rng.random((size, terms)) < frequencies
    impacts = rng.integers(1, levels + 1, held.shape) if levels else rng.gamma(2, 2, held.shape)
    weights, step = on_grid(sparse.csr_array(np.where(held, impacts, 0.0)))
    postings = Postings.of(weights)
    return postings, Engine(postings, Bounds.of(postings, step, block_bits=block_bits))


def by_row(postings, terms, k):
    query = QueryTerms.of(terms)
    return top_z(postings.query_row(query.numbers, query.counts), k)


def same(one, other):
    return all(map(np.array_equal, one, other))


queries = st.lists(st.integers(-1, 11), max_size=12)
depths = st.sampled_from([1, 2, 9, 10, 11, 64, 99, 100, 101, 1000, 1001, 10**9])


@settings(max_examples=200)
@given(
    size=st.sampled_from([0, 1, 2, 63, 64, 65, 127, 128, 129, 500, 2000]),
    levels=st.sampled_from([0, 1, 3]),
    density=st.sampled_from([0.02, 0.3, 1.0]),
    seed=st.integers(0, 5),
    bits=st.sampled_from([6, 8, 16]),
    asked=queries,
    k=depths,
)
def test_the_best_are_those_of_the_plain_row(size, levels, density, seed, bits, asked, k):
    postings, engine = collection(size, density=density, levels=levels, seed=seed, block_bits=bits)
    expected = by_row(postings, asked, k)
    assert same(engine.best(asked, k), expected)
    (answer,) = engine.best_of_many([asked], k)
    assert same(answer, expected)


@pytest.mark.parametrize("k", [1, 10, 50])
def test_optional_terms_lose_nothing(k):
    """Many frequent, weak terms beside one strong one: the blocks are pruned and looked up."""
    rng = np.random.default_rng(3)
    impacts = np.where(rng.random((40_000, 6)) < 0.5, rng.random((40_000, 6)), 0)
    impacts[:, 5] = np.where(rng.random(40_000) < 0.02, 20 + rng.random(40_000), 0)
    weights, step = on_grid(sparse.csr_array(impacts))
    postings = Postings.of(weights)
    for bits in (10, 13):
        engine = Engine(postings, Bounds.of(postings, step, block_bits=bits))
        for asked in ([0, 1, 2, 3, 4, 5], [5, 0, 5], [0, 1], [4, 3, 3]):
            assert same(engine.best(asked, k), by_row(postings, asked, k))


@pytest.mark.parametrize("k", [100, 300, 1000])
@pytest.mark.parametrize("rising", [False, True])
def test_a_first_block_unlike_the_others_misleads_nobody(rising, k):
    """The threshold guessed from the first of 32 blocks is far too high, or far too low."""
    rng = np.random.default_rng(0)
    impacts = rng.random((2048, 3)) + np.linspace(9, 0, 2048)[:, None] ** 2
    weights, step = on_grid(sparse.csr_array(impacts[::-1] if rising else impacts))
    postings = Postings.of(weights)
    engine = Engine(postings, Bounds.of(postings, step, block_bits=6))
    assert same(engine.best([0, 1, 2], k), by_row(postings, [0, 1, 2], k))


@pytest.mark.parametrize("size", [40, 60, 5000])
def test_ties_of_any_number_go_by_position(size):
    postings = Postings.of(sparse.csr_array(np.ones((size, 1))))
    engine = Engine(postings, Bounds.of(postings, 1.0, block_bits=6))
    for k in (1, 30, size - 1, size, size + 1):
        positions, scores = engine.best([0], k)
        assert positions.tolist() == list(range(min(k, size)))
        assert set(scores.tolist()) == {1.0}


@pytest.mark.parametrize("asked", [[0] * 40, [*range(12)] * 10, [3] * (MAX_TERMS + 1)])
def test_a_query_too_long_for_exact_addition_is_scored_by_the_row(asked):
    postings, engine = collection(300)
    expected = by_row(postings, asked, 10)
    assert same(engine.best(asked, 10), expected)
    answers = engine.best_of_many([[0], asked, [1]], 10)
    assert same(answers[1], expected)
    assert same(answers[2], by_row(postings, [1], 10))


def test_more_distinct_terms_than_the_compiled_search_takes():
    postings, engine = collection(200, terms=MAX_TERMS + 44, density=0.9)
    for count in (MAX_TERMS - 1, MAX_TERMS, MAX_TERMS + 1, MAX_TERMS + 44):
        asked = list(range(count))
        assert same(engine.best(asked, 20), by_row(postings, asked, 20))


def test_answers_do_not_depend_on_threads_or_on_what_was_asked_before():
    postings, engine = collection(3000, levels=4)
    rng = np.random.default_rng(1)
    asked = [(rng.integers(-1, 12, 4).tolist(), int(k)) for k in rng.integers(1, 400, 200)]
    expected = [by_row(postings, terms, k) for terms, k in asked]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda pair: engine.best(*pair), asked))
    assert all(map(same, answers, expected))


def test_a_batch_larger_than_one_call_has_room_for(monkeypatch):
    postings, engine = collection(300)
    asked = [[number % 12, (3 * number) % 12] for number in range(25)]
    for room in (1, 30, 70, 10**6):
        monkeypatch.setattr("klsa_search.search.engine.engine.RESULTS", room)
        answers = engine.best_of_many(asked, 10)
        assert len(answers) == len(asked)
        assert all(map(same, answers, [by_row(postings, terms, 10) for terms in asked]))


def test_no_query_has_no_answer():
    _, engine = collection(10)
    assert engine.best_of_many([], 3) == []
    assert [len(positions) for positions, _ in engine.best_of_many([[], [-1]], 3)] == [0, 0]
