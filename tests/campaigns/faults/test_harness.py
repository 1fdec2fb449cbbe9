"""The fault campaign detects the faults that it looks for."""

from __future__ import annotations

import os
import random
import time

import pytest

from benchmarks.faults import world
from benchmarks.faults.children import Child, call, die
from benchmarks.faults.damaging import CLASSES
from benchmarks.faults.events import at_event, telling, watch
from benchmarks.faults.privileges import without_privileges
from benchmarks.faults.tally import EXAMPLES, Tally, failures, row

pytestmark = pytest.mark.slow


def give(value):
    return value


def fail():
    raise ValueError("so")


def rename_until(folder, number):
    at_event(folder, number, lambda _: die())
    (folder / "a").rename(folder / "b")
    (folder / "b").unlink()


def wait_at(gate, folder):
    at_event(folder, 0, gate.stop)
    (folder / "new").mkdir()


def look(folder):
    events = []
    watch(folder, events.append)
    (folder / "000007").mkdir()
    (folder / "000007" / "x").write_text("x")
    with (folder.parent / "elsewhere").open("w"):
        pass
    return list(events)


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


@pytest.mark.parametrize(("number", "left"), [(0, "a"), (1, "b"), (2, None)])
def test_a_kill_is_just_before_the_event(folder, number, left):
    (folder / "a").touch()
    ended = call(rename_until, folder, number)
    assert [path.name for path in folder.iterdir()] == [left] * (left is not None)
    assert ended.signal == (None if left is None else 9)


def test_a_child_waits_at_its_gate(folder):
    with Child(wait_at, folder, gated=True) as child:
        assert child.waits() == "os.mkdir /new"
        assert not (folder / "new").exists()
        child.go_on()
        assert child.end().well
    assert (folder / "new").is_dir()


def test_events_are_those_of_the_folder_without_the_numbers_of_generations(folder):
    (folder / "in").mkdir()
    found = call(look, folder / "in").given()
    assert found == ["os.mkdir /generation", "open /generation/x"]


def test_one_array_stands_for_all():
    events = ["open /a.npy", "open /b.npy", "open /c.npy", "os.rename /CURRENT"]
    assert telling(events) == [0, 2, 3]


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


def test_files_of_the_user_are_missed(folder):
    world.plant(folder)
    assert world.untouched(folder)
    (folder / "2023" / "spring.txt").write_text("another")
    assert not world.untouched(folder)


def test_a_slip_of_the_program_is_no_sentence(folder):
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
