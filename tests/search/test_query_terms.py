"""Query text to term numbers, against analyser and vocabulary."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klsa_search.analysis import Analyzer
from klsa_search.core.build_settings import AnalysisSettings
from klsa_search.kernels.vocabulary import Vocabulary
from klsa_search.search.query import terms as query
from klsa_search.search.query.syntax import is_plain
from klsa_search.search.query.terms import NO_TERM, UNKNOWN, QueryTerms, TermNumbers

WORDS = [
    "wing",
    "Wings",
    "don't",
    "o'neil",
    "wing's",
    "x_1",
    "re-entry",
    "I",
    "the",
    "naïve",
    "飛行",
    "C++",
    "C#",
    ".NET",
]
LANGUAGES = [
    AnalysisSettings(),
    AnalysisSettings(language="turkish"),
    AnalysisSettings(stemmer="none", stop_words="none"),
    AnalysisSettings(symbols=False),
]
pieces = st.sampled_from([*WORDS, " ", "'", "’", "_", "-", "\t", "\x1c", "\x00", "7", "A" * 300])
texts = st.lists(pieces, max_size=8).map("".join) | st.text(max_size=20)
ascii_texts = st.text(st.characters(max_codepoint=127), max_size=30)


@pytest.mark.parametrize("language", LANGUAGES)
@given(asked=st.lists(texts | ascii_texts, max_size=4))
def test_numbers_are_those_of_the_analysers_terms(language, asked):
    analyzer = Analyzer(language)
    known = {term for text in [*asked, *WORDS] for term in analyzer.terms(text)}
    vocabulary = Vocabulary(sorted(known)[::2])  # every other term is unknown
    numbers = TermNumbers(analyzer, vocabulary)
    for text in asked * 2:  # the second time from memory
        expected = [vocabulary.numbers.get(term, UNKNOWN) for term in analyzer.terms(text)]
        found = numbers.of(text)
        assert [n for n in found if n >= 0] == [n for n in expected if n >= 0]


@pytest.mark.parametrize("language", LANGUAGES)
@given(text=texts | ascii_texts)
def test_a_text_without_signs_is_read_the_short_way(language, text):
    numbers = TermNumbers(Analyzer(language), Vocabulary(["wing"]))
    found = numbers.of_bare(text)
    assert (found is None) == (not text.isascii() or not set(text).isdisjoint("\"*:\\+-'.#"))
    if found is not None:
        assert found == numbers.of(text)
        assert is_plain(text)


def test_what_is_remembered_is_bounded(monkeypatch):
    monkeypatch.setattr(query, "_CACHE_SIZE", 10)
    numbers = TermNumbers(Analyzer(), Vocabulary(["word3", "word7"]))
    for number in range(100):
        expected = {3: 0, 7: 1}.get(number, UNKNOWN)
        assert numbers.of(f"word{number}") == [expected]
        assert len(numbers) <= 10


def test_words_longer_than_words_are_found_but_not_remembered():
    """A query may be one word of 10,000 letters, and 65,536 of those would be held."""
    numbers = TermNumbers(Analyzer(), Vocabulary(["x" * 64, "x" * 65]))
    for long in ("x" * 65, "y" * 10_000):
        assert numbers.of(f"{long} {'x' * 64}") == [1 if long[0] == "x" else NO_TERM, 0]
    assert [*numbers] == [b"x" * 64]


def test_terms_are_counted_and_the_unknown_left_out():
    terms = QueryTerms.of([5, UNKNOWN, 2, 5])
    assert (terms.numbers.tolist(), terms.counts.tolist()) == ([2, 5], [1.0, 2.0])
