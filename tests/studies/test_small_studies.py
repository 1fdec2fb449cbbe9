"""Small runs of the studies with one module."""

from dataclasses import replace

import numpy as np
import pytest

from klsa_search import build
from klsa_search.collection import open_collection
from klsa_search.core.config import PRESETS
from studies import labels, tuning_margin
from studies.effectiveness.reuters import Labelled
from tests.studies.conftest import NAMES, toy_task

pytestmark = pytest.mark.slow


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
