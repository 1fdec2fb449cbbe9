"""Interpretations of queries that are made when they are read."""

import copy
import pickle

import pytest

from klsa_search import QueryInterpretation, build
from klsa_search.core.lazy import when_read


@pytest.mark.parametrize(
    "read",
    [repr, copy.copy, lambda said: said.words, lambda said: pickle.loads(pickle.dumps(said))],
)
def test_an_interpretation_is_made_when_it_is_first_read(read):
    made = []

    def make():
        made.append(QueryInterpretation(words=("wing",), did_you_mean="wings"))
        return made[-1]

    said = when_read(QueryInterpretation, make)
    assert not made
    read(said)
    assert said == made[0]
    assert len(made) == 1


def test_an_interpretation_that_was_not_read_has_its_fields_only():
    with pytest.raises(AttributeError, match="no attribute 'word'"):
        assert when_read(QueryInterpretation, QueryInterpretation).word


def test_a_word_that_may_be_meant_in_a_field_is_reported(tmp_path):
    documents = [{"id": "a", "title": "money", "text": "banks", "category": "book", "year": 3}]
    with build(documents, name="a", home=tmp_path) as index:
        for query in ("titel:money", "TITLE:money", "category:book", "bank catgory:book"):
            relaxed = index.search(query).interpretation.relaxed
            assert relaxed == {query.split()[-1]: "not_an_operator"}
        for query in (
            *("title:money", "text:banks", "http://a.b", "12:30", "std::sort", "note: money"),
            *("file:name", "re:money", "time:money", "data:money", "c:money", r"titel\:money"),
            "a text of more words than any that is typed with titel:money in a box",
        ):
            assert not index.search(query).interpretation.relaxed
