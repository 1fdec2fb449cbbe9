"""The queries from which the examples of the README were chosen."""

from collections import Counter

import pytest

from klsa_search import build
from klsa_search.collection import open_collection
from studies.front_page.__main__ import (
    Answered,
    Asked,
    answer,
    read_questions,
    reciprocal,
    show,
    within,
)

pytestmark = pytest.mark.slow


def test_the_questions_have_answers_here():
    questions = read_questions()
    assert Counter(asked.list for asked in questions) == {"newcomer": 60, "programmer": 60}
    assert len({asked.text for asked in questions}) == 120
    held = {document.id for document in open_collection("python-docs").documents()}
    unanswered = [asked.text for asked in questions if not held.intersection(asked.answers)]
    # Python 3.13 has no docstring for what a file is called without its suffix.
    assert unanswered in ([], ["cut the extension off a filename"])


def test_the_best_answer_counts(tmp_path):
    texts = {"1": "remove remove remove a tree", "2": "a leaf", "3": "remove a leaf", "4": "none"}
    index = build([{"id": n, "text": text} for n, text in texts.items()], name="a", home=tmp_path)
    found = answer(index, Asked("a list", "remove", ("4", "3")))
    assert found.ranks["bm25"] == 2
    assert found.id == "3"
    assert answer(index, Asked("a list", "remove", ("nowhere",))).ranks["bm25"] is None


def test_counts_equal_an_example_by_hand(capsys):
    answered = [
        Answered("a list", "better", "a", {"bm25": None, "klsa": 2}),
        Answered("a list", "worse", "b", {"bm25": 1, "klsa": 4}),
        Answered("a list", "alike", "c", {"bm25": None, "klsa": None}),
    ]
    assert [one.better() for one in answered] == [1, -1, 0]
    assert [within(answered, "klsa", depth) for depth in (1, 3, 10)] == [0, 1, 2]
    assert reciprocal(answered, "klsa") == pytest.approx((1 / 2 + 1 / 4) / 3)
    show(answered)
    assert "higher for 1, BM25 for 1, both alike for 1." in capsys.readouterr().out
