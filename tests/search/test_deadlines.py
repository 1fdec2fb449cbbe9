"""Searches stop between two steps when their deadline has passed."""

import pytest

from klsa_search.core.deadlines import deadline_check


class Late(Exception):
    """It is time."""


class After:
    """Raises at a step, counted from 1."""

    def __init__(self, last=None):
        self.steps, self.last = 0, last

    def __call__(self):
        self.steps += 1
        if self.steps == self.last:
            raise Late


STEPS = [
    ({}, 2),  # ranking, presenting
    ({"exact": True}, 5),  # and each part that is added up
    ({"boosts": "title^2"}, 4),  # and each term
    ({"highlight": True}, 2 + 4),  # and each hit
    ({"explain": True}, 2 + 4),
    ({"ranker": "bm25", "min_score": 0.0, "boosts": "title^2"}, 3),
]


@pytest.mark.parametrize(("asked", "least"), STEPS)
def test_a_search_stops_at_any_step_and_leaves_nothing_behind(index, asked, least):
    before = index.search("supersonic bread dough", **asked)
    assert len(before) >= 4
    count = After()
    with deadline_check(count):
        assert index.search("supersonic bread dough", **asked) == before
    assert count.steps >= least
    for step in range(1, count.steps + 1):
        with pytest.raises(Late), deadline_check(After(step)):
            index.search("supersonic bread dough", **asked)
    assert index.search("supersonic bread dough", **asked) == before
