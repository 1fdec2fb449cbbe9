"""What an object of JSON is: a document, or an answer, table or export with documents in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from klsa_search.collection.field_paths import has_path, value_at
from klsa_search.collection.mappings import NAMES_IN_TEXT
from klsa_search.collection.python_rows import rows_of_columns
from klsa_search.collection.reading_options import (
    COMMON_NAMES,
    ID_NAMES,
    PLAIN,
    TEXT_NAMES,
    Columns,
    listed,
    option,
)
from klsa_search.errors import CollectionError

_LISTS_SHOWN: Final = 3
_LISTS_OF_EXPORT: Final = 4
"""Lists of objects that a board or another export has, and a document has not."""


class Layout(NamedTuple):
    """The documents of an object: itself, or those in it, of which there are notes then."""

    rows: list[Any]
    notes: list[str]


def layout_of(
    record: Mapping[str, Any],
    columns: Columns = PLAIN,
    *,
    takes_objects: bool = True,
    records: str | None = None,
) -> Layout | None:
    """Return the documents of the only object of a file; None if it has no recognised ones.

    takes_objects  whether it may be a document without a column that is named for its text
    records        path of the list of documents; by default the one with most text

    CollectionError if there is no such list.
    """
    if records:
        return Layout(list_at(record, records), [])
    if rows := rows_of_columns(record):
        return Layout(rows, ["read as a table of columns"])
    if _is_document(record, columns) and (takes_objects or not columns.lacks(record)):
        return Layout([record], [])
    layout = _inner_document(record, columns) or _inner_map(record, columns)
    if layout and (takes_objects or not columns.lacks(layout.rows[0])):
        return layout
    lists = dict(_lists(record))
    if not lists:
        by_id = _by_id(record)
        if by_id is not None:
            return Layout(by_id, ["read as an object with a document for each ID"])
        lists = dict(_maps(record))
    if not lists:
        return None
    return _with_most_text(lists)


def _with_most_text(lists: Mapping[str, list[Any]]) -> Layout:
    """Return the documents of the list with most text; the notes name the others."""
    name = max(lists, key=lambda name: _amount_of_text(lists[name]))
    unread = [other for other in lists if other != name]
    notes = [f"read the list {name!r} of an object"]
    if unread:
        more = ", ..." * (len(unread) > _LISTS_SHOWN)
        are = "the list {} is" if len(unread) == 1 else "the lists {} are"
        notes.append(
            f"{are.format(listed(unread[:_LISTS_SHOWN]))}{more} not read; "
            f"{option('records', unread[0])} reads that list instead (in Python records=)"
        )
    return Layout(lists[name], notes)


def layout_of_list(elements: list[Any], records: str | None = None) -> Layout | None:
    """Return the documents of a table in a list of objects about it, as phpMyAdmin writes; or None.

    Each object has a `type`, no ID or text by name, and only later ones have lists of documents.

    records  name of the table and its list, such as "posts.data"; by default with most text
    """
    if not all(isinstance(element, dict) and "type" in element for element in elements):
        return None
    lists = {
        f"{element['name']}.{name}": rows
        for element in elements
        if element["type"] == "table" and "name" in element
        for name, rows in _lists(element)
    }
    is_row = any(_has_text(element) or PLAIN.id_in(element) for element in elements)
    if is_row or not any(map(_has_texts, lists.values())) or next(_lists(elements[0]), None):
        return None
    return Layout(list_at(lists, records), []) if records else _with_most_text(lists)


_NESTED: Final = (dict, list)


def list_at(record: Mapping[str, Any], path: str) -> list[Any]:
    """Return the documents of a list, or of an object with one for each ID, at a path.

    CollectionError names the lists if there is none.
    """
    rows = value_at(record, path)
    if isinstance(rows, dict):
        rows = _by_id(rows)
    if not isinstance(rows, list):
        names = listed(list(dict(_lists(record)) or dict(_maps(record)))[: 2 * _LISTS_SHOWN])
        raise CollectionError(
            f"no list of documents {path!r}; the lists are: {names or 'none'}", field="records"
        )
    return rows


def _amount_of_text(rows: list[Any]) -> tuple[bool, bool, int]:
    """Return whether rows, or objects in them, have texts by name, and characters of sentences."""
    return _has_text(rows[0]), _has_texts(rows), sum(map(_characters, rows))


def _characters(value: Any, levels: int = 20) -> int:
    """Return the number of characters in the texts of several words of a value."""
    if isinstance(value, str):
        return len(value) if " " in value.strip() else 0
    elements = value.values() if isinstance(value, dict) else value
    if levels == 0 or not isinstance(value, _NESTED):
        return 0
    return sum(_characters(element, levels - 1) for element in elements)


_RESULTS: Final = frozenset(
    re.findall(r"\w+", "data docs documents hits list records response result results rows")
)
"""Names of lists of documents in answers."""
_ROWS: Final = _RESULTS | {"entries", "items", "value"}
"""Names of lists of documents in answers and feeds."""
_SINGLE: Final = frozenset(["data", "document", "item", "message", "record", "result"])
"""Names of the document in an answer about a single one."""
_FIELDS: Final = frozenset(["_source", "attributes", "fields", "properties"])
"""Names of the object that has the fields of a document, in records with the ID outside it."""
_STATUS: Final = re.compile(
    r"(?i:ok|okay|success|successful|\w+ (?:fetched|retrieved) successfully|"
    r"\d+ (?:documents?|hits?|items?|records?|results?|rows?)(?: found)?)[.!]?"
)
"""A message about an answer; any other may be the text of a document."""


def _is_document(record: Mapping[str, Any], columns: Columns = PLAIN) -> bool:
    """Return whether an object has a title or text itself, under any name."""
    if any(has_path(record, name) for name in columns.names()):
        return True
    if record.get("type") == "FeatureCollection" and record.get("features"):
        return False  # but GeoJSON, which may have the name of a layer
    names = _plain_names(record)
    if not set(TEXT_NAMES).isdisjoint(names):
        return True
    has_id = bool(columns.id_in(names) or columns.common("id", names))
    has_text = any(name.lower() in COMMON_NAMES["text"] for name in names)
    lists = dict(_lists(record))
    roles = [columns.common(role, names) for role in ("title", "text")]
    is_like = any(all(rows[0].keys() & role for role in roles) for rows in lists.values())
    # A board has cards with names such as its name and description; an issue has other comments.
    if len(lists) >= _LISTS_OF_EXPORT and (is_like or not (has_id and has_text)):
        return False
    if has_text and _is_answer(record):
        return False
    if has_id and has_text:
        return True  # such as an order with its items
    if has_id and any(_has_text(record[name]) for name in _FIELDS.intersection(record)):
        return True
    # A board has a title, a page a `page_text`, and an answer a message, but their rows are
    # documents; the comments of a post are none.
    with_texts = [name for name, rows in lists.items() if _has_texts(rows)]
    if any(not has_text or name.rpartition(".")[2].lower() in _ROWS for name in with_texts):
        return False
    return _has_text(record) or not PLAIN.lacks(names) or bool(columns.common("title", names))


def _inner_document(record: Mapping[str, Any], columns: Columns = PLAIN) -> Layout | None:
    """Return the document in an answer about a single one, such as {"product": {"id": 1, ...}}.

    It has one of the columns given; without them, an ID, or title and text under a name for it.
    """
    path, inner = "", record
    while True:
        objects = [name for name, value in inner.items() if isinstance(value, dict)]
        names = [name for name in objects if len(inner) == 1 or name in _SINGLE]
        if len(names) != 1:
            return None
        path, inner = f"{path}{names[0]}.", inner[names[0]]
        plain = _plain_names(inner)
        has_title = not PLAIN.lacks(plain) or bool(PLAIN.common("title", plain))
        has_id = bool(PLAIN.id_in(plain) or PLAIN.common("id", plain))
        if columns.names():
            if any(has_path(inner, name) for name in columns.names()):
                break
        elif _is_document(inner) and (has_id or (has_title and names[0] in _SINGLE)):
            break
    is_whole = has_id and any(map(_has_text, (inner, *map(inner.get, _FIELDS))))
    for name, rows in _lists(record):
        is_results = _has_texts(rows) or name.rpartition(".")[2].lower() in _ROWS
        if is_results and not is_whole and not name.startswith(path):
            return None
    return Layout([inner], [f"read the object {path[:-1]!r}"])


def _inner_map(record: Mapping[str, Any], columns: Columns) -> Layout | None:
    """Return the documents by number in an answer with other facts, as MediaWiki has its pages."""
    for path, inner in _objects(record):
        rows = {id_: row for id_, row in inner.items() if isinstance(row, dict)}
        if not rows or not all(
            id_.isdecimal() and _is_document(row, columns) for id_, row in rows.items()
        ):
            continue
        outside = (row for name, (row, *_) in _lists(record) if not name.startswith(path))
        beside = (name for name in inner if name not in rows)
        if _is_bare(beside) and all(map(_is_bare, outside)):
            return Layout(
                [{"id": id_, **row} for id_, row in rows.items()],
                [f"read the object {path[:-1]!r} with a document for each ID"],
            )
    return None


def _objects(record: Mapping[str, Any], outer: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the objects in an object with their paths, which end with a dot."""
    for name, value in record.items():
        if isinstance(value, dict):
            yield f"{outer}{name}.", value
            yield from _objects(value, f"{outer}{name}.")


def _is_bare(names: Iterable[str]) -> bool:
    """Return whether no name is one of IDs, titles or texts."""
    names = list(names)
    return PLAIN.lacks(names) and not any(PLAIN.common(role, names) for role in COMMON_NAMES)


def _is_answer(record: Mapping[str, Any]) -> bool:
    """Return whether an object with a text is an answer: the text is a status message alone.

    Its results are documents by their names: each has a text, and an ID or title.
    """
    texts = [name for name in record if name.lower() in COMMON_NAMES["text"]]
    message = record.get("message")
    if texts != ["message"] or not isinstance(message, str) or PLAIN.common("title", record):
        return False
    if not _STATUS.fullmatch(message):
        return False
    results = (rows[0] for name, rows in _lists(record) if _RESULTS.issuperset(name.split(".")))
    return _inner_document(record) is not None or any(
        _has_text(row) and (PLAIN.id_in(row) or PLAIN.common("id", row) or "title" in row)
        for row in results
    )


def _has_texts(rows: list[Any]) -> bool:
    """Return whether the first object of a list, or an object in it, has a text."""
    inner = [value for value in rows[0].values() if isinstance(value, dict)]
    return any(_has_text(record) for record in [rows[0], *inner])


def _plain_names(record: Mapping[str, Any]) -> list[str]:
    """Return the names of values that are not objects, unless these are a text, as in WordPress."""
    return [
        name
        for name, value in record.items()
        if not isinstance(value, dict) or any(inner in value for inner in NAMES_IN_TEXT)
    ]


def _has_text(record: Any) -> bool:
    names = _plain_names(record) if isinstance(record, dict) else []
    return bool(PLAIN.texts_in(names) or PLAIN.common("text", names))


def _lists(content: Mapping[str, Any], outer: str = "") -> Iterator[tuple[str, list[Any]]]:
    """Yield the lists of objects in an object, with their paths; not those in lists."""
    for name, value in content.items():
        if isinstance(value, dict):
            yield from _lists(value, f"{outer}{name}.")
        elif isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
            yield f"{outer}{name}", value


def _maps(record: Mapping[str, Any]) -> Iterator[tuple[str, list[Any]]]:
    """Yield the objects that have a document for each ID, in an object of objects, with paths."""
    are_objects = all(isinstance(value, dict) for value in record.values())
    for path, inner in _objects(record) if are_objects else ():
        if inner and all(isinstance(row, dict) and _is_document(row) for row in inner.values()):
            yield path[:-1], [{"id": id_, **row} for id_, row in inner.items()]


def _by_id(content: Mapping[str, Any]) -> list[Any] | None:
    """Return the rows of an object of texts or objects by ID; None if it is something else."""
    while len(content) == 1 and all(isinstance(value, dict) for value in content.values()):
        (inner,) = content.values()
        if _is_document(inner):
            break
        content = inner
    rows = list(content.values())
    if (
        rows
        and all(isinstance(row, dict) for row in rows)
        and (
            all(map(_is_document, rows))
            or (len(rows) > 1 and all(row and row.keys() == rows[0].keys() for row in rows))
        )
    ):
        return [{"id": id_, **row} for id_, row in content.items()]
    if (
        len(content) > 1
        and {*ID_NAMES, *COMMON_NAMES["id"]}.isdisjoint(content)
        and all(isinstance(v, str) for v in content.values())
    ):
        return [{"id": id_, "text": row} for id_, row in content.items()]
    return None
