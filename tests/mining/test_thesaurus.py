from collections import Counter

import numpy as np
import pytest

from klsa_search import build
from klsa_search.errors import ArgumentError, QueryError, TermNotFound
from klsa_search.mining import related
from klsa_search.mining.related_terms import words_of
from tests.support.worlds import topic_documents


def test_words_of_a_topic_are_near_each_other(index):
    found = related(index, "a1", 6)
    assert all(one.word[0] == "a" for one in found)
    assert "a1" not in {one.word for one in found}
    assert all(0 < one.similarity <= 1 and one.documents >= 2 for one in found)
    similarities = [one.similarity for one in found]
    assert similarities == sorted(similarities, reverse=True)


def test_several_words_are_looked_up_together(index):
    assert {one.word[0] for one in related(index, "b1 b4 unheard-of", 5)} == {"b"}


def test_indexes_of_all_sizes_agree(indexes):
    answers = [[one.word for one in related(indexes[name], "c3", 5)] for name in indexes]
    assert answers[0] == answers[1]


def test_words_are_those_of_the_documents(tmp_path):
    texts = [
        "Engines overheating: the coolants boil. NATO engines.",
        "Overheating engines need coolants, says NATO.",
        "Coolants of overheating engines, NATO.",
        "Bread and yeast.",
        "Yeast, dough and bread.",
    ]
    source = [{"id": str(n), "text": text} for n, text in enumerate(texts)]
    index = build(source, name="words", home=tmp_path, latent_dimensions=2)
    found = {one.term: one.word for one in related(index, "engine", 20)}
    assert found["overh"] == "overheating"
    assert found["coolant"] == "coolants"
    assert found["nato"] == "NATO"
    for form in ("engines", "ENGINE", "the engine's"):
        assert related(index, form, 20) == related(index, "engine", 20)
    index.close()


def test_bad_input_is_named(index):
    with pytest.raises(TermNotFound, match="no document contains it") as refused:
        related(index, "zebra")
    assert refused.value.field == "term"
    for text in ("", "the of", "?!"):
        with pytest.raises(TermNotFound, match="nothing is left"):
            related(index, text)
    with pytest.raises(ArgumentError, match="give a text"):
        related(index, 7)
    with pytest.raises(QueryError, match="k = 0"):
        related(index, "a1", 0)


def test_similarity_is_the_damped_cosine_of_places(tmp_path):
    """By its definition, over all terms; those of one document and the asked are left out."""
    texts = [f"{text} once{number}" for number, text in enumerate(topic_documents(4, 12))]
    source = [{"id": str(n), "text": text} for n, text in enumerate(texts)]
    index = build(source, name="damped", home=tmp_path, latent_dimensions=4)
    snapshot = index.arrays
    frequencies = Counter(term for text in texts for term in set(index.analyzer.terms(text)))
    places = snapshot.latent.terms * np.sqrt(snapshot.eigenvalues[:4])
    terms = snapshot.vocabulary.terms
    asked = [snapshot.vocabulary.numbers[term] for term in ("a1", "b2")]
    place = places[asked].sum(axis=0)
    cosines = places @ place / np.linalg.norm(places, axis=1) / np.linalg.norm(place)
    expected = {
        term: cosine * frequencies[term] / (frequencies[term] + 3)
        for number, (term, cosine) in enumerate(zip(terms, cosines, strict=True))
        if cosine > 0 and frequencies[term] > 1 and number not in asked
    }
    found = {one.term: one.similarity for one in related(index, "a1 b2", len(terms))}
    assert found == pytest.approx(expected, rel=1e-4)
    index.close()


def test_the_commonest_form_is_shown(tmp_path):
    texts = ["a car of steel", "cars and CARS of steel", "the car, cars and cars", "yeast", "dough"]
    source = [{"id": str(n), "text": text} for n, text in enumerate(texts)]
    index = build(source, name="forms", home=tmp_path, latent_dimensions=2)
    assert words_of(index, [index.arrays.vocabulary.numbers["car"]]) == ["cars"]
    index.close()
