"""Rows of programs, databases and data frames as mappings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, is_dataclass
from typing import Any, Final

from klsa_search.collection.columns import COMMON_NAMES, PLAIN
from klsa_search.collection.json_values import json_value
from klsa_search.collection.vectors import VECTORS
from klsa_search.errors import CollectionError

_TUPLES: Final = {2: ("id", "text"), 3: ("id", "title", "text")}


def record_of(row: Any) -> Mapping[str, Any] | None:
    """Return a row of a Python program as a mapping of JSON values; None if it is none.

    A text has no ID. A tuple is an ID and a text, or ID, title and text, unless its fields have
    names. A row of a database has `keys`, one of a structured array of NumPy named fields; another
    object has its public attributes.
    """
    if isinstance(row, str):
        return {"text": row}
    if isinstance(row, tuple) and hasattr(row, "_asdict"):
        row = row._asdict()
    elif isinstance(row, tuple) and len(row) in _TUPLES:
        row = dict(zip(_TUPLES[len(row)], row, strict=True))
    elif is_dataclass(row) and not isinstance(row, type):
        row = asdict(row)
    elif not isinstance(row, Mapping):
        if names := getattr(getattr(row, "dtype", None), "names", None):
            row = dict(zip(names, row.tolist(), strict=True))
        elif hasattr(row, "keys"):
            row = dict(row)
        elif not (row := _attributes(row)):
            return None
    return {name: value if name == VECTORS else json_value(value) for name, value in row.items()}


def _attributes(row: Any) -> dict[str, Any]:
    """Return the public attributes of an object that are set, such as a model of pydantic."""
    if hasattr(row, "model_dump"):
        values = row.model_dump()
    else:
        names: Iterable[str] = [field.name for field in getattr(row, "__attrs_attrs__", ())]
        names = names or getattr(row, "__dict__", ()) or getattr(row, "__slots__", ())
        values = {name: getattr(row, name, None) for name in names}
    return {
        name: value
        for name, value in values.items()
        if value is not None and not name.startswith("_")
    }


def rows_of_columns(columns: Mapping[Any, Any]) -> list[dict[str, Any]] | None:
    """Return the rows of a table as pandas writes it in JSON; None for another mapping.

    The columns are lists, or objects with a value for each row; or `columns` has their names, and
    `data` the lists of their values.

    >>> rows_of_columns({"id": {"0": "a", "1": "b"}, "text": {"0": "pump", "1": "valve"}})
    [{'id': 'a', 'text': 'pump'}, {'id': 'b', 'text': 'valve'}]
    """
    names, cells = columns.get("columns"), columns.get("data")
    if isinstance(names, list) and isinstance(cells, list):
        is_table = all(isinstance(row, list) and len(row) == len(names) for row in cells)
        return [dict(zip(names, row, strict=True)) for row in cells] if is_table else None
    if PLAIN.lacks(columns) and not PLAIN.common("text", map(str, columns)):
        return None
    values = list(map(json_value, columns.values()))
    if all(isinstance(value, Mapping) for value in values):
        if any(value.keys() != values[0].keys() for value in values):
            return None
        values = [list(value.values()) for value in values]
    if not all(isinstance(value, list) and len(value) == len(values[0]) for value in values):
        return None
    return [dict(zip(columns, row, strict=True)) for row in zip(*values, strict=True)]


def records_by_id(source: Mapping[Any, Any]) -> Iterator[Any]:
    """Yield the rows of a mapping of IDs to texts or mappings, or of names to columns."""
    if rows := rows_of_columns(source):
        yield from rows
        return
    values = {name: json_value(value) for name, value in source.items()}
    sizes = {name: len(value) for name, value in values.items() if isinstance(value, list)}
    if len(sizes) == len(source) > 1 and (PLAIN.id_in(sizes) or PLAIN.texts_in(sizes)):
        counts = ", ".join(f"{name!r} has {size:,}" for name, size in sizes.items())
        raise CollectionError(
            f"the columns have different numbers of values: {counts}; give each one for each row"
        )
    if _is_document(source):
        yield source
        return
    for id_, value in source.items():
        yield {"id": id_, **value} if isinstance(value, Mapping) else (id_, value)


def _is_document(source: Mapping[Any, Any]) -> bool:
    """Return whether a mapping is one document rather than documents by their IDs.

    It has a scalar ID or a text by name. Texts alone are documents by their IDs, which may be
    `title` or `text`, unless they have an ID and a text, or all names are those of documents.
    """
    names = list(map(str, source))
    texts = list(filter(None, [PLAIN.title_in(names), *PLAIN.texts_in(names)]))
    has_id = isinstance(json_value(source.get(PLAIN.id_in(names))), str | int | float)
    if all(isinstance(value, str) for value in source.values()):
        common = {role: PLAIN.common(role, names) for role in COMMON_NAMES}
        is_named = set[str]().union(*common.values()).issuperset(names)
        return bool(common["title"] or common["text"]) and (has_id or is_named)
    return has_id or any(isinstance(source.get(name), str) for name in texts)
