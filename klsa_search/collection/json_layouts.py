"""What an object of JSON is: a document, or an answer, table or export with documents in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from klsa_search.collection.columns import COMMON_NAMES, PLAIN, TEXT_NAMES, Columns, listed, option
from klsa_search.collection.field_paths import has_path, value_at
from klsa_search.collection.mappings import NAMES_IN_TEXT, rows_of_columns
from klsa_search.core.wording import words
from klsa_search.errors import CollectionError

_LISTS_SHOWN: Final = 3
_LISTS_OF_EXPORT: Final = 4
"""Lists of objects that a board or another export has, and a document has not."""
_RESULTS: Final = words(
    "data docs documents entries hits items list records response result results rows value"
)
"""Names of lists of documents in answers and feeds."""
_ANSWER: Final = frozenset(["code", "error", "ok", "success"])
"""Names beside the message about an answer."""
_SINGLE: Final = frozenset(["data", "document", "item", "message", "record", "result"])
"""Names of the document in an answer about a single one."""
_FIELDS: Final = frozenset(["_source", "attributes", "fields", "properties"])
"""Names of the object that has the fields of a document, in records with the ID outside it."""


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
    layout = _inner_document(record, columns)
    if layout and (takes_objects or not columns.lacks(layout.rows[0])):
        return layout
    lists = _lists_and_maps(record, columns)
    if not lists:
        texts = [name for name, value in record.items() if _are_texts(name, value)]
        is_list = takes_objects and len(texts) == 1
        notes = [f"read the list {texts[0]!r} of an object"] if is_list else []
        return Layout(record[texts[0]], notes) if is_list else None
    name = max(lists, key=lambda name: _amount_of_text(lists[name]))
    unread = [other for other in lists if other != name]
    if not name:
        notes = ["read as an object with a document for each ID"]
    elif isinstance(value_at(record, name), list):
        notes = [f"read the list {name!r} of an object"]
    else:
        notes = [f"read the object {name!r} with a document for each ID"]
    if unread:
        more = ", ..." * (len(unread) > _LISTS_SHOWN)
        are = "the list {} is" if len(unread) == 1 else "the lists {} are"
        notes.append(
            f"{are.format(listed(unread[:_LISTS_SHOWN]))}{more} not read; "
            f"{option('records', unread[0])} reads that list instead (in Python records=)"
        )
    return Layout(lists[name], notes)


def list_at(record: Mapping[str, Any], path: str) -> list[Any]:
    """Return the documents of a list, or of an object with one for each ID, at a path.

    CollectionError names the lists if there is none.
    """
    rows = value_at(record, path)
    rows = _by_id(rows) if isinstance(rows, dict) else rows
    if not isinstance(rows, list):
        lists = dict(_lists(record)) or _lists_and_maps(record)
        names = listed(list(lists)[: 2 * _LISTS_SHOWN])
        raise CollectionError(
            f"no list of documents {path!r}; the lists are: {names or 'none'}", field="records"
        )
    return rows


def _is_document(record: Mapping[str, Any], columns: Columns = PLAIN) -> bool:
    """Return whether an object has a title or text itself, under any name."""
    if any(has_path(record, name) for name in columns.names()):
        return True
    if record.get("type") == "FeatureCollection" and record.get("features"):
        return False  # but GeoJSON, which may have the name of a layer
    names = _plain_names(record)
    if not set(TEXT_NAMES).isdisjoint(names):
        return True
    has_id = bool(PLAIN.common("id", names))
    texts = [name.lower() for name in names if name.lower() in COMMON_NAMES["text"]]
    lists = dict(_lists(record))
    roles = [columns.common(role, names) for role in ("title", "text")]
    is_like = any(all(rows[0].keys() & role for role in roles) for rows in lists.values())
    # A board has cards with names such as its name and description; an issue has other comments.
    if len(lists) >= _LISTS_OF_EXPORT and (is_like or not (has_id and texts)):
        return False
    is_answer = not _ANSWER.isdisjoint(names) or ("status" in names and not has_id)
    if is_answer and texts == ["message"] and not (roles[0] or _RESULTS.isdisjoint(record)):
        return False  # whose message is no text
    if has_id and (texts or any(_has_text(record[name]) for name in _FIELDS.intersection(record))):
        return True  # such as an order with its items
    # A board has a title, a page a `page_text`, and an answer a message, but their rows are
    # documents; the comments of a post are none.
    with_texts = [name for name, rows in lists.items() if _has_texts(rows)]
    if any(not texts or name.rpartition(".")[2].lower() in _RESULTS for name in with_texts):
        return False
    return _has_title_or_text(names)


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
        has_id = bool(PLAIN.common("id", plain))
        if columns.names():
            if any(has_path(inner, name) for name in columns.names()):
                break
        elif _is_document(inner) and (
            has_id or (names[0] in _SINGLE and _has_title_or_text(plain))
        ):
            break
    is_whole = has_id and any(map(_has_text, (inner, *map(inner.get, _FIELDS))))
    for name, rows in _lists(record):
        is_results = _has_texts(rows) or name.rpartition(".")[2].lower() in _RESULTS
        if is_results and not is_whole and not name.startswith(path):
            return None
    return Layout([inner], [f"read the object {path[:-1]!r}"])


def _lists_and_maps(record: Mapping[str, Any], columns: Columns = PLAIN) -> dict[str, list[Any]]:
    """Return the rows of the lists in an object, and of objects with a document for each ID."""
    chosen = columns.names()
    maps = {
        path: rows
        for path, rows in _maps(record)
        if not chosen or any(has_path(rows[0], name) for name in chosen)
    }
    return maps | {
        name: rows
        for name, rows in _lists(record)
        if not any(name.startswith(f"{path}." if path else "") for path in maps)
    }


def _lists(content: Mapping[str, Any], outer: str = "") -> Iterator[tuple[str, list[Any]]]:
    """Yield the lists of objects in an object, with their paths; not those in lists."""
    for name, value in content.items():
        if isinstance(value, dict):
            yield from _lists(value, f"{outer}{name}.")
        elif isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
            yield f"{outer}{name}", value


def _are_texts(name: str, value: Any) -> bool:
    """Return whether a field of an object is a list of documents that are texts."""
    is_named = name.lower() in _RESULTS | {"sentences", "texts"}
    return is_named and isinstance(value, list) and all(isinstance(v, str) for v in value)


def _maps(
    record: Mapping[str, Any], path: str = "", is_bare: bool = True
) -> Iterator[tuple[str, list[Any]]]:
    """Yield the objects that have a document for each ID, with their paths.

    is_bare  whether nothing but objects is around: other IDs than numbers need that
    """
    objects = {name: value for name, value in record.items() if isinstance(value, dict)}
    is_bare = is_bare and len(objects) == len(record)
    rows = list(objects.values())
    are_alike = len(rows) > 1 and all(
        row.keys() == rows[0].keys() and _plain_names(row) for row in rows
    )
    are_documents = bool(rows) and all(map(_is_document, rows))
    if (is_bare and (are_alike or are_documents)) or (
        are_documents and all(map(str.isdecimal, objects))
    ):
        yield path, _by_id(objects) or []
        return
    if not path and len(record) > 1 and (texts := _texts_by_id(record)):
        yield path, texts
    for name, value in objects.items():
        yield from _maps(value, f"{path}.{name}".lstrip("."), is_bare)


def _by_id(content: Mapping[str, Any]) -> list[Any] | None:
    """Return the rows of an object of texts or objects by ID; None if it is something else."""
    if all(isinstance(row, dict) for row in content.values()):
        return [{"id": id_, **row} for id_, row in content.items()] or None
    return _texts_by_id(content)


def _texts_by_id(content: Mapping[str, Any]) -> list[Any] | None:
    are_texts = all(isinstance(value, str) for value in content.values())
    if not are_texts or not COMMON_NAMES["id"].isdisjoint(content):
        return None
    return [{"id": id_, "text": text} for id_, text in content.items()]


def _has_title_or_text(names: list[str]) -> bool:
    return any(PLAIN.common(role, names) for role in ("title", "text"))


def _has_text(record: Any) -> bool:
    return isinstance(record, dict) and bool(PLAIN.common("text", _plain_names(record)))


def _has_texts(rows: list[Any]) -> bool:
    """Return whether the first object of a list, or an object in it, has a text."""
    inner = [value for value in rows[0].values() if isinstance(value, dict)]
    return any(map(_has_text, [rows[0], *inner]))


def _plain_names(record: Mapping[str, Any]) -> list[str]:
    """Return the names of values that are not objects, unless these are a text, as in WordPress."""
    return [
        name
        for name, value in record.items()
        if not isinstance(value, dict) or any(inner in value for inner in NAMES_IN_TEXT)
    ]


def _amount_of_text(rows: list[Any]) -> tuple[bool, bool, int]:
    """Return whether rows, or objects in them, have texts by name, and characters of sentences."""
    has_texts = _has_texts(rows)
    return _has_text(rows[0]), has_texts, sum(map(_characters, rows))


def _characters(value: Any, levels: int = 20) -> int:
    """Return the number of characters in the texts of several words of a value."""
    if isinstance(value, str):
        return len(value) if " " in value.strip() else 0
    if not levels or not isinstance(value, dict | list):
        return 0
    elements = value.values() if isinstance(value, dict) else value
    return sum(_characters(element, levels - 1) for element in elements)
