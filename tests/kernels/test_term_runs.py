"""Terms in sorted runs are those of a list that is sorted at once."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from klsa_search.kernels.vocabulary import Vocabulary, letter_set

WORDS = st.lists(st.text("abé水", min_size=1, max_size=4), max_size=30, unique=True)


@given(WORDS, st.lists(st.integers(1, 9), max_size=8), st.text("abé水", min_size=1, max_size=2))
def test_extended_vocabularies_have_the_terms_in_order(words, sizes, text):
    first = Vocabulary(sorted(words[: len(words) // 2]))
    vocabulary, later = first, words[len(words) // 2 :]
    for size in sizes:
        vocabulary, later = vocabulary.extended(later[:size]), later[size:]
    runs, terms = vocabulary.runs, vocabulary.terms
    beginning = sorted(term for term in terms if term.startswith(text))
    assert runs.names(text) == beginning
    assert [terms[number] for number in runs.numbers(text).tolist()] == beginning
    assert {*runs.ending_with(text)} == {term for term in terms if term.endswith(text)}
    assert [vocabulary.numbers[term] for term in terms] == [*range(len(terms))]
    assert runs.runs[0] is first.runs.runs[0]


def test_runs_remain_few():
    vocabulary = Vocabulary([f"a{number:04}" for number in range(1000)])
    for number in range(500):
        vocabulary = vocabulary.extended([f"b{number}"])
    assert len(vocabulary.runs.runs) < 12


def test_letters_and_lengths_are_in_order_of_the_terms():
    (run,) = Vocabulary(["drag", "wing"]).runs.runs
    assert run.order.lengths.tolist() == [4, 4]
    assert run.order.letters.tolist() == [letter_set("drag"), letter_set("wing")]
    assert run.order.letters.dtype == np.uint32


def test_a_vocabulary_without_new_terms_stays_the_same():
    vocabulary = Vocabulary(["wing"])
    assert vocabulary.extended([]) is vocabulary
