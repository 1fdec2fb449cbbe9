import json

import pytest

from klsa_search.evaluation.plots import ALPHAS, SEEDS, Grid, draw_grid, measure_grid
from tests.evaluation.worlds import tiny

GRID = Grid(
    collection="tiny",
    bm25=0.30,
    lsi=0.28,
    alphas=ALPHAS,
    points={z: tuple(0.3 + alpha * (0.1 - z / 500) for alpha in ALPHAS) for z in SEEDS},
)


def test_the_grid_asks_for_every_point_once():
    index, collection = tiny()
    told = []
    grid = measure_grid(collection, index, progress=lambda *news: told.append(news))
    queries = len(collection.queries())
    asked = index.asked[::queries]
    assert asked[:2] == [{"ranker": name} for name in ("bm25", "lsi")]
    points = [(a["z"], a["alpha"]) for a in asked[2:]]
    assert points == [(z, alpha) for z in (1, 5, 10, 20, 50) for alpha in ALPHAS]
    assert ALPHAS == (0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1)
    assert told[-1] == ("points", 57, 57)
    assert grid.bm25 == grid.points[50][3] == pytest.approx((1 / 2 + 2 / 3) / 4)


def test_best_is_the_highest_and_the_first_of_equals():
    assert GRID.best() == (1, 1.0, pytest.approx(0.398))
    flat = Grid("c", 0.1, 0.1, (0.0, 1.0), {1: (0.2, 0.3), 5: (0.3, 0.1)})
    assert flat.best() == (1, 1.0, 0.3)


def test_the_grid_goes_into_json_and_back():
    value = json.loads(json.dumps(GRID.as_json()))
    assert value["alpha"] == list(ALPHAS)
    assert value["map"]["1"] == list(GRID.points[1])
    assert list(value) == ["collection", "bm25", "lsi", "alpha", "map"]


@pytest.mark.parametrize(
    "ending",
    ["PNG", *(pytest.param(form, marks=pytest.mark.slow) for form in ("svg", "png", "pdf"))],
)
def test_same_grid_same_bytes(ending, tmp_path):
    first, second = tmp_path / f"1.{ending}", tmp_path / f"2.{ending}"
    draw_grid(GRID, first)
    draw_grid(GRID, second)
    assert first.read_bytes() == second.read_bytes()
    assert len(first.read_bytes()) > 5000


def test_a_flat_grid_can_be_drawn(tmp_path):
    draw_grid(Grid("c", 0.0, 0.0, ALPHAS, dict.fromkeys(SEEDS, (0.0,) * 11)), tmp_path / "f.svg")
