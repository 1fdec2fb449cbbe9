"""The default ranking in NumPy equals the compiled one to the bit."""

from dataclasses import replace

import numpy as np
import pytest

from klsa_search.core.config import SearchSettings
from klsa_search.search.engine import engine as engines
from klsa_search.search.engine.mask import Mask
from klsa_search.search.engine.workspace import EngineQuery
from klsa_search.search.rankers.klsa import klsa_params
from tests.search.engine.sparse_world import WAYS, cut_world
from tests.support.worlds import random_documents


@pytest.fixture(scope="module")
def world():
    return cut_world(random_documents(900, 60, seed=5), block_bits=8)


@pytest.mark.parametrize("small", [False, True])
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_the_same_bits(world, monkeypatch, way, small):
    engine = replace(world, small=small).klsa_engine
    params = klsa_params(world, SearchSettings.checked(way))
    few = 0 if small else 200  # documents of a mask that are looked at one and all
    randomness = np.random.default_rng(7)
    for k in (1, 300, 2000):
        for length in (1, 3, 20):
            terms = randomness.integers(-1, len(world.vocabulary), length).tolist()
            k = min(k, len(world))
            share = randomness.random(len(world))
            for mask in (None, *(Mask(share < most) for most in (0.005, 0.1, 0.7))):
                monkeypatch.setattr(engines, "FEW", few)
                monkeypatch.setattr(engines, "FILTERED_DEPTH", 20)
                (compiled,) = engine.top([terms], k, params, mask, totals=True)
                asked = EngineQuery(k, mask, totals=True)
                plain = engine._reference.top(terms, asked, params, engine.depths(asked, params))
                assert compiled.doc_ids.tolist() == plain.doc_ids.tolist()
                assert compiled.scores.tobytes() == plain.scores.tobytes()
                assert compiled.scores.dtype == plain.scores.dtype
                assert compiled.total == plain.total


def test_unknown_terms_find_nothing(world):
    depths = engines.RerankDepths(3, 3, 0, False)
    found = world.klsa_engine._reference.top(
        [-1], EngineQuery(3), klsa_params(world, SearchSettings()), depths
    )
    assert len(found.doc_ids) == len(found.scores) == 0
