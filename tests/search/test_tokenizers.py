"""An index with a user-defined tokenizer."""

import json
import os
import pickle
import sys

import pytest

from klsa_search import build, open_index
from klsa_search.analysis import tokenizers
from klsa_search.errors import SettingsError
from klsa_search.indexing import refit, verify_deep
from tests.support.own_words import bigrams, picky, words
from tests.support.processes import run

DOCUMENTS = [
    {"id": "engine", "text": "我写了搜索引擎。"},
    {"id": "search", "text": "搜索很快"},
    {"id": "motor", "text": "引擎很热"},
]


@pytest.fixture
def index(tmp_path, monkeypatch):
    monkeypatch.setattr(tokenizers, "TRUSTED", set())
    return build(DOCUMENTS, name="zh", home=tmp_path, tokenizer=words, dimensions=2, ranker="bm25")


def ids(found):
    return [hit.id for hit in found]


def test_words_are_those_it_finds(index):
    assert index.settings.tokenizer == "tests.support.own_words:words"
    assert ids(index.search("搜索")) == ["search"]
    assert ids(index.search("搜索引擎")) == ["engine"]
    (hit,) = index.search("写", highlight=True)
    marked = hit.highlight["snippet"]
    assert marked.html == "我<mark>写了</mark>搜索引擎。"
    assert ids(index.search('"写了 搜索引擎"')) == ["engine"]
    assert ids(index.search("+很 -引擎")) == ["search"]
    assert index.search("鱼").interpretation.unknown == ("鱼",)
    assert [one.text for one in index.suggest("搜")][:2] == ["搜索", "搜索引擎"]
    index.close()


def test_writes_and_refits_use_the_tokenizer_of_the_index(index):
    index.add([{"id": "new", "text": "快引擎"}])
    assert ids(index.search("引擎")) == ["new", "motor"]
    path = index.path.parent
    index.close()
    again = refit(path)
    assert again.settings.tokenizer == "tests.support.own_words:words"
    assert sorted(ids(again.search("引擎"))) == ["motor", "new"]
    again.close()
    verify_deep(path)


def test_long_texts_are_shown_where_the_words_are(index):
    index.add([{"id": "long", "text": "鱼 " * 300 + "写了 " + "鱼 " * 300}])
    shown = {hit.id: hit.snippet for hit in index.search("写")}
    assert "写了" in shown["long"]
    index.close()


def test_opening_needs_trust_in_the_tokenizer(index):
    path = index.path.parent
    index.close()
    tokenizers.TRUSTED.clear()
    with pytest.raises(SettingsError, match="if you trust it, open the index"):
        open_index(path)
    with pytest.raises(SettingsError, match="built with tests"):
        open_index(path, tokenizer="tests.support.own_words:words").close()
        open_index(path, tokenizer=bigrams)
    tokenizers.TRUSTED.clear()
    opened = open_index(path, tokenizer=words)
    assert ids(opened.search("搜索")) == ["search"]
    opened.close()


def test_one_that_an_index_does_not_have_is_refused(tmp_path):
    build(DOCUMENTS, name="plain", home=tmp_path, dimensions=2).close()
    with pytest.raises(SettingsError, match="built with no tokenizer, not with"):
        open_index(tmp_path / "plain", tokenizer=words)


@pytest.mark.slow
def test_commands_trust_what_the_environment_names(index, tmp_path):
    index.close()
    code = "from klsa_search.cli.search import main; main()"
    command = [sys.executable, "-c", code, "zh", "搜索", "--home", str(tmp_path), "--json"]
    plain = {name: value for name, value in os.environ.items() if name != "KLSA_TOKENIZERS"}
    trusting = {**plain, "KLSA_TOKENIZERS": "tests.support.own_words:words"}
    refused = run(*command, env=plain)
    assert refused.returncode == 2
    assert "KLSA_TOKENIZERS=tests.support.own_words:words" in refused.stderr
    found = run(*command, env=trusting)
    assert [hit["id"] for hit in json.loads(found.stdout)["hits"]] == ["search"], found.stderr


def test_a_document_that_the_tokenizer_refuses_is_not_written(tmp_path):
    index = build(DOCUMENTS, name="t", home=tmp_path, tokenizer=picky, dimensions=2)
    with pytest.raises(SettingsError, match="no shouting"):
        index.add([{"id": "calm", "text": "wing"}, {"id": "loud", "text": "wing!"}])
    index.add([{"id": "calm", "text": "wing"}])
    assert sorted(index.ids()) == ["calm", "engine", "motor", "search"]
    assert ids(open_index(tmp_path / "t").search("wing", ranker="bm25")) == ["calm"]


def test_marks_of_words_that_overlap_are_one(tmp_path):
    index = build(
        [{"id": "a", "text": "abcd"}], name="t", home=tmp_path, tokenizer=bigrams, dimensions=1
    )
    (hit,) = index.search("abc", highlight=True, ranker="bm25")
    assert hit.highlight["snippet"].html == "<mark>abc</mark>d"
    assert hit.highlight["snippet"].marks == ((0, 3),)


def test_unpickling_needs_trust_in_the_tokenizer(index, monkeypatch):
    pickled = [pickle.dumps(one) for one in (index, index.snapshot())]
    monkeypatch.setattr(tokenizers, "TRUSTED", set())
    for each in pickled:
        monkeypatch.setattr(tokenizers, "TRUSTED", set())
        assert ids(pickle.loads(each).search("搜索", ranker="bm25")) == ["search"]


def test_a_refit_accepts_the_tokenizer(index, monkeypatch):
    folder = index.path.parent
    index.close()
    monkeypatch.setattr(tokenizers, "TRUSTED", set())
    assert ids(refit(folder, tokenizer=words).search("搜索", ranker="bm25")) == ["search"]
