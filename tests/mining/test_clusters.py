import numpy as np
import pytest

from klsa_search import build
from klsa_search.errors import QueryError
from klsa_search.mining import clusters
from klsa_search.mining.clusters import cluster, k_means_plus_plus
from tests.support.worlds import topic_documents

from .conftest import topic_of


def test_topics_come_out_under_their_own_words(index):
    clustering = cluster(index, 4, words=3)
    assert [one.size for one in clustering.clusters] == [13, 12, 12, 12]
    assert clustering.unplaced == ("d49",)
    for one in clustering.clusters:
        (topic,) = {topic_of(identifier) for identifier in one.central}
        assert len(one.central) == one.size
        assert {word[0] for word in one.words} == {"abcd"[topic]}
        assert one.titles[0] == f"title {one.central[0][1:]}"
    assert len(clustering) == 4


def test_the_same_clusters_every_time(index):
    assert cluster(index, 6) == cluster(index, 6)


def test_one_cluster_holds_all(index):
    (one,) = cluster(index, 1).clusters
    assert one.size == 49


def test_there_are_at_most_as_many_clusters_as_places(tmp_path):
    texts = ["apple tree"] * 3 + ["steel bridge"] * 3
    source = [{"id": str(n), "text": text} for n, text in enumerate(texts)]
    index = build(source, name="two", home=tmp_path)
    clusters = cluster(index, 4).clusters
    assert sum(one.size for one in clusters) == 6
    for one in clusters:
        assert len({index.document(identifier).text for identifier in one.central}) == 1
    index.close()


def test_a_copy_of_what_is_chosen_is_never_chosen():
    """Seven places, copied unequally often: seven choices are all of them, whatever the seed."""
    places = np.random.default_rng(0).standard_normal((7, 5)).astype(np.float32)
    places /= np.linalg.norm(places, axis=1, keepdims=True)
    points = np.repeat(places, [1, 2, 3, 50, 4, 5, 90], axis=0).astype(np.float64)
    for seed in range(20):
        chosen = k_means_plus_plus(points, 7, np.random.default_rng(seed))
        assert len(np.unique(chosen, axis=0)) == 7


def test_distant_points_are_chosen_more_often():
    """At squared distances 1 and 9 from the first: one time in ten and nine in ten."""
    points = np.array([[0.0], [1.0], [3.0]])
    drawn = []
    for seed in range(400):
        first, second = k_means_plus_plus(points, 2, np.random.default_rng(seed))[:, 0]
        if first == 0:
            drawn.append(second)
    assert np.mean(np.array(drawn) == 3) == pytest.approx(0.9, abs=0.06)


def test_bad_input_is_named(index):
    for field, arguments in (("k", {"k": 0}), ("k", {"k": 50}), ("words", {"words": 0})):
        with pytest.raises(QueryError) as refused:
            cluster(index, **arguments)
        assert refused.value.field == field


def test_the_nearest_to_the_middle_come_first(index):
    space = np.asarray(index.arrays.latent.documents, np.float64)
    for one in cluster(index, 4).clusters:
        places = space[index.arrays.rows_of(index.doc_ids(one.central))]
        nearness = places @ places.mean(axis=0)
        assert (np.diff(nearness) <= 1e-6).all()


def test_a_word_that_is_everywhere_names_no_cluster(tmp_path):
    texts = [f"report report {text}" for text in topic_documents(4, 12)]
    source = [{"id": str(n), "text": text} for n, text in enumerate(texts)]
    index = build(source, name="reports", home=tmp_path, latent_dimensions=4)
    for one in cluster(index, 4, words=20).clusters:
        assert "report" not in one.words
        assert len({word[0] for word in one.words[:3]}) == 1
    index.close()


def test_the_tightest_of_the_starts_is_kept(monkeypatch):
    points = np.random.default_rng(3).standard_normal((60, 4))
    points /= np.linalg.norm(points, axis=1, keepdims=True)

    def spread(starts, seed):
        monkeypatch.setattr(clusters, "STARTS", starts)
        centres, labels = clusters.k_means(points, 9, seed)
        return np.square(points - centres[labels]).sum()

    for seed in range(5):
        spreads = [spread(starts, seed) for starts in (1, 2, 3, 4, 5)]
        assert spreads == sorted(spreads, reverse=True)
    assert spreads[-1] < spreads[0]
