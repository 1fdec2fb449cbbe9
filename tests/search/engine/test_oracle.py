"""The native engine against the oracle in NumPy, with each instruction set, to the bit."""

from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klsa_search import _native
from klsa_search.core.parameters import RankingSettings
from klsa_search.search.engine import engine as engines
from klsa_search.search.engine.engine import Exact
from klsa_search.search.engine.mask import Mask
from klsa_search.search.rankers.klsa import klsa_params
from tests.oracle.ranking import Oracle
from tests.search.engine.sparse_world import WAYS, cut_world
from tests.support.worlds import random_documents


@pytest.fixture(scope="module", params=_native.instruction_sets(), autouse=True)
def instruction_set(request):
    previous = _native.select_instruction_set(request.param)
    yield request.param
    _native.select_instruction_set(previous)


@pytest.fixture(scope="module")
def world():
    return cut_world(random_documents(900, 60, seed=5), block_bits=8)


@pytest.fixture(scope="module")
def answers(world):
    """A function that returns queries in one of the ways, with what the oracle finds by each.

    The oracle answers once for all instruction sets: it takes more time than all of them.
    """

    @cache
    def of(way, small):
        oracle = Oracle(replace(world, small=small))
        params = klsa_params(world, RankingSettings.checked(WAYS[way]))
        randomness = np.random.default_rng(7)
        answered = []
        for k, length in product((1, 300, 900), (1, 3, 20, 300)):
            terms = randomness.integers(-1, len(world.vocabulary), length).tolist()
            share = randomness.random(len(world))
            for mask in (None, *(Mask(share < most) for most in (0.005, 0.1, 0.7))):
                query = (terms, k, params, mask)
                answered.append((query, oracle.top(*query)))
        return answered

    return of


@pytest.mark.parametrize("small", [False, True])
@pytest.mark.parametrize("way", range(len(WAYS)), ids=lambda way: str(WAYS[way]))
def test_scores_equal_those_of_the_oracle(world, answers, monkeypatch, way, small):
    engine = replace(world, small=small).klsa_engine
    monkeypatch.setattr(engines, "FEW", 0 if small else 200)
    monkeypatch.setattr(engines, "FILTERED_DEPTH", 20)
    for (terms, *rest), expected in answers(way, small):
        (found,) = engine.top([terms], *rest, totals=True)
        assert found.doc_ids.tolist() == expected.doc_ids.tolist()
        assert found.scores.tobytes() == expected.scores.tobytes()
        assert found.total == expected.total


@pytest.mark.slow
def test_pruning_changes_no_bit_in_a_large_collection():
    """The engine may skip documents; the oracle scores all 6,000."""
    world = cut_world(random_documents(6_000, 400, seed=11), neighbours=20, dimensions=20)
    engine, oracle, randomness = world.klsa_engine, Oracle(world), np.random.default_rng(13)
    some = Mask(randomness.random(len(world)) < 0.1)
    for way, k in product(WAYS, (10, 300)):
        params = klsa_params(world, RankingSettings.checked(way))
        for length in (1, 2, 5, 30):
            terms = randomness.integers(0, len(world.vocabulary), length).tolist()
            for mask in (None, some):
                (found,) = engine.top([terms], k, params, mask, totals=True)
                expected = oracle.top(terms, k, params, mask)
                assert found.doc_ids.tolist() == expected.doc_ids.tolist()
                assert found.scores.tobytes() == expected.scores.tobytes()
                assert found.total == expected.total


def test_sums_over_a_long_document_do_not_overflow():
    long = " ".join(f"long{number}" for number in range(600))
    world = cut_world([long, *random_documents(120, 60, seed=5)])
    params = klsa_params(world, RankingSettings.checked({}))
    terms = [world.vocabulary.numbers["long7"]]
    (found,) = world.klsa_engine.top([terms], 5, params)
    expected = Oracle(world).top(terms, 5, params, None)
    assert found.doc_ids.tolist() == expected.doc_ids.tolist()
    assert found.scores.tobytes() == expected.scores.tobytes()


@pytest.mark.parametrize("small", [False, True])
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_details_add_up_to_scores(world, way, small):
    engine = replace(world, small=small).klsa_engine
    params = klsa_params(world, RankingSettings.checked(way))
    randomness = np.random.default_rng(3)
    for terms in ([0], [3, -1, 14, 3], [*range(20)], randomness.integers(0, 60, 100).tolist()):
        for k in (1, 300):
            for share in (1.0, 0.1):
                mask = Mask(randomness.random(len(world)) < share)
                (found,) = engine.top([terms], k, params, mask)
                details = engine.explain(terms, found.doc_ids, found.exact, params)
                parts = np.stack((details.expansion, details.latent, details.lexical))
                total = parts.sum(0, np.float64) + details.coverage.sum(1, np.float64)
                # Scores are rounded to floats at each step, and those below 0 count as 0.
                rounding = 1e-6 * found.scores.max(initial=0)
                assert np.abs(np.maximum(total, 0) - found.scores).max(initial=0) <= rounding
                assert (found.exact[:10] == Exact.ALL).all()
                exact = (details.exact & Exact.EXPANSION).astype(bool) & (details.expansion != 0)
                by_seed = details.by_seed.sum(1, np.float64)
                scale = np.abs(details.by_seed).sum(1)
                assert (np.abs(by_seed - details.expansion)[exact] < 5e-3 * scale[exact]).all()


def test_details_of_documents_that_a_query_does_not_find(world):
    engine, params = world.klsa_engine, klsa_params(world, RankingSettings())
    every = np.arange(len(world))
    details = engine.explain([5, 8], every, np.full(len(world), Exact.ALL, np.uint8), params)
    assert (details.exact == Exact.ALL).all()
    saturations = world.bm25_engine.saturations(np.array([5, 8]), every)
    assert ((details.lexical > 0) == saturations.any(1)).all()
    for terms in ([], [-1]):
        details = engine.explain(terms, every, np.zeros(len(world), np.uint8), params)
        assert not any(array.any() for array in (details.expansion, details.lexical))
        assert details.by_seed.shape == (len(world), 0)


@given(
    size=st.sampled_from([1, 2, 63, 64, 65, 130, 400]),
    bits=st.sampled_from([6, 7, None]),
    terms=st.lists(st.integers(-1, 11), max_size=30),
    k=st.sampled_from([1, 10, 64, 400]),
    way=st.sampled_from(WAYS),
    seed=st.integers(0, 5),
)
def test_any_query_to_any_collection(size, bits, terms, k, way, seed):
    snapshot = cut_world(random_documents(size, 12, seed), block_bits=bits)
    terms = [term if term < len(snapshot.vocabulary) else -1 for term in terms]
    params, k = klsa_params(snapshot, RankingSettings.checked(way)), min(k, size)
    (found,) = snapshot.klsa_engine.top([terms], k, params, totals=True)
    expected = Oracle(snapshot).top(terms, k, params)
    assert found.doc_ids.tolist() == expected.doc_ids.tolist()
    assert found.scores.tobytes() == expected.scores.tobytes()
    assert found.total == expected.total


def test_unknown_terms_find_nothing(world):
    (found,) = world.klsa_engine.top([[-1]], 3, klsa_params(world, RankingSettings()))
    assert len(found.doc_ids) == len(found.scores) == 0


def test_a_term_that_the_index_has_not_is_an_error(world):
    with pytest.raises(IndexError, match="a term that the index has not"):
        world.bm25_engine.top([[10**9]], 3)


def test_a_document_is_near_those_of_its_row_alone():
    world = cut_world(["a b", "a b", "c d", "e f"])
    assert [world.nearest(document).tolist() for document in range(4)] == [[1], [0], [], []]
