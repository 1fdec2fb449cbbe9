"""A lazy property is computed once, at its first use."""

import copy
import gc
import inspect
import pickle
import threading
import time
import weakref
from dataclasses import dataclass, replace

import pytest

from klsa_search.core.lazy import (
    LazyFields,
    cached_method,
    delegated,
    lazy_property,
    set_when_read,
)
from tests.support.waiting import PATIENCE


class Thing:
    def __init__(self):
        self.made = 0

    @lazy_property
    def value(self) -> list[int]:
        """Where it lies."""
        self.made += 1
        return [self.made]


def test_a_value_is_made_at_its_first_use_and_kept():
    thing, other = Thing(), Thing()
    assert thing.made == 0
    assert thing.value is thing.value
    assert thing.value == [1]
    assert (thing.made, other.made) == (1, 0)
    assert other.value is not thing.value
    assert Thing.value.__doc__ == "Where it lies."


@dataclass(slots=True)
class Note(LazyFields):
    author: str
    text: str
    words: int = 0


def test_a_field_is_set_when_it_is_first_read():
    made = []

    def make():
        made.append(Note("nobody", "read later"))
        return made[-1]

    note = Note("Ann", "", 2)
    set_when_read(note, "text", make)
    assert (note.author, note.words, made) == ("Ann", 2, [])
    assert (note.text, note.text) == ("read later", "read later")
    assert (note.author, len(made)) == ("Ann", 1)
    with pytest.raises(AttributeError, match="no attribute 'title'"):
        note.title  # noqa: B018


@pytest.mark.parametrize(
    "copied", [copy.copy, replace, lambda note: pickle.loads(pickle.dumps(note))]
)
def test_copies_have_fields_that_were_not_read(copied):
    note = Note("Ann", "")
    set_when_read(note, "text", lambda: Note("", "read later"))
    assert copied(note) == Note("Ann", "read later") == note


def test_results_of_a_method_are_cached_and_go_with_their_object():
    class Adder:
        def __init__(self):
            self.calls = 0
            self.sum = cached_method(self.add, 8)

        def add(self, one, other):
            self.calls += 1
            return one + other

    adder = Adder()
    assert [adder.sum(1, 2), adder.sum(1, 2), adder.sum(2, 2)] == [3, 3, 4]
    assert adder.calls == 2
    reference = weakref.ref(adder)
    gc.disable()
    try:
        del adder
        assert reference() is None
    finally:
        gc.enable()


def test_a_value_is_computed_once_for_all_threads():
    made: list[object] = []
    together = threading.Barrier(4)

    class Slow:
        @lazy_property
        def value(self) -> object:
            made.append(object())
            time.sleep(0.1)
            return made[-1]

    def read() -> None:
        together.wait(PATIENCE)
        got.append(slow.value)

    slow, got = Slow(), []
    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert len(got) == 4
    assert set(map(id, got)) == set(map(id, made))
    assert len(made) == 1
    assert vars(slow).keys() == {"value"}


def test_a_failed_computation_is_repeated():
    class Failing:
        tries = 0

        @lazy_property
        def value(self) -> int:
            self.tries += 1
            return 1 // (self.tries - 1)

    failing = Failing()
    with pytest.raises(ZeroDivisionError):
        failing.value  # noqa: B018
    assert failing.value == 1


def count_books(books: list[str], title: str, *, least: int = 0) -> int:
    """Return how many there are."""
    return max(books.count(title), least)


class Shelf:
    count = delegated("_books", count_books)

    def __init__(self):
        self._books = ["Emma"]


def test_a_delegated_method_of_a_class_begins_with_self():
    shelf = Shelf()
    assert shelf.count("Emma", least=0) == Shelf.count(shelf, "Emma") == 1
    assert Shelf.count(shelf, "Persuasion", least=2) == 2
    assert [*inspect.signature(Shelf.count).parameters] == ["self", "title", "least"]
    assert [*inspect.signature(shelf.count).parameters] == ["title", "least"]
    assert Shelf.count is Shelf.count
    assert Shelf.count.__doc__ == shelf.count.__doc__ == "Return how many there are."
