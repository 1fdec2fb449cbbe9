"""Values made at their first use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

from klsa_search.core.deadlines import deadline_check

T = TypeVar("T")


class lazy_property(Generic[T]):  # noqa: N801 - a decorator
    """`functools.cached_property` without the lock that Python 3.11 holds while it makes a value.

    That lock is one for all objects, and a process forked meanwhile could never take it again.
    Threads that ask at once may each make the value; all get the one that was made first.
    """

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        """Take the name under which the value is kept, where it hides this."""
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> lazy_property[T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> lazy_property[T] | T:
        """Make the value and keep it."""
        if instance is None:
            return self
        with deadline_check(None):  # the first caller may have stopped; others will wait
            made: T = vars(instance).setdefault(self._name, self._make(instance))
        return made
