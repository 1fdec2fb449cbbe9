"""User-defined tokenizers: their tokens are the words, and they run only if trusted."""

import pickle
from functools import partial

import pytest

from klsa_search.analysis import tokenizers
from klsa_search.analysis.analyzer import Analyzer
from klsa_search.analysis.searched_text import AnalysedTexts
from klsa_search.analysis.tokenizers import trust
from klsa_search.analysis.workers import AnalysisWorkers, TermNumbering
from klsa_search.core.build_settings import AnalysisSettings
from klsa_search.errors import SettingsError
from tests.support import own_words

TEXT = "我写了搜索引擎"


@pytest.fixture(autouse=True)
def nothing_trusted(monkeypatch):
    monkeypatch.setattr(tokenizers, "TRUSTED", set())


def analyzer(function=own_words.words, **settings):
    return Analyzer(AnalysisSettings(tokenizer=trust(function), **settings))


def test_a_worked_example():
    found = analyzer()
    assert found.terms(TEXT) == ["我", "写", "搜索引擎"]
    assert [TEXT[token.start : token.end] for token in found.tokens(TEXT)] == [
        "我",
        "写了",
        "搜索引擎",
    ]
    assert list(found.written("搜到")) == [("搜", "搜")]
    assert analyzer(own_words.bigrams).terms("abc") == ["ab", "bc"]


def test_its_words_are_cased_stemmed_and_left_out_as_any():
    found = analyzer(extra_stop_words=("我",))
    assert found.terms("我 engines") == ["engin"]
    assert [token.position for token in found.tokens("我 engines")] == [1]
    assert analyzer(language="none").terms("l'eau c++") == ["l'eau", "c++"]


def test_numbers_stand_where_words_do_here_and_in_other_processes():
    found = analyzer()
    here = TermNumbering(found).numbered(AnalysedTexts([TEXT, "搜索"]))
    assert (here.terms, here.numbers.tolist()) == (["我", "写", "搜索引擎", "搜索"], [0, 1, 2, 3])
    with AnalysisWorkers(found, 1) as workers:
        there = workers.submit(AnalysedTexts([TEXT, "搜索"])).result()
    assert (there.terms, there.numbers) == (here.terms, here.numbers)
    assert pickle.loads(pickle.dumps(found)) == found != Analyzer()


@pytest.mark.parametrize(
    "function",
    [
        lambda text: [],
        partial(own_words.words),
        own_words.words.__call__,
        type("Local", (), {"__call__": lambda _, text: []})(),
    ],
)
def test_a_function_that_cannot_be_imported_is_refused(function):
    with pytest.raises(SettingsError, match="cannot be imported"):
        trust(function)


def test_a_function_of_a_script_is_refused():
    def script(text):
        return []

    script.__module__, script.__qualname__ = "__main__", "script"
    with pytest.raises(SettingsError, match="importable module"):
        trust(script)


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("no_such_module:words", "No module named 'no_such_module'"),
        ("tests.support.own_words:no", "no attribute 'no'"),
        ("tests.support.own_words:CONSTANT", "not a function"),
    ],
)
def test_objects_that_are_not_tokenizers_are_named(name, fault):
    trust(name)
    with pytest.raises(SettingsError, match=fault) as refused:
        Analyzer(AnalysisSettings(tokenizer=name))
    assert refused.value.field == "tokenizer"


@pytest.mark.parametrize("name", ["words", "a:", ":b", "a:b c", "a;b:c", ""])
def test_invalid_names_are_refused(name):
    with pytest.raises(SettingsError, match="tokenizer"):
        AnalysisSettings.checked({"tokenizer": name})


@pytest.mark.parametrize("function", [own_words.strings, own_words.backwards, own_words.half])
def test_words_that_are_not_in_the_text_are_refused(function):
    with pytest.raises(SettingsError, match=r"\(word, start, end\)"):
        analyzer(function).terms("some text")


def test_nothing_is_imported_that_is_not_trusted(tmp_path, monkeypatch):
    (tmp_path / "hostile.py").write_text("raise SystemExit('run')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(SettingsError, match="KLSA_TOKENIZERS=hostile:words"):
        Analyzer(AnalysisSettings(tokenizer="hostile:words"))


def test_a_term_has_no_line_ends_and_white_space_is_none():
    found = analyzer(own_words.lines, language="none")
    assert found.terms("New\r\n York, \n,dough\u2028") == ["new york", "dough"]


def test_errors_of_a_tokenizer_name_it():
    with pytest.raises(
        SettingsError, match=r"own_words:picky` failed \(LookupError: no shouting\)"
    ):
        analyzer(own_words.picky).terms("wing!")


def test_tokenizers_in_workers_may_print_and_their_errors_are_reported():
    with AnalysisWorkers(analyzer(own_words.picky), 1) as workers:
        assert workers.submit(AnalysedTexts(["wing"])).result().terms == ["wing"]
        with pytest.raises(SettingsError, match="no shouting"):
            workers.submit(AnalysedTexts(["wing!"])).result()
        assert workers.submit(AnalysedTexts(["dough"])).result().numbers.tolist() == [1]


def test_errors_of_the_module_are_reported(tmp_path, monkeypatch):
    (tmp_path / "broken_words.py").write_text("def words(:")
    monkeypatch.syspath_prepend(tmp_path)
    trust("broken_words:words")
    with pytest.raises(SettingsError, match=r"cannot be imported \(SyntaxError"):
        Analyzer(AnalysisSettings(tokenizer="broken_words:words"))


@pytest.mark.parametrize("name", ["own_words.words", "a:b,c:d", "", ":words"])
def test_only_a_name_can_be_trusted(name):
    with pytest.raises(SettingsError, match="tokenizer"):
        trust(name)
