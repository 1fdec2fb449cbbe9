"""Deadlines: a check that long work calls between its steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Check = Callable[[], None]

_check: ContextVar[Check | None] = ContextVar("klsa_check", default=None)


@contextmanager
def deadline_check(check: Check | None) -> Iterator[None]:
    """Set the function that `check_deadline` calls in this thread; it raises to stop the work.

    None suspends the check, for work whose result other threads will use.
    """
    before = _check.set(check)
    try:
        yield
    finally:
        _check.reset(before)


def check_deadline() -> None:
    """Raise the exception of `deadline_check` after its deadline; otherwise do nothing.

    To be called between steps, when no state is half changed. Cost: 0.1 µs.
    """
    check = _check.get()
    if check is not None:
        check()
