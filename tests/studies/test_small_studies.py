"""Small runs of the studies with one module."""

import numpy as np
import pytest

from klsa_search import build
from studies import labels
from studies.effectiveness.reuters import Labelled
from tests.studies.conftest import NAMES, toy_task

pytestmark = pytest.mark.slow


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
