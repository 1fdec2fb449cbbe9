"""Names with dots for the fields of nested objects, as in `author.name`.

A name with dots that an object has itself takes precedence over a path. A path through a list of
objects has the values of all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

_NONE: Final = object()
_LISTS: Final = (list, tuple)


def value_at(record: Mapping[str, Any], name: str) -> Any:
    """Return the value of a name or path; None if it is missing.

    >>> value_at({"author": {"name": "Ann"}}, "author.name")
    'Ann'
    >>> value_at({"authors": [{"name": "Ann"}, {"name": "Bob"}]}, "authors.name")
    ['Ann', 'Bob']
    """
    value = _at(record, name)
    return None if value is _NONE else value


def has_path(record: Mapping[str, Any], name: str) -> bool:
    """Return whether an object has a name or path, whatever its value.

    >>> has_path({"author": {"name": None}}, "author.name")
    True
    """
    return _at(record, name) is not _NONE


def without_paths(record: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return an object without these names and paths; objects that become empty go, too.

    >>> without_paths({"author": {"name": "Ann"}, "year": 2024}, ["author.name"])
    {'year': 2024}
    """
    left = {name: value for name, value in record.items() if name not in names}
    for name in names:
        if name not in record and "." in name:
            left = _without(left, name)
    return left


def flat(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object whose nested objects are fields with dotted names.

    >>> flat({"author": {"name": "Ann", "born": {"year": 1970}}, "tags": ["a"]})
    {'tags': ['a'], 'author.name': 'Ann', 'author.born.year': 1970}
    """
    fields: dict[str, Any] = {}
    nested: dict[str, Any] = {}
    for name, value in record.items():
        if not holds_objects(value):
            fields[name] = value
            continue
        objects = [value] if isinstance(value, Mapping) else value
        plain = [element for element in objects if not isinstance(element, Mapping)]
        if plain:
            fields[name] = plain
        for element in objects:
            if isinstance(element, Mapping):
                for inner, leaf in flat(element).items():
                    _add(nested, f"{name}.{inner}", leaf, listed=objects is value)
    return {**nested, **fields} if nested.keys() & fields.keys() else fields | nested


def path_names(record: Mapping[str, Any], levels: int = 3) -> list[str]:
    """Return the names of an object, and the paths in the objects in it, so many levels down.

    >>> path_names({"_id": "1", "_source": {"doc": {"title": "Pump"}}})
    ['_id', '_source', '_source.doc', '_source.doc.title']
    """
    names = list(record)
    for name, value in record.items():
        if levels and isinstance(value, Mapping):
            names += [f"{name}.{inner}" for inner in path_names(value, levels - 1)]
    return names


def holds_objects(value: Any) -> bool:
    """Return whether a value is an object, or a list with one."""
    if isinstance(value, Mapping):
        return True
    return isinstance(value, _LISTS) and any(isinstance(element, Mapping) for element in value)


def _add(fields: dict[str, Any], name: str, value: Any, *, listed: bool) -> None:
    """Add a value; values of the objects of a list become one list."""
    if not listed:
        fields[name] = value
        return
    fields.setdefault(name, []).extend(value if isinstance(value, _LISTS) else [value])


def _at(record: Any, name: str) -> Any:
    if isinstance(record, Mapping):
        if name in record:
            return record[name]
        for outer, inner in _cuts(name):
            if outer in record:
                value = _at(record[outer], inner)
                if value is not _NONE:
                    return value
        return _NONE
    if isinstance(record, _LISTS):
        matches = [value for element in record if (value := _at(element, name)) is not _NONE]
        values: list[Any] = []
        for value in matches:
            values += value if isinstance(value, _LISTS) else [value]
        return values if matches else _NONE
    return _NONE


def _without(record: Mapping[str, Any], name: str) -> dict[str, Any]:
    left = dict(record)
    if name in left:
        del left[name]
        return left
    for outer, inner in _cuts(name):
        value = left.get(outer)
        if isinstance(value, Mapping) and has_path(value, inner):
            rest = _without(value, inner)
            left = {**left, outer: rest} if rest else {k: v for k, v in left.items() if k != outer}
            break
        if isinstance(value, _LISTS) and _at(value, inner) is not _NONE:
            left[outer] = [
                _without(element, inner) if isinstance(element, Mapping) else element
                for element in value
            ]
            break
    return left


def _cuts(name: str) -> Iterator[tuple[str, str]]:
    """Yield the ways to divide a name at one of its dots."""
    at = name.find(".")
    while at > 0:
        yield name[:at], name[at + 1 :]
        at = name.find(".", at + 1)
