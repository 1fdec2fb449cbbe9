"""Caches of looked-up words are bounded and safe with threads."""

import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klsa_search.analysis.analyzer import Analyzer
from klsa_search.core.build_settings import AnalysisSettings
from klsa_search.search.engine import evidence
from klsa_search.search.engine.evidence import DerivedValues, Evidence
from klsa_search.search.query.term_dictionary import TermDictionary, surface_forms_of


def dictionary_of(index, documents_at):
    derived = DerivedValues(index.arrays.answers)
    return TermDictionary(index.arrays, index.analyzer, documents_at, derived)


def test_written_forms_survive_that_another_thread_forgets_them(few_words, monkeypatch):
    monkeypatch.setattr(evidence, "CAPACITY", 1)
    numbers = few_words.arrays.vocabulary.numbers
    wing, flow = numbers["wing"], numbers["flow"]
    interruptions = []

    def documents_at(positions):
        if interruptions:
            interruptions.pop()()
        return few_words.documents_at(positions)

    lexicon = dictionary_of(few_words, documents_at)
    expected = lexicon.forms(wing, Evidence())
    lexicon.forms(flow, Evidence())  # which is all that is remembered now
    interruptions.append(lambda: lexicon.forms(flow, Evidence()))
    assert lexicon.forms(wing, Evidence()) == expected


def test_threads_look_up_forms_while_others_forget_them(few_words, monkeypatch):
    monkeypatch.setattr(evidence, "CAPACITY", 1)
    numbers = few_words.arrays.vocabulary.numbers
    wing, drag, flow = (numbers[term] for term in ("wing", "drag", "flow"))
    asked = [wing, drag, flow]
    lexicon = dictionary_of(few_words, few_words.documents_at)
    expected = [lexicon.forms(each, Evidence()) for each in asked]

    def again(number):
        each = number % len(asked)
        return all(lexicon.forms(asked[each], Evidence()) == expected[each] for _ in range(30))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(6) as pool:
            assert all(pool.map(again, range(6)))
    finally:
        sys.setswitchinterval(interval)


def check_writings(analyzer, text):
    """Compare the writings of every other term with those of `Analyzer.written`."""
    written = [(term, word) for term, word in analyzer.written(text) if term]
    terms = {*sorted({term for term, _ in written})[::2]}
    found = surface_forms_of(analyzer, text, terms)
    assert found.keys() == terms
    expected = Counter(pair for pair in written if pair[0] in terms)
    assert {(t, word): n for t, forms in found.items() for word, n in forms.items()} == expected


@pytest.mark.parametrize("language", ["english", "de,en"])
@pytest.mark.parametrize(
    "text",
    [
        "The wing's edge, WING and Wings — don’t “quote” me… 50 % of ½ the №1 ﬁx.",
        "C++ and C# on .NET, in c",
        "Der Flügel überschreitet die Straße; cafe\u0301",
        "飛行機の翼は、揚力を生み出す。（全角）Ｗｉｎｇ",
    ],
)
def test_writings_are_the_words_of_a_text(language, text):
    check_writings(Analyzer(AnalysisSettings(language=language)), text)


@given(st.text("aAbé wW's+#.Nn½ﬁ…™漢字น้ำ한국\u0301\u200d", max_size=30))
def test_writings_are_the_words_of_any_text(text):
    check_writings(Analyzer(), text)
