"""The fault campaign detects the faults that it looks for."""

import os
import random
import time

import pytest

from benchmarks.faults import world
from benchmarks.faults.children import Child, call, die, without_privileges
from benchmarks.faults.damage import CLASSES
from benchmarks.faults.tally import EXAMPLES, Tally, failures, row

pytestmark = pytest.mark.slow


def give(value):
    return value


def fail():
    raise ValueError("so")


def read_closed(path):
    path.chmod(0)
    with without_privileges():
        path.read_text()


def forget():
    os._exit(0)


def test_children_tell_how_they_end():
    assert call(give, 3).given() == 3
    assert str(call(fail)) == "ValueError: so"
    assert call(die).signal == 9
    with Child(time.sleep, 600) as child:
        child.kill()
        assert child.end().signal == 9
    for ended in (call(fail), call(die), call(forget)):
        with pytest.raises(AssertionError):
            ended.given()


def test_a_mode_counts_for_root_too(folder):
    (folder / "closed").touch()
    assert call(read_closed, folder / "closed").failure[0] == "PermissionError"


@pytest.mark.parametrize("name", CLASSES)
def test_damages_change_an_array_and_nothing_when_they_cannot(name):
    content = b"\x93NUMPY" + b"'<i4', 'shape': (1000,)".ljust(122) + bytes(range(250)) * 40
    assert CLASSES[name](content, random.Random(0)) != content
    assert CLASSES[name](b"", random.Random(0)) in (None, b"", bytes(1), bytes(8), bytes(4096))


def test_a_state_is_that_of_the_answers(folder):
    place = world.Place(folder)
    known = call(world.known_of, folder / "known", "gvsm").given()
    assert call(world.state, place.index, known).answer == "none"
    call(place.do, "new").given().expect_done()
    assert call(world.state, place.index, known).answer == "new"
    (place.index / "CURRENT").write_text("nothing\n")
    assert call(world.state, place.index, known).answer.startswith("refused: ")


def test_an_internal_error_is_not_an_error_message(folder):
    place = world.Place(folder)
    assert call(place.do, "broken").given().in_a_sentence
    assert not world.Said(1, "", "KeyError").in_a_sentence
    assert not world.Said(1, "", "").in_a_sentence


def test_a_tally_counts_and_keeps_the_first_examples():
    tally = Tally("part", "a trial")
    tally.survive("well", 3)
    for number in range(9):
        tally.fail("badly", str(number))
    assert (tally.tried, tally.survived.total()) == (12, 3)
    assert len(tally.examples["badly"]) == EXAMPLES
    assert row(tally) == "| part | a trial | 12 | 3 | well: 3; **badly: 9** |"
    assert failures([tally]).splitlines()[0] == "part: badly: 0"
