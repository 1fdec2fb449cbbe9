"""The study of routing by topic, on a small world of four topics."""

import numpy as np
import pytest

from studies.effectiveness import partition_routing
from studies.effectiveness.measuring import Bench
from tests.studies.conftest import NAMES, toy_task


def test_partition_routing(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(partition_routing, "NUMBERS", (4,))
    monkeypatch.setattr(partition_routing, "task_of", lambda name, _: toy_task(name))
    found = partition_routing.report(Bench(tmp_path), tmp_path, ["cran"])["cran"]
    assert found["documents"] == 48
    assert len(found["precisions"]) == len(NAMES)
    by_hash, by_topic = (found["4"][each] for each in partition_routing.ROUTINGS)
    assert by_topic["kept"] > 0.9 > by_hash["kept"]
    assert sum(by_topic["sizes"]) == 48
    assert max(by_topic["sizes"]) <= 1.1 * 48 / 4
    assert "| mean |" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="no task nothing; the tasks are: cran"):
        partition_routing.report(Bench(tmp_path), tmp_path, ["nothing"])


def test_documents_are_in_the_partition_of_their_topic(tmp_path):
    task, bench = toy_task(), Bench(tmp_path)
    whole = bench.index(task, {"passages": "off"})
    topics = np.repeat(np.arange(len(NAMES)), 12)
    index = partition_routing._routed(bench, task, "topic", len(NAMES), whole.ids(), topics)
    for number, view in enumerate(index._now().views):
        assert view.ids() == [str(12 * number + n) for n in range(12)]


def test_clusters_are_balanced_by_hand():
    """Three of four are nearest to the first cluster, which has room for two."""
    cosines = np.array([[0.9, 0.1], [0.8, 0.7], [0.9, 0.3], [0.1, 0.2]])
    assert partition_routing._balanced(cosines, 2).tolist() == [0, 1, 0, 1]


def test_topics_of_separate_clusters():
    turns = np.radians([0, 1, 2, 3, 90, 91, 92, 93])
    coordinates = np.column_stack((np.cos(turns), np.sin(turns)))
    labels = partition_routing.topics(coordinates, 2)
    assert labels[0] != labels[4]
    assert labels.tolist() == np.repeat(labels[[0, 4]], 4).tolist()
