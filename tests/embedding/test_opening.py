"""Specifications of embedders and rerankers."""

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from klsa_search.embedding import Embedder, open_embedder, open_reranker
from klsa_search.errors import MissingExtra, SettingsError


def counts(texts, kind):
    return np.array([[len(text), kind == "query"] for text in texts], float)


class Counts:
    name, fingerprint, dimension = "counts", "counts-1", 2

    def embed(self, texts, kind):
        return counts(texts, kind)


def overlap(query, texts):
    return [len(set(query.split()) & set(text.split())) for text in texts]


HERE = f"python:{__name__}"


def test_a_function_is_an_embedder_with_its_name_as_fingerprint():
    embedder = open_embedder(f"{HERE}:counts")
    assert isinstance(embedder, Embedder)
    assert embedder.fingerprint == open_embedder(counts).fingerprint == f"{HERE}:counts"
    assert embedder.dimension == 2
    assert embedder.embed(["cold", "wet roads"], "query").tolist() == [[4, 1], [9, 1]]
    assert embedder.embed(["cold"], "document").tolist() == [[4, 0]]
    assert embedder.embed([], "document").shape == (0, 2)
    assert open_embedder(embedder) is embedder


@pytest.mark.parametrize("given", [Counts(), f"{HERE}:Counts"], ids=["object", "class"])
def test_an_object_of_the_protocol_is_an_embedder(given):
    embedder = open_embedder(given)
    assert (embedder.name, embedder.fingerprint, embedder.dimension) == ("counts", "counts-1", 2)


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("minilm", "'minilm' is unknown; give onnx:FOLDER"),
        ("python:counts", "is unknown"),
        ("python:no_such_module:counts", "cannot be imported .ModuleNotFoundError"),
        (f"{HERE}:nothing", "cannot be imported .AttributeError"),
        (f"{HERE}:HERE", "neither a function nor"),
        ("openai:http://127.0.0.1:1/v1", "no address and model"),
        ("openai:ftp://127.0.0.1/v1#m", "no address and model"),
        ("openai:http://user:secret@127.0.0.1/v1#m", "has a user name"),
    ],
)
def test_a_wrong_specification_is_refused(spec, reason):
    with pytest.raises(SettingsError, match=reason) as refused:
        open_embedder(spec)
    assert refused.value.field == "embedder"
    assert "secret" not in str(refused.value)


def test_a_function_is_a_reranker():
    for given in (overlap, f"{HERE}:overlap"):
        assert open_reranker(given)("wet roads", ["dry roads", "wet roads"]) == [1.0, 2.0]
    with pytest.raises(SettingsError, match="is unknown"):
        open_reranker("minilm")
    with pytest.raises(SettingsError, match="give python:module:function or the name of a plug-in"):
        open_reranker("onnx:cross-encoder")


def test_sentence_transformers_reads_a_local_folder_only(monkeypatch, tmp_path):
    loaded = []

    class SentenceTransformer:
        def __init__(self, folder, **options):
            self.prompts = {"query": "query: ", "document": ""}
            loaded.append((folder, options))

        def encode(self, texts, prompt_name, **options):
            return np.array([[len(text), prompt_name == "query"] for text in texts], np.float32)

    stub = ModuleType("sentence_transformers")
    stub.__spec__ = SimpleNamespace(name="sentence_transformers")
    stub.SentenceTransformer = SentenceTransformer
    monkeypatch.setitem(sys.modules, "sentence_transformers", stub)
    folder = tmp_path / "model"
    with pytest.raises(SettingsError, match="is not a folder"):
        open_embedder(f"sentence-transformers:{folder}")
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    embedder = open_embedder(f"sentence-transformers:{folder}")
    assert loaded == [(str(folder), {"device": "cpu", "local_files_only": True})]
    assert embedder.embed(["cold"], "query").tolist() == [[4, 1]]
    assert embedder.embed(["cold"], "document").tolist() == [[4, 0]]
    (folder / "README.md").write_text("about")
    assert open_embedder(f"sentence-transformers:{folder}").fingerprint == embedder.fingerprint
    (folder / "config.json").write_text("{ }")
    assert open_embedder(f"sentence-transformers:{folder}").fingerprint != embedder.fingerprint


@pytest.mark.parametrize(
    ("kind", "module", "extra"),
    [
        ("onnx", "onnxruntime", "onnx"),
        ("sentence-transformers", "sentence_transformers", "sentence-transformers"),
    ],
)
def test_a_missing_package_is_named(monkeypatch, tmp_path, kind, module, extra):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=rf"klsa-search\[{extra}\]"):
        open_embedder(f"{kind}:{tmp_path}")
