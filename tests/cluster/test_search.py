"""Search by shards equals search on one machine to the bit, for any query, mask and state."""

from dataclasses import replace

import numpy as np
import pytest

from klsa_search.cluster.index import spread
from klsa_search.cluster.shard import Shard, Share, shard_postings
from klsa_search.core.config import SearchSettings
from klsa_search.kernels.postings import postings_arrays
from klsa_search.search.engine import engine
from klsa_search.search.engine.mask import Mask
from klsa_search.search.rankers.klsa import klsa_params
from tests.search.engine.sparse_world import WAYS, cut_world
from tests.support.worlds import random_documents


class Near:
    """Shards that are asked without a way between."""

    def __init__(self, snapshot, shards):
        built = snapshot.query_kernel.postings.parts[0].postings.size
        self.shares = [Share(built, each, shards) for each in range(shards)]
        self._shards = [
            Shard(snapshot, share, shard_postings(snapshot, share)) for share in self.shares
        ]

    def best(self, wanted, masks):
        return [
            [shard.best(each, masks and shard.mask(masks[at])) for each in wanted]
            for at, shard in enumerate(self._shards)
        ]

    def scores(self, known, asked):
        return [
            [shard.scores(*each) for each in zip(known, asked[at], strict=True)]
            for at, shard in enumerate(self._shards)
        ]


def assert_same(one, many):
    assert many.doc_ids.tolist() == one.doc_ids.tolist()
    assert many.scores.tobytes() == one.scores.tobytes()
    assert many.scores.dtype == one.scores.dtype
    assert many.total == one.total


@pytest.fixture(scope="module")
def world():
    return cut_world(random_documents(900, 60, seed=5), block_bits=8)


@pytest.mark.parametrize("shards", [1, 7])
@pytest.mark.parametrize("small", [False, True])
def test_the_same_bits(world, monkeypatch, shards, small):
    world = replace(world, small=small)
    monkeypatch.setattr(engine, "FEW", 0 if small else 200)
    monkeypatch.setattr(engine, "FILTERED_DEPTH", 20)
    engines = spread(world, Near(world, shards))
    randomness = np.random.default_rng(shards)
    for way in WAYS:
        params = klsa_params(world, SearchSettings.checked(way))
        for k in (10, len(world)):
            queries = [
                randomness.integers(-1, len(world.vocabulary), length).tolist()
                for length in (1, 3, 20)
            ]
            share = randomness.random(len(world))
            for mask in (None, Mask(share < 0.1), Mask(share < 0.7)):
                expected = world.klsa_engine.top(queries, k, params, mask, totals=True)
                for one, many in zip(
                    expected,
                    engines.klsa_engine.top(queries, k, params, mask, totals=True),
                    strict=True,
                ):
                    assert_same(one, many)
                expected = world.bm25_engine.top(queries, k, mask, totals=True)
                for one, many in zip(
                    expected, engines.bm25_engine.top(queries, k, mask, totals=True), strict=True
                ):
                    assert_same(one, many)


def test_the_same_before_anything_is_compiled(world, monkeypatch):
    params, engines = klsa_params(world, SearchSettings()), spread(world, Near(world, 4))
    queries = np.random.default_rng(1).integers(0, len(world.vocabulary), (5, 3)).tolist()
    for mask in (None, Mask(np.arange(len(world)) % 2 == 0)):
        expected = [
            *world.klsa_engine.top(queries, 10, params, mask, totals=True),
            *world.bm25_engine.top(queries, 10, mask, totals=True),
        ]
        with monkeypatch.context() as patch:
            patch.setattr(engine, "not_compiled", lambda *_: True)
            found = [
                *engines.klsa_engine.top(queries, 10, params, mask, totals=True),
                *engines.bm25_engine.top(queries, 10, mask, totals=True),
            ]
        for one, many in zip(expected, found, strict=True):
            assert_same(one, many)


def test_what_nobody_holds_is_found_nowhere(world):
    engines = spread(world, Near(world, 3))
    params = klsa_params(world, SearchSettings())
    for found in (
        engines.klsa_engine.top([[-1], []], 3, params),
        engines.bm25_engine.top([[-1], []], 3),
    ):
        assert [len(each.doc_ids) for each in found] == [0, 0]


def test_more_terms_than_shards_take_are_answered_here(world):
    engines, params = spread(world, Near(world, 2)), klsa_params(world, SearchSettings())
    many = list(range(50)) * 6
    for each in (engines.klsa_engine, world.klsa_engine):
        assert each.top([many], 3, params) == [None]


@pytest.mark.parametrize("shards", [1, 3, 8])
def test_shares_are_all_positions_each_once(shards):
    size = 900
    shares = [Share(700, each, shards) for each in range(shards)]
    held = np.array([share.held(size) for share in shares])
    assert (held.sum(axis=0) == 1).all()
    positions = np.arange(size)
    for share, own in zip(shares, held, strict=True):
        assert share.holds(positions).tolist() == own.tolist()
        assert share.count(size) == own.sum()
        assert (
            share.spread(share.of(positions % 3 == 0), size).tolist()
            == (own & (positions % 3 == 0)).tolist()
        )


def test_postings_between_are_those_of_the_documents_alone(world):
    (part,) = world.query_kernel.postings.parts
    whole = part.postings.between(0, len(world))
    for name, array in postings_arrays(whole).items():
        if name != "postings_occurrences":
            assert array.tolist() == postings_arrays(part.postings)[name].tolist()
    some = part.postings.between(128, 600)
    for term in range(len(world.vocabulary)):
        documents, saturations = part.postings.of_term(term)
        held = (documents >= 128) & (documents < 600)
        assert some.of_term(term)[0].tolist() == (documents[held] - 128).tolist()
        assert some.of_term(term)[1].tolist() == saturations[held].tolist()
