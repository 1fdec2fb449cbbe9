"""Documents made of mappings, and rows of programs, databases and data frames as mappings.

Names with dots are paths to fields of nested objects, as in `author.name`. A name with dots that an
object has itself takes precedence over a path. A path through a list of objects has the values of
all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from math import isfinite, isnan
from pathlib import PurePath
from typing import Any, Final
from uuid import UUID

from klsa_search.collection.model import Document
from klsa_search.collection.reading_options import ID_NAMES, PLAIN, Columns
from klsa_search.collection.text_cleaning import join_divided_words
from klsa_search.collection.vectors import VECTORS, without_vectors
from klsa_search.errors import BadDocument, CollectionError

_NONE: Final = object()
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
        for outer, inner in _cuts(name):
            if outer in record:
                value = value_at(record[outer], inner, _NONE)
                if value is not _NONE:
                    return value
    elif isinstance(record, _LISTS):
        matches = [v for element in record if (v := value_at(element, name, _NONE)) is not _NONE]
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
    return value_at(record, name, _NONE) is not _NONE


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
    for outer, inner in _cuts(name):
        value: Any = left.get(outer)
        if value_at(value, inner, _NONE) is not _NONE:
            left[outer] = (
                _without(value, inner)
                if isinstance(value, Mapping)
                else [_without(row, inner) if isinstance(row, Mapping) else row for row in value]
            )
            return left if left[outer] else _without(left, outer)
    return left


def _cuts(name: str) -> Iterator[tuple[str, str]]:
    """Yield the ways to divide a name at one of its dots."""
    at = name.find(".")
    while at > 0:
        yield name[:at], name[at + 1 :]
        at = name.find(".", at + 1)


_TUPLES: Final = {2: ("id", "text"), 3: ("id", "title", "text")}
TEXT_OF_OBJECT: Final = ("#text", "S", "rendered", "text", "value")
"""Names of the text of an object that is a title or text, as DynamoDB and WordPress write them."""
_JSON: Final = frozenset({str, int, float, bool, type(None)})


def as_document(
    record: Mapping[str, Any],
    origin: str = "document",
    columns: Columns = PLAIN,
    *,
    number: int | None = None,
) -> Document:
    """Return the document of a mapping with `_id` or `id`, `title` and `text`, and metadata.

    `_id` takes precedence over `id`, `text` over `contents`, `columns` over these names. Several
    texts are joined by blank lines, and words that are divided at the end of a line are joined.
    Numbers become strings, null is empty; title and text are optional. Other fields are metadata; a
    mapping under `metadata` (BEIR) is flattened, and outer names take precedence.

    origin  "file:line", with which a CollectionError begins
    number  id of a record without one
    """
    id_name = columns.id_in(record)
    if id_name is None and has_path(record, columns.id):
        id_name = columns.id
    if id_name is None and number is None:
        wanted = f"no {columns.id!r}" if columns.id else "neither '_id' nor 'id'"
        names = ", ".join(repr(name) for name in list(record)[:5]) or "nothing"
        raise CollectionError(
            f"{origin}: {wanted} is given, but {names}; add an ID, or rename its field to `id`"
        )
    title_name, text_names = columns.title_in(record), columns.texts_in(record)
    taken = [title_name, *text_names, id_name if number is None else None]
    rest = without_paths(record, list(filter(None, taken)))
    inner = rest.get("metadata")
    if isinstance(inner, Mapping):
        del rest["metadata"]
        rest = {**inner, **rest}
    texts = [_string(record, name, origin, "\n") for name in text_names]
    return Document(
        id=_string(record, id_name or "", origin) if number is None else str(number),
        title=_string(record, title_name, origin, ", ") if title_name else "",
        text=join_divided_words(
            texts[0] if len(texts) == 1 else "\n\n".join(filter(str.strip, texts))
        ),
        metadata=rest,
        origin=origin,
    )


def _string(record: Mapping[str, Any], name: str, origin: str, separator: str | None = None) -> str:
    """Return a text or number as text; CollectionError for anything else.

    separator  joins the texts of a list; None if a list is refused
    """
    value = value_at(record, name)
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        if not isfinite(value):
            raise CollectionError(
                f"{origin}: {name!r} is {value}, which is not valid in JSON; give "
                "text, or null (None in Python)"
            )
        return str(value)
    if separator is not None and isinstance(value, list | tuple):
        parts = [_string({name: part}, name, origin) for part in value]
        return separator.join(filter(str.strip, parts))
    if isinstance(value, Mapping) and value:
        fields = flat(value)
        texts = [fields[path] for path in fields if path.rpartition(".")[2] in TEXT_OF_OBJECT]
        if len(texts) == 1 and isinstance(texts[0], str):
            return texts[0]
        paths = ", ".join(f"{name}.{inner}" for inner in list(fields)[:3])
        raise CollectionError(
            f"{origin}: {name!r} is an object, not a string; name one of its fields: {paths}"
        )
    raise CollectionError(f"{origin}: {name!r} is a {type(value).__name__}, not a string")


def merged(document: Document, changes: Mapping[str, Any]) -> Document:
    """Return a document with changes of its title, text and metadata merged in (RFC 7396).

    changes  named as in `as_document`, without an id or with that of the document; a mapping under
             `metadata` is flattened, and `metadata: None` removes all metadata
    Vectors of the document are removed if title or text change, as they describe these.
    BadDocument if the id differs, or title or text is not text.
    """
    origin = f"document {document.id[:60]!r}"
    try:
        rest = {name: json_value(value) for name, value in changes.items()}
    except RecursionError:
        raise BadDocument(f"{origin}: the changes are nested too deeply; flatten them") from None
    for name in ID_NAMES:
        if str(id_ := rest.pop(name, document.id)) != document.id:
            raise BadDocument(
                f"{origin}: a patch cannot change the id to {str(id_)[:60]!r}; delete the "
                "document and add another",
                field="id",
            )
    if "text" not in rest and "contents" in rest and "contents" not in document.metadata:
        rest["text"] = rest.pop("contents")
    parts = {"title": document.title, "text": document.text}
    parts |= {name: rest.pop(name) for name in parts if name in rest}
    metadata: Any = document.metadata
    if parts != {"title": document.title, "text": document.text}:
        metadata = without_vectors(metadata)  # which described the text before
    if "metadata" in rest and (rest["metadata"] is None or isinstance(rest["metadata"], Mapping)):
        inner = rest.pop("metadata")
        metadata, rest = ({}, rest) if inner is None else (metadata, {**inner, **rest})
    try:
        return Document(
            id=document.id,
            title=_string(parts, "title", origin),
            text=join_divided_words(_string(parts, "text", origin)),
            metadata=_merged(metadata, rest),
        )
    except CollectionError as error:
        raise BadDocument(f"{error.message}; correct it and send it again") from None
    except RecursionError:
        raise BadDocument(f"{origin}: the changes are nested too deeply; flatten them") from None


def _merged(target: Any, changes: Any) -> Any:
    """Return the result of a JSON Merge Patch."""
    if not isinstance(changes, Mapping):
        return changes
    result = dict(target) if isinstance(target, Mapping) else {}
    for name, value in changes.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = _merged(result.get(name), value)
    return result


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
    for id_, value in source.items():
        yield {"id": id_, **value} if isinstance(value, Mapping) else (id_, value)


def json_value(value: Any) -> Any:
    """Return a value as Python programs, databases and data frames have it as a JSON value.

    Dates and times are ISO 8601, numbers of NumPy are numbers, UUIDs and paths are texts, members
    of enumerations are their values, and NaN, NaT and NA are None, also in lists, tuples, sets and
    mappings. A decimal number that is not whole becomes the nearest float64. Anything else is
    returned unchanged.
    """
    if type(value) in _JSON:
        return None if isinstance(value, float) and isnan(value) else value
    if isinstance(value, list | tuple):
        return [json_value(item) for item in value]
    if isinstance(value, set | frozenset):
        return [json_value(item) for item in sorted(value, key=str)]
    if isinstance(value, Mapping):
        return {name: json_value(item) for name, item in value.items()}
    if hasattr(value, "tolist") and hasattr(value, "dtype"):  # NumPy's
        if value.dtype.str[1:] == "M8[ns]":  # which becomes a number
            value = value.astype("datetime64[us]")
        return json_value(value.tolist())
    # NaN and NaT are not equal to themselves; comparing NA of pandas gives no bool.
    same = value == value
    if not isinstance(same, bool) or not same:
        return None
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Decimal):
        is_integer = value.is_finite() and value == value.to_integral_value()
        return int(value) if is_integer else float(value)
    if isinstance(value, Enum):
        return json_value(value.value)
    return str(value) if isinstance(value, UUID | PurePath) else value


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def without_types(value: Any) -> Any:
    """Return a JSON value with objects such as {"$oid": ...} as texts and numbers.

    Dates become ISO 8601, NaN null. What MongoDB has no plain value for stays as it is.

    >>> without_types({"_id": {"$oid": "65f0"}, "n": {"$numberLong": "5"}})
    {'_id': '65f0', 'n': 5}
    >>> without_types({"$date": {"$numberLong": "1709285400000"}})
    '2024-03-01T09:30:00+00:00'
    """
    if isinstance(value, list):
        return [without_types(element) for element in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        ((name, inner),) = value.items()
        if name in _TYPES:
            try:
                return _TYPES[name](inner)
            except (ArithmeticError, TypeError, ValueError):
                return value
    return {name: without_types(inner_value) for name, inner_value in value.items()}


def _date(value: Any) -> str:
    if isinstance(value, str):
        return value
    milliseconds = without_types(value)
    return (_EPOCH + timedelta(milliseconds=milliseconds)).isoformat()


_TYPES: Final[dict[str, Callable[[Any], Any]]] = {
    "$oid": str,
    "$date": _date,
    "$numberInt": int,
    "$numberLong": int,
    "$numberDouble": lambda value: json_value(float(value)),
    "$numberDecimal": str,
    "$symbol": str,
    "$uuid": str,
}
