"""Mappings as documents and their changes, and what programs and data frames have as mappings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from math import isfinite
from typing import Any, Final

from klsa_search.collection.columns import COMMON_NAMES, ID_NAMES, PLAIN, Columns, may_name_ids
from klsa_search.collection.field_paths import flat, has_path, value_at, without_paths
from klsa_search.collection.json_values import json_value
from klsa_search.collection.model import Document
from klsa_search.collection.text_cleaning import join_divided_words
from klsa_search.collection.vectors import VECTORS, without_vectors
from klsa_search.errors import BadDocument, CollectionError

NAMES_IN_TEXT: Final = (
    "#text", "S", "content", "insert", "parts", "plain_text", "rendered", "stringValue", "text",
    "value",
)  # fmt: skip
"""Names in an object that is a text, as services, databases, chats and editors write them."""


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
    title = value_at(record, title_name) if title_name else None
    texts = [_string(value_at(record, name), name, origin, "\n") for name in text_names]
    return Document(
        id=_id(record, id_name or "", origin) if number is None else str(number),
        title=_string(title, title_name, origin, ", "),
        text=join_divided_words(
            texts[0] if len(texts) == 1 else "\n\n".join(filter(str.strip, texts))
        ),
        metadata=rest,
        origin=origin,
    )


def _string(value: Any, name: str, origin: str, separator: str | None = None) -> str:
    """Return a text or number of this name as text; CollectionError for anything else.

    separator  joins the texts of a list; None if a list is refused
    """
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        if isinstance(value, float) and not isfinite(value):
            raise CollectionError(
                f"{origin}: {name!r} is {value}, which is not valid in JSON; give "
                "text, or null (None in Python)"
            )
        try:
            return str(value)
        except ValueError:  # above the limit of `sys.set_int_max_str_digits`
            raise CollectionError(
                f"{origin}: {name!r} is a whole number with too many digits; give text"
            ) from None
    if separator is not None and isinstance(value, list | tuple):
        parts = [
            text_in(part) if isinstance(part, Mapping) else _string(part, name, origin)
            for part in value
        ]
        objects = [part for part in value if isinstance(part, Mapping)]
        if objects and not any(parts):
            return _string(objects[0], name, origin)  # raises the error of its fields
        return _joined(value, parts, separator)
    if isinstance(value, Mapping) and value:
        if text := text_in(value):
            return text
        paths = ", ".join(f"{name}.{inner}" for inner in list(flat(value))[:3])
        raise CollectionError(
            f"{origin}: {name!r} is an object, not a string; name one of its fields: {paths}"
        )
    step = "; decode it, as with .decode()" if isinstance(value, bytes) else ""
    raise CollectionError(f"{origin}: {name!r} is a {type(value).__name__}, not a string{step}")


def _id(record: Mapping[str, Any], name: str, origin: str) -> str:
    """Return an ID; of an object the only field that may be one, as in {"videoId": "a1"}."""
    value = value_at(record, name)
    if isinstance(value, Mapping) and not text_in(value):
        ids = [inner for path, inner in flat(value).items() if may_name_ids(path)]
        value = ids[0] if len(ids) == 1 else value
    return _string(value, name, origin)


def text_in(value: Mapping[str, Any], levels: int = 20) -> str:
    """Return the text of an object: that of its first field with one, at any depth; "" for none.

    Fields named for texts come first.

    >>> text_in({"type": "p", "content": [{"text": "It lea"}, {"text": "ks"}]})
    'It leaks'
    """
    fields = sorted(value.items(), key=lambda field: not _names_text(field[0]))
    texts = (_text_of(inner, name, value, levels) for name, inner in fields)
    return next(filter(str.strip, texts), "")


def _text_of(inner: Any, name: str, outer: Mapping[str, Any], levels: int) -> str:
    """Return the text of a field of an object; "" if it has none."""
    if isinstance(inner, str):
        return inner if _names_text(name) else ""
    if levels and isinstance(inner, Mapping):
        return text_in(inner, levels - 1)
    if levels and isinstance(inner, list | tuple):
        texts = [_text_of(element, name, outer, levels - 1) for element in inner]
        is_content = _names_text(name) or name in ("children", "elements")
        return _joined(inner, texts, "\n", in_block=is_content and not _TYPES.isdisjoint(outer))
    return ""


def _names_text(name: str) -> bool:
    return name in NAMES_IN_TEXT or name.lower() in NAMES_IN_TEXT


_TYPES: Final = frozenset(["_type", "nodeType", "type"])
"""Names of the type of a block of a rich text, such as a paragraph."""


def _joined(
    elements: Sequence[Any], texts: Sequence[str], separator: str, *, in_block: bool = False
) -> str:
    """Return the texts of the elements of a list as one, without a separator between runs.

    Runs are parts of a line in a rich text: those of Quill, Notion and Telegram, or objects with
    texts of their own in a block. One without a text, such as a picture, ends the line.
    """
    pairs = [(element, text) for element, text in zip(elements, texts, strict=True) if text]
    objects = [element for element, _ in pairs if isinstance(element, Mapping)]
    names = {name for element in objects for name in element if isinstance(element[name], str)}
    if (
        0 < len(objects) < len(pairs)
        or not {"insert", "plain_text"}.isdisjoint(names)
        or (in_block and any(map(_names_text, names)))
    ):
        return "".join(text or "\n" for text in texts).strip("\n")
    return separator.join(filter(str.strip, texts))


def with_messages(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a conversation of ChatGPT with a list of its messages, others as they are.

    >>> with_messages({"mapping": {"a": {"id": "a", "message": None}}})
    {'mapping': [{'id': 'a', 'message': None}]}
    """
    nodes = record.get("mapping")
    if isinstance(nodes, Mapping) and all(
        isinstance(node, Mapping) and node.get("id") == id_ for id_, node in nodes.items()
    ):
        return {**record, "mapping": list(nodes.values())}
    return record


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
            title=_string(parts["title"], "title", origin),
            text=join_divided_words(_string(parts["text"], "text", origin)),
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
    if _is_one_document(source):
        yield source
        return
    for id_, value in source.items():
        yield {"id": id_, **value} if isinstance(value, Mapping) else (id_, value)


def _is_one_document(source: Mapping[Any, Any]) -> bool:
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
