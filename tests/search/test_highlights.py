"""Highlights mark the words of the query, and only those, in safe HTML."""

import re
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klsa_search._native import marked_html
from klsa_search.analysis import Analyzer
from klsa_search.errors import QueryError
from klsa_search.search.pages.results import highlighted

ANALYZER = Analyzer()
WORDS = ["wing", "Wings", "<b>", "&amp;", "wing's", "straße", "Ⅳ", "雪", "'", '"\ud800', "lift\x00"]


@given(st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join) | st.text(max_size=60))
def test_html_is_the_text_with_marks(text):
    found = highlighted(text, {"wing", "lift", "straße"}, ANALYZER)
    assert found.text == text
    bare = re.sub(r"</?mark>", "", found.html)
    assert unescape(bare) == text or "&" in text
    assert not re.search(r"[<>\"']", bare)
    marked = re.findall(r"<mark>(.*?)</mark>", found.html, re.DOTALL)
    assert [unescape(one) for one in marked] == [text[start:end] for start, end in found.marks]
    assert all(ANALYZER.term(text[start:end]) for start, end in found.marks)
    assert list(found.marks) == sorted(found.marks)


def test_marks_of_a_tokenizer_are_merged_if_they_overlap(monkeypatch):
    spans = [("flap", 0, 4), ("flapping", 0, 8), ("wing", 8, 12)]
    monkeypatch.setattr(Analyzer, "occurrences", lambda self, text, terms: spans)
    found = highlighted("flappingwing", {}, ANALYZER)
    assert found.html == "<mark>flapping</mark><mark>wing</mark>"


def test_marks_outside_of_the_text_are_refused():
    for marks in ([(0, 4)], [(2, 1)], [(1, 2), (0, 1)], [(-1, 1)], [(0, -1)]):
        for text in ("abc", "äbc"):
            with pytest.raises(ValueError, match="marks"):
                marked_html(text, marks)


def test_marks_are_whole_words_of_any_form():
    found = highlighted("Flapping wings, a winged <i>flap</i>.", {"flap", "wing"}, ANALYZER)
    marked = [found.text[start:end] for start, end in found.marks]
    assert marked == ["Flapping", "wings", "winged", "flap"]
    assert found.html.endswith("<mark>winged</mark> &lt;i&gt;<mark>flap</mark>&lt;/i&gt;.")


@pytest.fixture(scope="module")
def index(index_of):
    """One long document: a common word often in its first part, a rare one in its last."""
    filler = "nothing of note happens in this part of the report at all. " * 8
    text = f"Engine and engine parts: the engine. {filler} The carburettor. {filler}"
    documents = [{"id": "long", "title": "A <engine>", "text": text}]
    documents += [{"id": f"e{at}", "text": "An engine and parts of it."} for at in range(9)]
    return index_of(documents)


def test_the_passage_is_the_one_that_weighs_most(index):
    query = "engine parts carburettor"
    (plain,) = [hit for hit in index.search(query) if hit.id == "long"]
    (found,) = [hit for hit in index.search(query, highlight=True) if hit.id == "long"]
    assert plain.highlight is None
    assert "Engine" in plain.snippet
    assert "carburettor" in found.snippet
    assert found.highlight["snippet"].text == found.snippet
    assert "<mark>carburettor</mark>" in found.highlight["snippet"].html
    assert found.highlight["title"].html == "A &lt;<mark>engine</mark>&gt;"
    assert found.score == plain.score


@pytest.mark.parametrize("length", [1, 30, 500])
def test_snippets_have_the_requested_length(index, length):
    hits = index.search("engine carburettor", snippet_length=length, highlight=True)
    assert all(len(hit.snippet.strip("…")) <= length for hit in hits)


@pytest.mark.parametrize("length", [0, -1, 10_001, True, 2.5, "9"])
def test_other_lengths_are_refused(index, length):
    with pytest.raises(QueryError, match="snippet_length"):
        index.search("engine", snippet_length=length)


def test_words_are_marked_however_their_accents_were_typed(index_of):
    text = "La mémoire et les Élèves"
    index = index_of([{"id": "a", "title": "Université", "text": text}], language="french")
    for query in ("memoire eleve", "mémoires ELÈVE"):
        (hit,) = index.search(query, highlight=True)
        shown = hit.highlight["snippet"].html
        assert shown == "La <mark>mémoire</mark> et les <mark>Élèves</mark>"
    assert index.search("univresite").interpretation.corrections == {"univresite": "Université"}
    assert [one.text for one in index.suggest("universite")][:1] == ["Université"]
