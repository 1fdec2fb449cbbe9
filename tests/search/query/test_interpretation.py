"""Interpretations of queries that are made when they are read."""

import copy
import pickle

import pytest

from klsa_search import QueryInterpretation


@pytest.mark.parametrize(
    "read",
    [repr, copy.copy, lambda said: said.words, lambda said: pickle.loads(pickle.dumps(said))],
)
def test_an_interpretation_is_made_when_it_is_first_read(read):
    made = []

    def make():
        made.append(QueryInterpretation(words=("wing",), did_you_mean="wings"))
        return made[-1]

    said = QueryInterpretation.when_read(make)
    assert not made
    read(said)
    assert said == made[0]
    assert len(made) == 1


def test_an_interpretation_that_was_not_read_has_its_fields_only():
    with pytest.raises(AttributeError, match="no attribute 'word'"):
        assert QueryInterpretation.when_read(QueryInterpretation).word
