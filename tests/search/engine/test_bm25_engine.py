"""Bm25Engine equals the scores of the query kernel to the bit."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from klsa_search.kernels.postings import Postings
from klsa_search.kernels.query_kernel import QueryKernel
from klsa_search.lowrank.expansion_matrix import largest_entries
from klsa_search.search.engine.engine import Bm25Engine
from klsa_search.search.engine.mask import Mask
from klsa_search.search.engine.query_terms import QueryTerms
from klsa_search.search.query.parser import MAX_TERMS


def kernel_of(saturations, block_bits=6):
    """Postings of saturations below 1, 0 where a document does not hold the term."""
    saturations = np.asarray(saturations, np.float64)
    counts = sparse.csr_array(saturations / (1 - saturations))  # s = f / (1 + f)
    return QueryKernel.of(
        Postings.of(counts, np.ones(len(saturations)), 1.2, block_bits=block_bits)
    )


def collection(size, terms=12, *, density=0.4, levels=0, seed=0, block_bits=6):
    """Random saturations, of a few levels only where ties are wanted, and their engine."""
    rng = np.random.default_rng(seed)
    frequencies = density / np.arange(1, terms + 1) ** 0.5
    held = rng.random((size, terms)) < frequencies
    saturations = rng.random(held.shape) * 0.9 + 0.05
    if levels:
        saturations = rng.integers(1, levels + 1, held.shape) / (levels + 1)
    kernel = kernel_of(np.where(held, saturations, 0.0), block_bits)
    return kernel, Bm25Engine(kernel)


def by_row(kernel, terms, k, allowed=True):
    query = QueryTerms.of(terms)
    row = kernel.steps(query.numbers, query.counts) * np.broadcast_to(allowed, kernel.size)
    positions, steps = largest_entries(row, k)
    scores = (steps * kernel.postings.step).astype(np.float32)
    return positions, scores, np.count_nonzero(row)


def best(engine, terms, k, mask=None):
    """With a total, and the same as without."""
    (counted,) = engine.top([terms], k, mask, totals=True)
    (answer,) = engine.top([terms], k, mask)
    assert same(answer[:2], counted[:2])
    assert answer.total == 0
    return counted


def same(one, other):
    return all(map(np.array_equal, one, other))


def test_of_equal_scores_the_first_wins_whatever_order_they_are_collected_in():
    """More documents than the buffer holds tie before the first of them is met."""
    saturations = np.zeros((4096, 2))
    saturations[:, 1] = 0.05  # in all, so its postings are looked up
    saturations[[2, *range(16, 512, 16), *range(17, 512, 16)], 0] = 0.5
    kernel = kernel_of(saturations, block_bits=13)
    positions, scores, total = by_row(kernel, [0, 1], 1)
    answer = best(Bm25Engine(kernel), [0, 1], 1)
    assert positions.tolist() == [2]
    assert same(answer[:2], (positions, scores))
    assert answer.total == total


queries = st.lists(st.integers(-1, 11), max_size=12)
depths = st.sampled_from([1, 2, 9, 10, 11, 64, 99, 100, 101, 1000, 1001, 10**9])


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
    kernel, engine = collection(size, density=density, levels=levels, seed=seed, block_bits=bits)
    expected = by_row(kernel, asked, k)
    assert same(best(engine, asked, k), expected)
    for answer in engine.top([asked, asked], k, totals=True):
        assert same(answer, expected)


@given(
    size=st.sampled_from([1, 2, 63, 64, 65, 129, 500, 2000]),
    share=st.sampled_from([0.0, 0.01, 0.1, 0.5, 0.99]),
    levels=st.sampled_from([0, 1, 3]),
    seed=st.integers(0, 5),
    bits=st.sampled_from([6, 8, 16]),
    asked=queries,
    k=depths,
)
def test_within_a_mask_the_best_are_those_of_the_plain_row(
    size, share, levels, seed, bits, asked, k
):
    kernel, engine = collection(size, levels=levels, seed=seed, block_bits=bits)
    allowed = np.random.default_rng(seed).random(size) < share
    expected = by_row(kernel, asked, k, allowed)
    assert same(best(engine, asked, k, Mask(allowed)), expected)
    for answer in engine.top([asked, asked], k, Mask(allowed), totals=True):
        assert same(answer, expected)
    assert same(best(engine, asked, k), by_row(kernel, asked, k))  # the mask is forgotten


@pytest.mark.parametrize("k", [1, 10, 50])
def test_optional_terms_lose_nothing(k):
    """Many frequent, weak terms beside one strong one: the blocks are pruned and looked up."""
    rng = np.random.default_rng(3)
    held = rng.random((40_000, 6)) < 0.5
    held[:, 5] = rng.random(40_000) < 0.02
    saturations = np.where(held, rng.random((40_000, 6)) * 0.05 + 0.01, 0)
    saturations[:, 5] *= 15
    for bits in (10, 13):
        kernel = kernel_of(saturations, bits)
        engine = Bm25Engine(kernel)
        for asked in ([0, 1, 2, 3, 4, 5], [5, 0, 5], [0, 1], [4, 3, 3]):
            assert same(best(engine, asked, k), by_row(kernel, asked, k))
            for allowed in (rng.random(40_000) < 0.5, np.arange(40_000) > 39_000):
                expected = by_row(kernel, asked, k, allowed)
                assert same(best(engine, asked, k, Mask(allowed)), expected)


@pytest.mark.parametrize("k", [100, 300, 1000])
@pytest.mark.parametrize("rising", [False, True])
def test_an_unusual_first_block_does_not_change_results(rising, k):
    """The threshold guessed from the first of 32 blocks is far too high, or far too low."""
    rng = np.random.default_rng(0)
    saturations = rng.random((2048, 3)) * 0.01 + np.linspace(0.9, 0, 2048)[:, None] ** 2
    kernel = kernel_of(saturations[::-1] if rising else saturations)
    assert same(best(Bm25Engine(kernel), [0, 1, 2], k), by_row(kernel, [0, 1, 2], k))


@pytest.mark.parametrize("size", [40, 60, 5000])
def test_ties_of_any_number_go_by_position(size):
    engine = Bm25Engine(kernel_of(np.full((size, 1), 0.5)))
    for k in (1, 30, size - 1, size, size + 1):
        positions, scores, *_ = best(engine, [0], k)
        assert positions.tolist() == list(range(min(k, size)))
        assert len(set(scores.tolist())) == 1


@pytest.mark.parametrize("asked", [[0] * 40, [*range(12)] * 10, [3] * (MAX_TERMS + 1)])
def test_a_query_of_any_length_is_scored_as_by_the_row(asked):
    kernel, engine = collection(300)
    expected = by_row(kernel, asked, 10)
    assert same(best(engine, asked, 10), expected)
    answers = engine.top([[0], asked, [1]], 10, totals=True)
    assert same(answers[1], expected)
    assert same(answers[2], by_row(kernel, [1], 10))


def test_more_distinct_terms_than_the_compiled_search_takes():
    kernel, engine = collection(200, terms=MAX_TERMS + 44, density=0.9)
    for count in (MAX_TERMS - 1, MAX_TERMS, MAX_TERMS + 1, MAX_TERMS + 44):
        asked = list(range(count))
        assert same(best(engine, asked, 20), by_row(kernel, asked, 20))


def test_results_do_not_depend_on_threads_or_earlier_queries():
    kernel, engine = collection(3000, levels=4)
    rng = np.random.default_rng(1)
    asked = [(rng.integers(-1, 12, 4).tolist(), int(k)) for k in rng.integers(1, 400, 200)]
    expected = [by_row(kernel, terms, k) for terms, k in asked]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda pair: best(engine, *pair), asked))
    assert all(map(same, answers, expected))


def test_no_query_has_no_answer():
    _, engine = collection(10)
    assert engine.top([], 3) == []
    assert [len(answer.doc_ids) for answer in engine.top([[], [-1]], 3)] == [0, 0]
