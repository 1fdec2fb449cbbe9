"""Deadlines: work that is no longer needed stops at its next step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Check = Callable[[], None]

_check: ContextVar[Check | None] = ContextVar("klsa_check", default=None)


@contextmanager
def deadline_check(check: Check | None) -> Iterator[None]:
    """Have `in_time` call this, in this thread, until the block ends: it raises to give up.

    None to give up nothing, as where something is made that all will use.
    """
    before = _check.set(check)
    try:
        yield
    finally:
        _check.reset(before)


def check_deadline() -> None:
    """Raise the exception of `checked` after its deadline; otherwise do nothing.

    For between the steps of what takes long, where nothing is half done. Cost: .1 µs.
    """
    check = _check.get()
    if check is not None:
        check()
