"""Shards of a world of four topics: who holds what is known."""

import numpy as np
import pytest

from klsa_search import build
from studies import shards_to_ask
from studies.shard_selection import (
    Summaries,
    TermTable,
    at_random,
    by_rows,
    by_topic,
    kept_within,
    sampled,
)
from tests.studies.conftest import NAMES, toy_task
from tests.support.worlds import counts_of, query_kernel


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    with build(toy_task().documents, name="toy", home=tmp_path_factory.mktemp("home")) as index:
        yield index


@pytest.fixture(scope="module")
def topics(index):
    """Shards that are the topics."""
    labels = np.arange(len(index)) // (len(index) // len(NAMES))
    return Summaries(index.arrays, labels, len(NAMES), 0)


@pytest.fixture(scope="module")
def asked(index):
    return list(shards_to_ask.wanted(index, [query.text for query in toy_task().queries]))


def test_topics_become_shards_of_one_size(index):
    labels = by_topic(index.arrays.latent.documents, 4, 0)
    assert np.bincount(labels).tolist() == [12, 12, 12, 12]
    assert kept_within(index.arrays.cut, labels) > 0.5
    assert kept_within(index.arrays.cut, labels) > kept_within(
        index.arrays.cut, at_random(len(index), 4, 0)
    )


@pytest.mark.parametrize("shards", [1, 7, 48])
def test_no_shard_has_more_than_its_share(index, shards):
    for labels in (
        by_topic(index.arrays.latent.documents, shards, 1),
        at_random(len(index), shards, 1),
    ):
        assert np.bincount(labels, minlength=shards).max() <= -(-len(index) // shards)
        assert labels.min() >= 0


def test_term_table_by_hand():
    kernel = query_kernel(counts_of("a b", "a a", "b", "a"))
    postings = kernel.postings.parts[0].postings
    table = TermTable.of(postings, np.array([1, 0, 0, 1]), 2)
    assert table.shards.tolist() == [0, 1, 0, 1]  # of a, and of b
    assert table.held.tolist() == [1, 2, 1, 1]
    documents, saturations = postings.of_term(0)
    strongest = dict(zip(documents.tolist(), saturations.tolist(), strict=True))
    assert table.best[table.pairs_of(0)].tolist() == [
        strongest[1],
        max(strongest[0], strongest[3]),
    ]


def test_bounds_are_bounds(index, topics, asked):
    for one in asked:
        bounds = topics.bounds(one.query)
        steps = index.arrays.bm25.steps(one.query.numbers, one.query.counts)
        for shard in range(topics.shards):
            assert bounds[shard] >= steps[topics.labels == shard].max()


def test_all_summaries_name_the_topic_of_a_query(topics, asked):
    for topic, one in enumerate(asked):
        for way, scores in topics.scores(one.query).items():
            if way != "sample":  # one document of twelve
                assert scores.argmax() == topic, way


def test_rows_of_seeds_lead_to_their_neighbours(index, topics, asked):
    for topic, one in enumerate(asked):
        found = by_rows(index.arrays.cut, one.seeds, one.weights, topics.labels, topics.shards)
        assert found.argmax() == topic


def test_a_sample_has_something_of_each_shard():
    labels = np.repeat(np.arange(3), (100, 300, 5))
    assert np.bincount(labels[sampled(labels, 3, 0.01, 0)]).tolist() == [1, 3, 1]
    assert np.bincount(labels[sampled(labels, 3, 1, 0)]).tolist() == [100, 300, 5]


def test_ranks_by_hand():
    ranks = shards_to_ask.Ranks()
    ranks.add(np.array([1.0, 3.0, 2.0, 2.0]), np.array([1, 1, 3, 0]))  # asked: 1 2 3 0
    assert [each.tolist() for each in ranks.of_query] == [[1, 1, 3, 4]]
    ranks.add(np.array([4.0, 3.0, 2.0, 1.0]), np.array([0, 0]))
    assert ranks.until(0.5).tolist() == [1, 1]
    assert ranks.until(1.0).tolist() == [4, 1]
    assert [ranks.for_all(share) for share in (0.5, 0.8, 1.0)] == [1, 3, 4]


def test_all_shards_have_all_results(index, topics, asked, monkeypatch):
    monkeypatch.setattr(shards_to_ask, "PARTS", (0.25, 1.0))
    some, all_ = shards_to_ask.alone(asked, index, topics)
    assert 0 < some <= all_ == 1


def test_study_of_a_toy(index, capsys):
    texts = [query.text for query in toy_task().queries]
    found = shards_to_ask.study(index, [*texts, "unheard"], 4, 0)
    assert found["topic"]["queries"] == len(texts)
    asked = found["topic"]["shards_to_ask"]
    for what, ways in asked.items():
        for way, told in ways.items():
            best = np.array(ways["oracle"])
            # What is fewest for one query is fewest for their median, mean and percentiles.
            assert (best[:6] <= np.array(told)[:6]).all(), (what, way)
    assert "in 4 shards by topic, 12 to 12 each" in capsys.readouterr().out
