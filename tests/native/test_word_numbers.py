"""Words of ASCII texts: those of the analyser, each form asked for once."""

import string

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klsa_search._native import WordNumbers
from klsa_search.analysis.segmentation import words

texts = st.lists(
    st.text(st.sampled_from("aZ09sStTdDlLrReEvV''' _-.\n") | st.sampled_from(string.printable)),
    max_size=4,
)


def numbered(forms, texts):
    """The words of the texts, and how many each has; forms are numbered as they are asked for."""
    asked = []

    def of_word(word):
        asked.append(word)
        return len(asked) - 1

    numbers, lengths = (
        np.frombuffer(each, np.int32) for each in forms.number(texts, of_word, list)
    )
    return [asked[number] for number in numbers], lengths.tolist(), asked


@given(texts)
def test_words_are_those_of_the_analyser(texts):
    found, lengths, asked = numbered(WordNumbers(100, names=False), texts)
    expected = [words(text) for text in texts]
    assert found == [word for text in expected for word in text]
    assert lengths == list(map(len, expected))
    assert len(asked) == len(set(asked))


def test_forms_are_forgotten_when_the_table_is_full():
    _, _, asked = numbered(WordNumbers(2, names=False), ["a b c a"])
    assert asked == ["a", "b", "c", "a"]


def test_many_forms_are_kept():
    text = " ".join(map(str, range(5000)))
    found, _, asked = numbered(WordNumbers(5000, names=False), [text, text])
    assert found == 2 * asked


@pytest.mark.parametrize("text", ["naïve", "漢字", "\ud800", "in C++", "F# code", "a .NET app"])
def test_other_texts_are_passed_to_the_caller(text):
    numbers, lengths = WordNumbers(9, names=True).number([text], lambda _: 0, lambda _: [7, 8])
    assert np.frombuffer(numbers, np.int32).tolist() == [7, 8]
    assert np.frombuffer(lengths, np.int32).tolist() == [2]


def test_errors_of_the_functions_are_raised():
    def fail(_):
        raise KeyError("no number")

    with pytest.raises(KeyError, match="no number"):
        WordNumbers(9, names=False).number(["word"], fail, fail)
    with pytest.raises(TypeError, match="no str"):
        WordNumbers(9, names=False).number([b"word"], fail, fail)
