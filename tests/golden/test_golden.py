"""Scores, orders, totals and texts of answers change on purpose only."""

import pytest

from tools.golden.__main__ import differences
from tools.golden.answers import difference
from tools.golden.world import WORLDS

PURPOSE = "if on purpose: python -m tools.golden write, in its own commit"

OPTIONS = (
    *("explain", "facets", "filter", "highlight", "k", "match", "offset", "prefix", "quality"),
    *("distinct", "min_score", "ranker", "snippet_length", "sort"),
)
"""Options that each index is asked for."""


STEP = 7
"""One in so many questions is asked, and all in long runs: `tools.golden check` takes seconds."""


@pytest.fixture(scope="module", params=[STEP, pytest.param(1, marks=pytest.mark.slow)])
def step(request):
    return request.param


@pytest.fixture(scope="module", params=WORLDS)
def found(request, step):
    """What differs; the worlds are built here, outside the limit for the time of a test."""
    return differences(request.param, step)


def test_answers_equal_the_stored_ones(found):
    assert found == [], PURPOSE


@pytest.mark.parametrize("name", WORLDS)
def test_each_option_is_asked_for(name):
    asked = {option for question in WORLDS[name].questions for option in question.options}
    assert asked.issuperset(OPTIONS)


def test_each_option_is_asked_for_in_short_runs():
    asked = {
        option
        for world in WORLDS.values()
        for question in world.questions[::STEP]
        for option in question.options
    }
    assert asked.issuperset(OPTIONS)


def test_scores_are_compared_by_bits_and_parts_within_a_tolerance():
    stored = "1\ta:3f800000\tt\ti\tf\t1.5/0.2//0.3//"
    assert difference(stored, stored) is None
    assert difference(stored, stored.replace("0.3", "0.3001")) is None
    assert difference(stored, stored.replace("0.3", "0.4")) is not None
    assert difference(stored, stored.replace("3f800000", "3f800001")) == (
        "hits: was a:3f800000, is a:3f800001"
    )
