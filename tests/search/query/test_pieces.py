"""Pieces of queries between blanks: analysis and syntax never look across a blank."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from klsa_search import build
from klsa_search.analysis import Analyzer
from klsa_search.collection.model import Document
from klsa_search.core.config import AnalysisSettings
from klsa_search.core.parameters import ParsingSettings
from klsa_search.search.engine.evidence import Evidence
from klsa_search.search.engine.snapshot import open_snapshot
from klsa_search.search.query import parser as parser_module
from klsa_search.search.query import pieces as pieces_module
from klsa_search.search.query.parser import QueryParser
from klsa_search.search.query.pieces import PieceCache
from klsa_search.search.query.synonyms import Synonyms
from klsa_search.search.query.syntax import is_plain, may_be_boolean

WORDS = [
    "wing", "Wings", "don't", "o'neil", "wing's", "x_1", "re-entry", "I", "the", "naïve", "飛行",
    "飛", "C++", "C#", ".NET", "ASP.NET", "AND", "(NOT", "-wing", '"wing', "wi*", "10", "000", "mm",
    "10mm", "utf8", "utf", "8", "air", "foil", "airfoil", "e\u0301", "\u0301", "🇫🇮", "ﬁne",
]  # fmt: skip
LANGUAGES = [
    AnalysisSettings(),
    AnalysisSettings(language="turkish"),
    AnalysisSettings(stemmer="none", stop_words="none"),
    AnalysisSettings(symbols=False),
]
pieces = st.sampled_from([*WORDS, " ", "  ", "'", "’", "_", "-", "\t", "\x1c", "\x00", "A" * 300])
texts = st.lists(pieces, max_size=12).map(" ".join) | st.lists(pieces, max_size=8).map("".join)
any_texts = texts | st.text(max_size=20)


@pytest.mark.parametrize("language", LANGUAGES)
@given(text=any_texts)
def test_words_of_a_text_are_those_of_its_pieces(language, text):
    analyzer = Analyzer(language)
    parts = text.split(" ")
    words = [word for part in parts for word in analyzer.map_words(part, str, str)]
    assert words == list(analyzer.map_words(text, str, str))
    assert [term for part in parts for term in analyzer.terms(part)] == analyzer.terms(text)


@given(text=any_texts)
def test_operators_of_a_text_are_those_of_its_pieces(text):
    parts = text.split(" ")
    assert is_plain(text) == all(map(is_plain, parts))
    assert may_be_boolean(text) == any(map(may_be_boolean, parts))


DOCUMENTS = [
    {"id": "1", "text": "an airfoil of 10 mm, an air foil of 10mm; utf8 is utf-8"},
    {"id": "2", "text": "the air foil, a wing and 10000 wings of 10 000 mm"},
    {"id": "3", "text": "飛行機 on the wing, fine re-entry, reentry and C++"},
]
"""Documents that write some words in two ways."""


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory):
    index = build(DOCUMENTS, name="two", home=tmp_path_factory.mktemp("home"))
    yield open_snapshot(index.path, index.settings)
    index.close()


def documents_at(doc_ids):
    return [Document(**DOCUMENTS[doc_id]) for doc_id in doc_ids]


@pytest.fixture(scope="module", params=[2**9, 2**15])
def parser(snapshot, request):
    """A parser that answers many queries, with room for so many forms, more than a query has."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(parser_module, "_CAPACITY", request.param)
        yield QueryParser(snapshot, Analyzer(), {}, documents_at, Synonyms({}, Analyzer()))


@given(
    text=texts,
    alone=st.booleans(),
    spelling=st.sampled_from(["off", "suggest", "auto"]),
    operators=st.sampled_from([None, False, True]),
)
@example(text="airfoil re-entry wing 10mm", alone=False, spelling="auto", operators=None)
def test_forms_met_before_change_no_query(parser, text, alone, spelling, operators):
    """Evidence of partitions may differ from call to call, so nothing of it is cached."""
    settings = ParsingSettings(spelling=spelling, operators=operators)
    for _ in range(2):
        by_forms = parser.parse(text, settings, typed=alone)
        parsed = parser.parse(text, settings, typed=alone, evidence=Evidence())
        assert [n for n in by_forms.terms if n >= 0] == [n for n in parsed.terms if n >= 0]
        said = parser.interpretation(text, by_forms, settings)
        assert said == parser.interpretation(text, parsed, settings)
        if by_forms.builder is None:  # as it is read for other settings
            parsed = parser.parse(text, settings.model_copy(update={"match": "all"}))
            assert said == parser.interpretation(text, parsed, settings)


def test_forms_are_cached_if_they_depend_on_evidence_of_all_calls(snapshot):
    parser = QueryParser(snapshot, Analyzer(), {}, documents_at, Synonyms({}, Analyzer()))
    settings = ParsingSettings()
    assert parser.parse("airfoil wing", settings, evidence=Evidence()).builder is not None
    assert parser.parse("airfoil wing", settings).builder is None


def test_cache_is_bounded_and_has_no_long_pieces(snapshot, monkeypatch):
    monkeypatch.setattr(pieces_module, "_CACHE_SIZE", 10)
    cache = PieceCache(snapshot, Analyzer(), documents_at, {}, ())
    for number in range(50):
        cache.of(f"word{number} {'x' * 65}")
        assert len(cache) <= 10
        assert "x" * 65 not in cache
