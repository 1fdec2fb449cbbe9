"""Methods of an object that one of its parts has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Concatenate, Generic, ParamSpec, TypeVar, overload

P = ParamSpec("P")
T = TypeVar("T")
Part = TypeVar("Part")


class delegated(Generic[P, T]):  # noqa: N801 - reads as a decorator
    """A method that is called on an attribute of the object, with its signature and docstring.

    part    name of the attribute
    method  of its class or protocol

    >>> class Shelf:
    ...     def __init__(self) -> None:
    ...         self._books = ["Emma"]
    ...
    ...     count = delegated("_books", list.count)
    >>> Shelf().count("Emma")
    1
    """

    def __init__(self, part: str, method: Callable[Concatenate[Part, P], T]) -> None:
        self._part, self._method, self._name = part, method, method.__name__
        self.__doc__ = method.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> Callable[..., T]: ...

    @overload
    def __get__(self, instance: object, owner: type) -> Callable[P, T]: ...

    def __get__(self, instance: object, owner: type) -> object:
        """Return the method of the part, or of its class."""
        return (
            self._method if instance is None else getattr(getattr(instance, self._part), self._name)
        )
