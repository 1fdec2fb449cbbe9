import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from klsa_search import build
from klsa_search.errors import DocumentNotFound, QueryError
from klsa_search.mining import document_map
from klsa_search.mining import map as maps
from klsa_search.mining.clusters import k_means
from klsa_search.mining.map import ClusterLayout

from .conftest import EACH, documents, topic_of


def topics_of(index, drawn):
    return np.array([topic_of(id_) for id_ in index.ids(drawn.doc_ids)])


def test_every_document_with_a_known_term_is_drawn(index):
    drawn = document_map(index)
    assert len(drawn) == 49
    assert (drawn.documents, drawn.unplaced) == (50, 1)
    assert drawn.positions.shape == (49, 2)
    assert drawn.positions.min() == pytest.approx(0, abs=1e-9)
    assert drawn.positions.max() == pytest.approx(1, abs=1e-9)
    assert "d49" not in index.ids(drawn.doc_ids)


def test_documents_of_a_topic_lie_together(index):
    drawn = document_map(index)
    topics = topics_of(index, drawn)
    distances = np.square(drawn.positions[:, None] - drawn.positions[None]).sum(axis=2)
    np.fill_diagonal(distances, np.inf)
    near = np.argsort(distances, axis=1)[:, :5]
    assert (topics[near] == topics[:, None]).mean() > 0.9


def test_clusters_hold_all_and_are_named_by_their_words(index, monkeypatch):
    monkeypatch.setattr(maps, "DOCUMENTS_PER_CLUSTER", 3)  # so that four clusters are wanted
    maps.cluster_layout.cache_clear()
    drawn = document_map(index, words=2)
    maps.cluster_layout.cache_clear()
    assert [one.size for one in drawn.clusters] == [13, 12, 12, 12]
    topics = topics_of(index, drawn)
    for number, one in enumerate(drawn.clusters):
        (topic,) = set(topics[drawn.cluster == number].tolist())
        assert {word[0] for word in one.words} == {"abcd"[topic]}
        assert len(one.words) == 2
        nearest = np.square(drawn.positions - (one.x, one.y)).sum(axis=1).argmin()
        assert drawn.cluster[nearest] == number
    assert len({one.tone for one in drawn.clusters}) == 4


def test_the_same_map_every_time(index):
    first = document_map(index)
    maps.cluster_layout.cache_clear()
    second = document_map(index)
    assert first.positions.tobytes() == second.positions.tobytes()
    assert first.clusters == second.clusters


def test_whole_numbers(index):
    drawn = document_map(index)
    whole = drawn.as_integers(1000)
    assert whole.min() == 0
    assert whole.max() == 1000
    assert np.abs(whole / 1000 - drawn.positions).max() <= 0.0005 + 1e-9


@pytest.mark.parametrize("partitions", [1, 3])
def test_later_documents_are_put_among_their_like(tmp_path, partitions):
    everything = documents()
    later = [one for one in everything[:48] if int(one["id"][1:]) % EACH == 7]
    first = [one for one in everything if one not in later]
    options = {"dimensions": 8, "latent_dimensions": 4}
    if partitions > 1:
        options |= {"partitions": partitions, "workers": 1}
    index = build(first, name="living", home=tmp_path, **options)
    before = document_map(index)
    index.add(later)
    index.delete(["d0", "d20"])
    drawn = document_map(index)
    ids = index.ids(drawn.doc_ids)
    assert set(ids) == {one["id"] for one in everything} - {"d0", "d20", "d49"}
    assert drawn.documents == 48
    assert sum(one.size for one in drawn.clusters) == 47
    where = dict(zip(ids, drawn.positions.tolist(), strict=True))
    stood = dict(zip(index.ids(before.doc_ids), before.positions.tolist(), strict=True))
    assert all(where[id_] == stood[id_] for id_ in where if id_ in stood)
    topics = topics_of(index, drawn)
    for one in later:
        own = np.array(where[one["id"]])
        others = np.array([id_ != one["id"] for id_ in ids])
        distances = np.where(others, np.square(drawn.positions - own).sum(axis=1), np.inf)
        assert topics[distances.argmin()] == topic_of(one["id"])
    index.close()


def test_many_documents_are_sampled_evenly(tmp_path, monkeypatch):
    monkeypatch.setattr(maps, "MAX_POINTS", 20)
    maps.cluster_layout.cache_clear()
    index = build(documents(), name="many", home=tmp_path, dimensions=8, latent_dimensions=4)
    drawn = document_map(index)
    maps.cluster_layout.cache_clear()
    assert len(drawn) == 20
    assert drawn.documents == 50
    assert set(np.diff(drawn.doc_ids)) == {2, 3}
    assert sum(one.size for one in drawn.clusters) == 49
    index.close()


def test_any_document_has_a_place(tmp_path, monkeypatch):
    everything = documents()
    index = build(everything, name="whole", home=tmp_path, dimensions=8, latent_dimensions=4)
    whole = document_map(index)
    some = document_map(index, ids=["d40", "d3", "d49", "d3"])  # d49 lies nowhere
    assert index.ids(some.doc_ids) == ["d3", "d40"]
    at = np.searchsorted(whole.doc_ids, some.doc_ids)
    assert some.positions.tolist() == whole.positions[at].tolist()
    assert some.cluster.tolist() == whole.cluster[at].tolist()
    assert (some.documents, some.unplaced, some.clusters) == (50, 1, ())
    assert len(document_map(index, ids=[])) == 0
    with pytest.raises(DocumentNotFound):
        document_map(index, ids=["nope"])
    monkeypatch.setattr(maps, "MAX_POINTS", 25)
    maps.cluster_layout.cache_clear()
    part = document_map(index)
    left_out = sorted(set(whole.doc_ids.tolist()) - set(part.doc_ids.tolist()))
    some = document_map(index, ids=index.ids(left_out))
    maps.cluster_layout.cache_clear()
    assert some.doc_ids.tolist() == left_out
    topics = topics_of(index, part)
    distances = np.square(part.positions[:, None] - some.positions[None]).sum(axis=2)
    assert (topics[distances.argmin(axis=0)] == topics_of(index, some)).mean() > 0.9
    index.close()


def test_an_index_of_nothing_has_an_empty_map(tmp_path):
    for name, source in (("none", []), ("blank", [{"id": "a", "text": ""}])):
        index = build(source, name=name, home=tmp_path)
        drawn = document_map(index)
        assert (len(drawn), drawn.clusters) == (0, ())
        assert (drawn.documents, drawn.unplaced) == (len(source), len(source))
        index.close()


def test_neighbours_have_other_tones():
    middles = np.random.default_rng(0).random((20, 2))
    tones = maps.tones_of(middles)
    assert sorted(tones[: maps.TONES]) == list(range(maps.TONES))
    distances = np.square(middles[:, None] - middles[None]).sum(axis=2)
    np.fill_diagonal(distances, np.inf)
    nearest = distances.argmin(axis=1)
    assert all(tones[a] != tones[b] for a, b in enumerate(nearest))


def test_bad_input_is_named(index):
    with pytest.raises(QueryError) as refused:
        document_map(index, words=0)
    assert refused.value.field == "words"


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
