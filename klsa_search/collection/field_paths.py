"""Paths to fields of nested objects, as in `author.name`.

A name with dots that an object has itself takes precedence over a path. A path through a list of
objects has the values of all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

_MISSING: Final = object()
_LISTS: Final = (list, tuple)


def value_at(record: Any, name: str, missing: Any = None) -> Any:
    """Return the value of a name or path; by default None if it is missing.

    >>> value_at({"author": {"name": "Ann"}}, "author.name")
    'Ann'
    >>> value_at({"authors": [{"name": "Ann"}, {"name": "Bob"}]}, "authors.name")
    ['Ann', 'Bob']
    """
    if isinstance(record, Mapping):
        if name in record:
            return record[name]
        for outer, inner in _splits(name):
            if outer in record:
                value = value_at(record[outer], inner, _MISSING)
                if value is not _MISSING:
                    return value
    elif isinstance(record, _LISTS):
        matches = [
            v for element in record if (v := value_at(element, name, _MISSING)) is not _MISSING
        ]
        values: list[Any] = []
        for value in matches:
            values += value if isinstance(value, _LISTS) else [value]
        return values if matches else missing
    return missing


def has_path(record: Mapping[str, Any], name: str) -> bool:
    """Return whether an object has a name or path, whatever its value.

    >>> has_path({"author": {"name": None}}, "author.name")
    True
    """
    return value_at(record, name, _MISSING) is not _MISSING


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
                    path = f"{name}.{inner}"
                    if objects is value:  # the values of the objects of a list are one list
                        leaves = leaf if isinstance(leaf, _LISTS) else [leaf]
                        nested.setdefault(path, []).extend(leaves)
                    else:
                        nested[path] = leaf
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


def _without(record: Mapping[str, Any], name: str) -> dict[str, Any]:
    if name in record:
        return {other: value for other, value in record.items() if other != name}
    left = dict(record)
    for outer, inner in _splits(name):
        value: Any = left.get(outer)
        if value_at(value, inner, _MISSING) is not _MISSING:
            left[outer] = (
                _without(value, inner)
                if isinstance(value, Mapping)
                else [_without(row, inner) if isinstance(row, Mapping) else row for row in value]
            )
            return left if left[outer] else _without(left, outer)
    return left


def _splits(name: str) -> Iterator[tuple[str, str]]:
    """Yield the ways to divide a name at one of its dots."""
    at = name.find(".")
    while at > 0:
        yield name[:at], name[at + 1 :]
        at = name.find(".", at + 1)
