"""ONNX models in local folders."""

import json
import shutil

import numpy as np
import pytest

from klsa_search.embedding import open_embedder
from klsa_search.errors import SettingsError
from tests.support.onnx_models import WORDS, vectors_of_words, write_embedder

pytest.importorskip("onnxruntime", reason="needs onnxruntime")

POOLING = "1_Pooling__config"
CLS = {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}


def vectors(text):
    return vectors_of_words()[[WORDS.index(word) for word in text.split()]]


def unit(vector):
    return vector / np.linalg.norm(vector)


def test_a_vector_is_the_mean_of_its_tokens(tmp_path):
    embedder = open_embedder(f"onnx:{write_embedder(tmp_path / 'tiny')}")
    assert (embedder.name, embedder.dimension) == ("tiny", 4)
    texts = ["cold", "wet roads and bald tyres".replace("and", "[UNK]"), "cold engines stall"]
    expected = [unit(vectors(text).mean(0)) for text in texts]
    texts[1] = "wet roads and bald tyres"  # the unknown word is a token, too
    np.testing.assert_allclose(embedder.embed(texts, "document"), expected, atol=1e-6)
    for text, row in zip(texts, expected, strict=True):  # padding changes nothing
        np.testing.assert_allclose(embedder.embed([text], "query")[0], row, atol=1e-6)


def test_the_files_of_a_model_set_pooling_length_and_prompts(tmp_path):
    write_embedder(tmp_path / "cls", **{POOLING: CLS})
    embedder = open_embedder(f"onnx:{tmp_path / 'cls'}")
    row = unit(vectors("wet")[0])
    np.testing.assert_allclose(embedder.embed(["wet roads"], "document"), [row], atol=1e-6)

    files = {
        "sentence_bert_config": {"max_seq_length": 2},
        "modules": [{"type": "sentence_transformers.models.Transformer"}, {"type": "a.Pooling"}],
        "config_sentence_transformers": {"prompts": {"query": "cold "}},
    }
    folder = write_embedder(tmp_path / "short", **files)
    (folder / "onnx").mkdir()
    shutil.move(folder / "model.onnx", folder / "onnx" / "model.onnx")
    embedder = open_embedder(f"onnx:{folder}")
    mean = vectors("wet roads").mean(0)  # not normalised
    np.testing.assert_allclose(embedder.embed(["wet roads slip"], "document"), [mean], atol=1e-6)
    mean = vectors("cold wet").mean(0)
    np.testing.assert_allclose(embedder.embed(["wet roads"], "query"), [mean], atol=1e-6)


def test_a_fingerprint_covers_model_tokenizer_and_preprocessing(tmp_path):
    same = [write_embedder(tmp_path / name) for name in ("one", "two")]
    other = write_embedder(tmp_path / "other", seed=1)
    cls = write_embedder(tmp_path / "cls", **{POOLING: CLS})
    words = write_embedder(tmp_path / "words")
    tokenizer = json.loads((words / "tokenizer.json").read_text())
    tokenizer["pre_tokenizer"] = {"type": "WhitespaceSplit"}
    (words / "tokenizer.json").write_text(json.dumps(tokenizer))
    prints = [open_embedder(f"onnx:{each}").fingerprint for each in (*same, other, cls, words)]
    assert prints[0] == prints[1]
    assert len(set(prints)) == 4


def damaged(folder):
    (folder / "model.onnx").write_bytes(b"no graph")


def without_graph(folder):
    (folder / "model.onnx").unlink()


def without_tokenizer(folder):
    (folder / "tokenizer.json").unlink()


def with_dense(folder):
    (folder / "modules.json").write_text('[{"type": "sentence_transformers.models.Dense"}]')


def with_maximum(folder):
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_max_tokens": true}')


def not_json(folder):
    (folder / "modules.json").write_text("[")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (damaged, "cannot load the model"),
        (without_graph, "has no model.onnx"),
        (without_tokenizer, "has no tokenizer.json"),
        (with_dense, "a module Dense, which is not supported"),
        (with_maximum, "the pooling pooling_mode_max_tokens, which is not supported"),
        (not_json, "is not valid JSON"),
    ],
)
def test_a_folder_that_is_not_understood_is_refused(tmp_path, change, reason):
    folder = write_embedder(tmp_path / "tiny")
    change(folder)
    with pytest.raises(SettingsError, match=reason):
        open_embedder(f"onnx:{folder}")
