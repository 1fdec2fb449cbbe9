"""A cached property that is safe with forks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

from klsa_search.core.deadlines import deadline_check

T = TypeVar("T")


class lazy_property(Generic[T]):  # noqa: N801 - a decorator
    """`functools.cached_property` without the lock of Python 3.11.

    That lock is shared by all objects; a process forked while it is locked could never acquire it.
    Concurrent threads may each compute the value; all get the one stored first.
    """

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        """Set the name of the instance attribute, which then hides this descriptor."""
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> lazy_property[T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> lazy_property[T] | T:
        """Compute and store the value."""
        if instance is None:
            return self
        with deadline_check(None):  # the first caller may have stopped; others will wait
            made: T = vars(instance).setdefault(self._name, self._make(instance))
        return made
