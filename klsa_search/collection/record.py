"""One mapping to one document: the rules shared by JSON lines, tables and Python objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from klsa_search.collection.model import Document
from klsa_search.errors import CollectionError

ID_NAMES = ("_id", "id")
TEXT_NAMES = ("text", "contents")


def as_document(record: Mapping[str, Any], origin: str = "document") -> Document:
    """Make a document of a mapping with `_id` or `id`, `title`, `text`; the rest is metadata.

    `_id` wins over `id`; `contents` stands in where there is no `text`. Numbers become strings,
    null is empty, and neither title nor text is needed. A mapping under `metadata` (BEIR) is
    flattened into the metadata; a name outside wins over the same name inside. `origin` is
    "file:line"; a CollectionError begins with it.
    """
    id_name = next((name for name in ID_NAMES if name in record), None)
    if id_name is None:
        raise CollectionError(f"{origin}: neither '_id' nor 'id' is there")
    text_name = next((name for name in TEXT_NAMES if name in record), "text")
    rest = {key: value for key, value in record.items() if key not in (id_name, "title", text_name)}
    inner = rest.get("metadata")
    if isinstance(inner, Mapping):
        del rest["metadata"]
        rest = {**inner, **rest}
    return Document(
        id=_string(record, id_name, origin),
        title=_string(record, "title", origin),
        text=_string(record, text_name, origin),
        metadata=rest,
        origin=origin,
    )


def _string(record: Mapping[str, Any], name: str, origin: str) -> str:
    value = record.get(name)
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise CollectionError(f"{origin}: {name!r} is a {type(value).__name__}, not a string")
