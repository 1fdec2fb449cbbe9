import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from klsa_search.mining.clusters import k_means
from klsa_search.mining.map import ClusterLayout


def on_the_sphere(count, dimensions=12, seed=0):
    points = np.random.default_rng(seed).standard_normal((count, dimensions))
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def layout_of(points, clusters):
    centres, labels = k_means(points, clusters, 0)
    used, labels = np.unique(labels, return_inverse=True)
    return ClusterLayout.of(points, centres[used], labels), labels


def test_clusters_do_not_overlap_and_fill_the_map():
    points = on_the_sphere(600)
    layout, labels = layout_of(points, 6)
    places = layout.positions(points, labels)
    spans = np.ptp(places, axis=0)
    assert spans.max() == pytest.approx(1)
    assert places.min() == pytest.approx(0)
    distances = np.linalg.norm(places[:, None] - layout.middles[None], axis=2)
    assert (distances.argmin(axis=1) == labels).mean() > 0.95


def test_near_documents_of_a_cluster_lie_together():
    points = on_the_sphere(400, dimensions=3)
    layout, labels = layout_of(points, 5)
    places = layout.positions(points, labels)
    near = np.argsort(-(points @ points.T), axis=1)[:, 1:11]
    distances = np.square(places[:, None] - places[None]).sum(axis=2)
    found = np.argsort(distances, axis=1)[:, 1:11]
    kept = np.mean([np.isin(one, other).mean() for one, other in zip(near, found, strict=True)])
    assert kept > 0.5  # by chance 0.025


def test_places_do_not_depend_on_threads():
    points = on_the_sphere(200)
    with threadpool_limits(1):
        layout, labels = layout_of(points, 5)
        one = layout.positions(points, labels)
    with threadpool_limits(2):
        two = ClusterLayout.of(points, layout.centres, labels).positions(points, labels)
    assert one.tobytes() == two.tobytes()


@pytest.mark.parametrize("count", [1, 2, 3, 17])
def test_few_points_have_places(count):
    points = on_the_sphere(count)
    layout, labels = layout_of(points, 1)
    places = layout.positions(points, labels)
    assert places.shape == (count, 2)
    assert len(np.unique(places, axis=0)) == count
    assert ((places >= 0) & (places <= 1)).all()


def test_equal_points_and_points_of_one_dimension_have_places():
    for points in (np.repeat(on_the_sphere(1), 30, axis=0), np.array([[1.0], [1.0], [-1.0]])):
        layout, labels = layout_of(points, len(np.unique(points, axis=0)))
        assert np.isfinite(layout.positions(points, labels)).all()
