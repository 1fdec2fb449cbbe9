"""The study of vectors, on a small world."""

import json

import numpy as np
import pytest

from klsa_search.search.ranking.vector_ranking import NEAREST, WEIGHT
from studies.effectiveness import vectors
from studies.effectiveness.measuring import Bench
from tests.studies.conftest import toy_task

pytestmark = pytest.mark.slow


def test_vectors_of_another_language_change_little(tmp_path, monkeypatch, capsys):
    """Random vectors of queries let documents stand out by chance alone."""
    task = toy_task("one", corpus="one")
    rng = np.random.default_rng(0)
    np.savez(
        tmp_path / "one.npz",
        docs=rng.normal(size=(len(task.documents), 64)).astype(np.float32),
        queries=rng.normal(size=(len(task.queries), 64)).astype(np.float32),
    )
    monkeypatch.setenv("KLSA_VECTORS", str(tmp_path))
    monkeypatch.setattr(vectors, "task_of", lambda name, _: toy_task(name, corpus=name))
    found = vectors.report(Bench(tmp_path / "home"), tmp_path, ["one"])
    means = {kind: np.mean(found["one"][kind]) for kind in ("default", "vectors", "both")}
    assert means["vectors"] < means["default"]
    assert means["both"] > 0.8 * means["default"]
    json.dumps(found)
    assert "| one |" in capsys.readouterr().out


def test_scores_are_those_of_the_search():
    words = np.array([4.0, 2.0, 0.0, 0.0], np.float32)
    evidence = vectors.Evidence(words, np.array([0.0, 5.0, 2.5, -1.0]))
    scores = evidence.scores()
    weight = WEIGHT * 4.0
    assert scores.tolist() == pytest.approx([4.0, 2.0 + weight, weight / 8, 0.0])
    assert len(words) < NEAREST
