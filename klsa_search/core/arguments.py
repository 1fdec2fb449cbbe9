"""Checks of public arguments: a value of the wrong type is an ArgumentError that says what to give.

Errors of programs, such as a wrong number of arguments, stay TypeErrors.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from reprlib import Repr
from types import NoneType
from typing import Final, TypeVar

from klsa_search.errors import ArgumentError

T = TypeVar("T")

_BRIEF: Final = Repr()
_BRIEF.maxother = _BRIEF.maxstring = _BRIEF.maxlong = 60

_KINDS: Final[tuple[tuple[type | tuple[type, ...], str, str], ...]] = (
    (bool, "a bool", "bools"),
    (str, "a text", "texts"),
    ((bytes, bytearray), "bytes", "bytes"),
    ((int, Integral), "a whole number", "whole numbers"),
    ((float, Real), "a number", "numbers"),
    (Mapping, "a mapping", "mappings"),
    (list, "a list", "lists"),
    (tuple, "a tuple", "tuples"),
    (os.PathLike, "a path", "paths"),
    (NoneType, "None", "None"),
)
"""Types with their names, one and many; an instance of several has the first."""


def kind_of(value: object) -> str:
    """Return what a value is, for a message.

    >>> kind_of("red"), kind_of({"id": "1"}), kind_of(object)
    ('a text', 'a mapping', 'a type')
    """
    names = (one for types, one, _ in _KINDS if isinstance(value, types))
    return next(names, name_of(type(value)))


def checked_argument(name: str, value: T, *kinds: type) -> T:
    """Return an argument of one of these types; ArgumentError for any other.

    >>> checked_argument("id", "leak", str)
    'leak'
    """
    if type(value) in kinds or _is_a(value, *kinds):
        return value
    raise ArgumentError(wrong_type(name, value, *kinds), field=name)


def brief(value: object) -> str:
    """Return a value for a message, shortened to about 60 characters.

    >>> brief("leak"), len(brief("leak" * 100))
    ("'leak'", 60)
    """
    return _BRIEF.repr(value)


def wrong_type(name: str, value: object, *kinds: type) -> str:
    """Return the message that a value has none of these types.

    >>> wrong_type("query", 5, str)
    'query = 5 is a whole number; give a text'
    """
    wanted = " or ".join(name_of(kind) for kind in kinds if kind is not NoneType)
    return f"{name} = {described(value)}; give {wanted}"


def checked_items(name: str, value: Iterable[T], *kinds: type) -> list[T]:
    """Return the items of an argument, each of one of these types; ArgumentError for any other.

    A text is not a list of its letters, nor a mapping one of its names.

    >>> checked_items("ids", iter(["leak", "heat"]), str)
    ['leak', 'heat']
    """
    checked_iterable(name, value, *kinds)
    in_array = getattr(value, "tolist", None)  # of NumPy, which need not be loaded, and pandas
    items: list[T] = list(value) if in_array is None else in_array()
    is_uniform = getattr(getattr(value, "dtype", None), "kind", "O") != "O"  # not objects
    for number, item in enumerate(items[:1] if is_uniform else items):
        if not _is_a(item, *kinds):
            raise ArgumentError(wrong_type(f"{name}[{number}]", item, *kinds), field=name)
    return items


def checked_iterable(name: str, value: Iterable[T], *kinds: type) -> Iterable[T]:
    """Return an argument that can be iterated, without its items; ArgumentError: `checked_items`.

    kinds  of the items, for the message
    """
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        wanted = " or ".join(name_of(kind, many=True) for kind in kinds)
        raise ArgumentError(f"{name} = {described(value)}; give a list of {wanted}", field=name)
    return value


def described(value: object) -> str:
    """Return a value with its kind, for a message.

    >>> described(5), described(None)
    ('5 is a whole number', 'None')
    """
    return "None" if value is None else f"{brief(value)} is {kind_of(value)}"


def _is_a(value: object, *kinds: type) -> bool:
    if isinstance(value, bool):
        return bool in kinds or object in kinds
    return isinstance(value, kinds) or (int in kinds and isinstance(value, Integral))


def name_of(kind: type, *, many: bool = False) -> str:
    """Return the name of a type, for a message.

    >>> name_of(str), name_of(str, many=True)
    ('a text', 'texts')
    """
    for types, one, several in _KINDS:
        if kind in (types if isinstance(types, tuple) else (types,)):
            return several if many else one
    if kind is object:
        return "values" if many else "a value"
    if kind.__name__ == "ndarray":
        return "arrays" if many else "an array"
    return f"{kind.__name__} objects" if many else f"a {kind.__name__}"
