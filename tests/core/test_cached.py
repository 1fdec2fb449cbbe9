"""A lazy property is computed once, at its first use."""

from __future__ import annotations

import threading

from klsa_search.core.cached import lazy_property
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


def test_threads_that_ask_at_once_get_the_same():
    together = threading.Barrier(4)

    class Slow:
        @lazy_property
        def value(self) -> object:
            together.wait(300)
            return object()

    slow, got = Slow(), []
    threads = [threading.Thread(target=lambda: got.append(slow.value)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert len(got) == 4
    assert len(set(map(id, got))) == 1
