import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from klsa_search.mining import map_layout
from klsa_search.mining.map_layout import layout_points, nearest


def on_the_sphere(count, dimensions=12, seed=0):
    points = np.random.default_rng(seed).standard_normal((count, dimensions)).astype(np.float32)
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def groups(each, many=5):
    """Points about some axes, group by group."""
    points = 0.15 * on_the_sphere(each * many) + np.repeat(
        np.eye(12, dtype=np.float32)[:many], each, 0
    )
    return points / np.linalg.norm(points, axis=1, keepdims=True)


@pytest.mark.parametrize("count", [3, 63, 64, 300, 1500])
def test_the_nearest_are_those_of_all_sums(count):
    points = on_the_sphere(count)
    points[count // 2] = points[0]
    whole = np.rint(points * np.float32(127)).astype(np.int64)
    sums = whole @ whole.T
    np.fill_diagonal(sums, -(10**6))
    few = min(7, count - 1)
    expected = np.argsort(-sums, axis=1, kind="stable")[:, :few]
    assert (nearest(points, None, few) == expected).all()


def test_the_nearest_among_others():
    points, others = on_the_sphere(5), on_the_sphere(200, seed=1)
    others[17] = points[3]
    assert nearest(points, others, 3)[3, 0] == 17
    assert nearest(points, others[:1], 1).tolist() == [[0]] * 5


@pytest.mark.parametrize(("cell", "most"), [(0.5, 0.15), (0.1, 0.01)])
def test_the_repulsion_is_that_of_all_pairs(monkeypatch, cell, most):
    """As near as the grid is fine."""
    monkeypatch.setattr(map_layout, "_CELL", cell)
    places = np.random.default_rng(0).normal(0, 4, (400, 2)).astype(np.float32)
    apart = places[:, None, :] - places[None, :, :]
    kernel = 1 / (1 + np.square(apart).sum(axis=2))
    np.fill_diagonal(kernel, 0)
    expected = (apart * np.square(kernel)[:, :, None]).sum(axis=1) / kernel.sum()
    found = map_layout._Repulsion().of(places)
    error = np.linalg.norm(found - expected, axis=1) / np.linalg.norm(expected, axis=1).mean()
    assert np.median(error) < most
    assert error.max() < 5 * most


def test_groups_lie_apart_and_neighbours_together():
    points = groups(60)
    places = layout_points(points)
    labels = np.repeat(np.arange(5), 60)
    distances = np.square(places[:, None] - places[None]).sum(axis=2)
    np.fill_diagonal(distances, np.inf)
    near = np.argsort(distances, axis=1)[:, :10]
    assert (labels[near] == labels[:, None]).mean() > 0.98
    latent = nearest(points, None, 10)
    kept = np.mean([np.isin(a, b).mean() for a, b in zip(latent, near, strict=True)])
    assert kept > 0.5  # of chance, a sixth


def test_the_same_places_whatever_the_threads():
    points = groups(40)
    with threadpool_limits(1):
        one = layout_points(points)
    with threadpool_limits(2):
        two = layout_points(points)
    assert one.tobytes() == two.tobytes()


@pytest.mark.parametrize("count", [0, 1, 2, 3, 17])
def test_few_points_have_places(count):
    places = layout_points(on_the_sphere(count))
    assert places.shape == (count, 2)
    assert np.isfinite(places).all()
    assert len(np.unique(places, axis=0)) == count


def test_copies_of_one_point_have_places():
    places = layout_points(np.repeat(on_the_sphere(1), 30, axis=0))
    assert np.isfinite(places).all()


def test_a_small_world_is_no_line():
    places = layout_points(groups(8))
    spans = np.sort(np.ptp(places, axis=0))
    assert spans[0] > 0.3 * spans[1]


def test_one_dimension_is_enough():
    points = np.array([[1.0], [1.0], [-1.0], [-1.0]], np.float32)
    places = layout_points(points)
    assert np.isfinite(places).all()


@pytest.mark.parametrize(
    "count", [20, 120, *(pytest.param(each, marks=pytest.mark.long) for each in (50, 400))]
)
def test_no_point_is_thrown_out(count):
    for points in (on_the_sphere(count), groups(count // 5)):
        places = layout_points(points)
        spread = np.abs(places - np.median(places, axis=0)).max()
        assert spread < 5 * np.sqrt(count) + 10
