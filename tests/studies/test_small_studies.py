"""The studies of one file each."""

from dataclasses import replace

import numpy as np
import pytest

from klsa_search import build
from klsa_search.collection import Judgement, open_collection
from klsa_search.config import PRESETS
from studies import cluster_engines, figure_protocols, labels, tuning_margin
from studies.effectiveness.reuters import Labelled
from tests.evaluation.worlds import FakeCollection
from tests.studies.conftest import NAMES, toy_task


def test_average_precision_by_hand():
    scores = np.array([0.9, 0.8, 0.7, 0.6])
    assert figure_protocols.average_precision(scores, [1, 3], []) == (1 / 2 + 2 / 4) / 2
    assert figure_protocols.average_precision(scores, [1, 3], [0]) == (1 / 1 + 2 / 3) / 2


def test_protocols_of_the_figure(tmp_path, capsys):
    task = toy_task()
    refused = [Judgement(query_id=topic, document_id="47", grade=-1, gain=0) for topic in NAMES]
    collection = FakeCollection(asked=task.queries, judged=[*task.judgements, *refused])
    collection.judged = [j for j in collection.judged if (j.query_id, j.grade) != ("d", 1)]
    index = build(task.documents, name="toy", home=tmp_path, preset="paper", dimensions=10)
    figure_protocols.report(index, collection)
    said = capsys.readouterr().out
    assert "graded -1 for 0 of 3 queries" in said
    assert said.count("z=") == 2 * len(figure_protocols.SEEDS)


def test_pairs_of_alpha_by_hand():
    table = np.array([[0.2, 0.4], [0.4, 0.6]])
    assert tuning_margin.pairs_of(table, np.array([0.5, 0.6])) == [
        (True, pytest.approx(0.2 / 0.3), pytest.approx(0.2)),
        (False, pytest.approx(-0.2 / 0.5), pytest.approx(-1 / 6)),
    ]


def test_promises_of_halves(tmp_path, monkeypatch):
    task = toy_task()
    monkeypatch.setattr(tuning_margin, "BASES", 1)
    monkeypatch.setattr(tuning_margin, "PRESETS", {"default": PRESETS["default"]})
    monkeypatch.setattr(tuning_margin, "ALPHAS", (0.0, 0.8))
    monkeypatch.setattr(tuning_margin, "open_collection", lambda *_, **__: toy_collection(task))
    assert len(tuning_margin.promises("toy", tmp_path, tmp_path)) == 2


def toy_collection(task):
    """Documents long enough to be cut in halves."""
    long = [replace(d, text=" ".join([d.text] * 5)) for d in task.documents]
    collection = open_collection(long)
    collection.queries = lambda: task.queries
    collection.judgements = lambda: task.judgements
    return collection


def test_labels_of_few_examples(tmp_path):
    stories = [
        Labelled(document, "train", (NAMES[n // 12],))
        for n, document in enumerate(toy_task().documents)
    ]
    held = labels.chosen(stories, ("a", "b"), 10)
    assert len(held) == 20
    index = build([story.document for story in held], name="toy", home=tmp_path)
    topics = np.array([story.topics[0] for story in held])
    ids = np.array(index.ids())
    known = dict(zip(ids[:15].tolist(), topics[:15].tolist(), strict=True))
    for name, method in labels.METHODS.items():
        assert np.mean(method(index, known, topics, ["a", "b"])[15:] == topics[15:]) > 0.5, name


def test_a_lost_and_a_repeated_task_are_counted(tmp_path):
    class Forgetful:
        def map(self, seconds, count, notes):
            for number in [*range(count), 0]:
                cluster_engines.short(number, 0, notes)
            yield from ((number, 0) for number in range(1, count))

    (said,) = cluster_engines.mapped(Forgetful(), tmp_path, None).values()
    assert said.split(", ")[-2:] == ["1", "1"]
