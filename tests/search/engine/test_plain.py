"""The default ranking in NumPy gives what the compiled one gives, to the bit."""

from dataclasses import replace

import numpy as np
import pytest

from klsa_search.config import SearchSettings
from klsa_search.search.engine import expanding
from klsa_search.search.rankers.klsa import mix_of
from tests.search.engine.cut_world import cut_world
from tests.worlds import random_documents

WAYS = (
    {},
    {"unit_length": False},
    {"sharpness": 1.5, "lexical_sharpness": 2.5},
    {"coverage": 0.0},
    {"latent": 0.0},
    {"z": 2, "alpha": 1.0},
)


@pytest.fixture(scope="module")
def world():
    return cut_world(random_documents(900, 60, seed=5), block_bits=8)


@pytest.mark.parametrize("small", [False, True])
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_the_same_bits(world, way, small):
    engine = replace(world, has_spectrum=small).expanding
    mix = mix_of(world, SearchSettings.checked(way))
    randomness = np.random.default_rng(7)
    for k in (1, 10, 300, 2000):
        for length in (1, 3, 9, 20):
            terms = randomness.integers(-1, len(world.vocabulary), length).tolist()
            k = min(k, len(world))
            compiled = engine.best(terms, k, mix)
            plain = engine._plain.best(terms, k, mix, engine._depths(k))
            assert compiled[0].tolist() == plain[0].tolist()
            assert compiled[1].tobytes() == plain[1].tobytes()
            assert compiled[1].dtype == plain[1].dtype


def test_unknown_terms_find_nothing(world):
    positions, scores = world.expanding._plain.best(
        [-1], 3, mix_of(world, SearchSettings()), expanding.Depths(3, 3, False)
    )
    assert len(positions) == len(scores) == 0
