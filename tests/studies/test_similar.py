"""The study of similar documents by vectors, on a small world."""

import json

import numpy as np
import pytest

from studies.effectiveness import similar
from studies.effectiveness.measuring import Bench
from tests.studies.conftest import toy_task

pytestmark = pytest.mark.slow


def test_vectors_of_relevance_find_what_is_relevant(tmp_path, monkeypatch, capsys):
    """Vectors say which queries a document is relevant to."""
    task = toy_task("one", corpus="one")
    queries = sorted({each.query_id for each in task.judgements})
    docs = np.full((len(task.documents), len(queries) + 1), 0.01, np.float32)
    places = {document.id: at for at, document in enumerate(task.documents)}
    for each in task.judgements:
        if each.grade > 0:
            docs[places[each.document_id], queries.index(each.query_id)] = 1
    docs[:, -1] = ~(docs == 1).any(axis=1)
    np.savez(tmp_path / "one.npz", docs=docs, queries=docs[:0])
    monkeypatch.setenv("KLSA_VECTORS", str(tmp_path))
    monkeypatch.delenv("KLSA_MODEL", raising=False)
    monkeypatch.setattr(similar, "task_of", lambda name, _: toy_task(name, corpus=name))
    found = similar.report(Bench(tmp_path / "home"), tmp_path, ["one", "two"])
    assert np.mean(found["one"]["vectors:model"]) == pytest.approx(1)
    assert all(0 <= share <= 1 for each in found["one"].values() for share in each)
    json.dumps(found)
    shown = capsys.readouterr().out
    assert "| one |" in shown
    assert "two is left out" in shown
