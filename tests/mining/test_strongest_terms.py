import pytest

from klsa_search import build
from klsa_search.errors import DocumentNotFound, QueryError
from klsa_search.mining import strongest_terms

TEXTS = {
    "tyre": "Bald tyres slip on wet roads; the Tyre of a car, tyres.",
    "wet": "Wet roads and wet cars.",
    "bread": "Bread and yeast.",
    "none": "of the and",
}


@pytest.fixture(scope="module")
def notes(index_of):
    source = [{"id": name, "title": "Notes", "text": text} for name, text in TEXTS.items()]
    return index_of(source)


def test_weights_are_the_addends_of_bm25(notes):
    for id_ in ("tyre", "wet", "bread"):
        found = strongest_terms(notes, id_, 100)
        query = " ".join(one.word for one in found)
        explained = notes.explain(query, id_, ranker="bm25").lexical.terms
        assert {one.term: one.weight for one in found} == pytest.approx(
            {one.term: one.bm25 for one in explained}, rel=1e-3
        )


def test_words_are_written_as_the_document_does_strongest_first(notes):
    found = strongest_terms(notes, "tyre", 3)
    assert (found[0].word, found[0].count, found[0].documents) == ("tyres", 3, 1)
    weights = [one.weight for one in found]
    assert weights == sorted(weights, reverse=True)
    assert strongest_terms(notes, "tyre", 1) == found[:1]


def test_later_documents_have_strongest_terms(tmp_path):
    source = [{"id": name, "text": text} for name, text in TEXTS.items()]
    index = build(source, name="later", home=tmp_path)
    index.add([{"id": "new", "text": "Brakes on wet roads, squealing brakes."}])
    found = strongest_terms(index, "new")
    index.close()
    assert {one.word for one in found} == {"brakes", "squealing", "wet", "roads"}


def test_a_document_without_terms_and_none_at_all(notes):
    assert strongest_terms(notes, "none") == ()
    with pytest.raises(DocumentNotFound):
        strongest_terms(notes, "nope")
    with pytest.raises(QueryError, match="k = 0"):
        strongest_terms(notes, "tyre", 0)
