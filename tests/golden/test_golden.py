"""Scores, orders, totals and texts of answers change on purpose only."""

import pytest

from tools.golden.__main__ import differences
from tools.golden.answers import difference
from tools.golden.world import WORLDS

PURPOSE = "if on purpose: python -m tools.golden write, in its own commit"


@pytest.fixture(scope="module", params=WORLDS)
def found(request):
    """What differs; the worlds are built here, outside the limit for the time of a test."""
    return differences(request.param, 6)


def test_every_sixth_answer_equals_the_stored_one(found):
    assert found == [], PURPOSE


@pytest.mark.slow
@pytest.mark.parametrize("name", WORLDS)
def test_all_answers_equal_the_stored_ones(name):
    assert differences(name) == [], PURPOSE


def test_scores_are_compared_by_bits_and_parts_within_a_tolerance():
    stored = "1\ta:3f800000\tt\ti\tf\t1.5/0.2//0.3//"
    assert difference(stored, stored) is None
    assert difference(stored, stored.replace("0.3", "0.3001")) is None
    assert difference(stored, stored.replace("0.3", "0.4")) is not None
    assert difference(stored, stored.replace("3f800000", "3f800001")) == (
        "hits: was a:3f800000, is a:3f800001"
    )
