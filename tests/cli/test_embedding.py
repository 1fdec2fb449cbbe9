"""Embedders on the command line, in the process of a service that refits, and after a kill."""

import json
import os
import signal
import subprocess
import sys

import pytest

import klsa_search as klsa
from klsa_search.cli.children import refit as refit_child
from klsa_search.collection.vectors import vectors_of
from klsa_search.embedding.options import embedders_of
from klsa_search.errors import SettingsError
from klsa_search.indexing import embed
from klsa_search.search.index import open_index
from klsa_search.service.application import opener_of
from klsa_search.service.settings import read_settings
from tests.support.embedders import Meanings
from tests.support.waiting import PATIENCE

MODULE = "tests.support.embedders"
MODEL = f"python:{MODULE}:meanings"
DOCUMENTS = [{"id": str(n), "text": f"Car {n} on a street."} for n in range(40)]


@pytest.fixture
def path(tmp_path):
    klsa.build(DOCUMENTS, name="cars", home=tmp_path, dimensions=2).close()
    return tmp_path / "cars"


def test_embed_computes_what_is_missing_and_search_embeds_queries(path, shell):
    home = ("--home", path.parent)
    command = ("klsa-index", "embed", "cars", *home, "--space", "m", "--embedder", MODEL)
    assert shell(*command).out == "cars: embedded 40 documents, generation 000002\n"
    assert shell(*command).out == "cars: all documents have vectors in `m`; nothing changed\n"
    found = shell("klsa-search", "cars", "automobile", *home, "--json", "--embedder", f"m={MODEL}")
    assert len(found.json["hits"]) == 10
    assert not shell("klsa-search", "cars", "automobile", *home, "--json").json["hits"]
    other = shell(*command[:-1], f"python:{MODULE}:other")
    assert other.code == 2
    assert "were computed by another model" in other.err
    assert shell(*command[:-1], f"python:{MODULE}:other", "--replace").code == 0
    failing = shell("klsa-search", "cars", "car", *home, "--embedder", f"m=python:{MODULE}:failing")
    assert failing.code == 2  # another model too
    wrong = shell("klsa-search", "cars", "car", *home, "--embedder", MODEL)
    assert wrong.err.startswith("error: embedder = 'python:tests.support.embedders:meanings' names")


def test_a_batch_is_ranked_by_vectors_too_but_not_recorded(path, shell, tmp_path):
    home = ("--home", path.parent)
    shell("klsa-index", "embed", "cars", *home, "--space", "m", "--embedder", MODEL)
    (tmp_path / "queries.tsv").write_text("1\tautomobile\n")
    command = ("klsa-search", "cars", *home, "--batch", "queries.tsv", "--run", "run.txt")
    shell(*command, "--embedder", f"m={MODEL}")
    assert len((tmp_path / "run.txt").read_text().splitlines()) == 10
    refused = shell(*command, "--embedder", f"m={MODEL}", "--record", "record.json")
    assert refused.code == 2
    assert "--record and --embedder exclude each other" in refused.err


@pytest.mark.parametrize("model", ["meanings", "failing"])
def test_a_refit_of_a_service_computes_vectors_or_goes_on_without(path, model, capsys):
    command = ["cars", "--home", str(path.parent), "--embedder", f"m=python:{MODULE}:{model}"]
    refit_child.main([*command, "--settings", json.dumps({"alpha": 0.3})], standalone_mode=False)
    with open_index(path) as index:
        assert (index.generation, index.settings.alpha) == ("000002", 0.3)
        embedded = [bool(vectors_of(each)) for each in index.live_documents()]
        assert embedded == [model == "meanings"] * 40


def test_a_service_opens_its_models_once(path, shell):
    shell("klsa-index", "embed", "cars", "--home", path.parent, "--space", "m", "--embedder", MODEL)
    settings = read_settings({"embedders": (f"m={MODEL}",), "reranker": "python:builtins:len"})
    opener = opener_of(settings)
    with opener(path) as index:
        assert index.search("automobile").hits
        assert index.search("automobile", rerank=3).warnings  # len takes one argument
    with pytest.raises(SettingsError, match="names no space"):
        embedders_of(["onnx:folder"])


KILLED = f"""
import os, signal, sys
from klsa_search.indexing import computed_vectors, embed
from {MODULE} import Meanings
computed_vectors.BATCH = 10
embedder = Meanings()
embedder.fault = lambda vectors: (
    os.kill(os.getpid(), signal.SIGKILL) if len(embedder.calls) > 2 else vectors
)
embed(sys.argv[1], space="m", embedder=embedder)
"""


@pytest.mark.slow
def test_a_killed_computation_continues(path):
    done = subprocess.run([sys.executable, "-c", KILLED, path], timeout=PATIENCE)
    assert done.returncode == -signal.SIGKILL
    with open_index(path) as index:
        assert (index.generation, index.manifest.vectors) == ("000001", [])
    embedder = Meanings()
    embed(path, space="m", embedder=embedder).index.close()
    assert len(embedder.texts) == 20
    assert sorted(os.listdir(path)) == sorted(
        {"000001", "000002", "CURRENT", "KLSA-INDEX", "LOCK", "WRITING"}
    )
