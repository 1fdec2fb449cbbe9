"""Documents made of mappings, and changes of documents."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any, Final

from klsa_search.collection.field_paths import flat, has_path, value_at, without_paths
from klsa_search.collection.json_values import json_value
from klsa_search.collection.model import Document
from klsa_search.collection.reading_options import ID_NAMES, PLAIN, Columns, may_name_ids
from klsa_search.collection.text_cleaning import join_divided_words
from klsa_search.collection.vectors import without_vectors
from klsa_search.errors import BadDocument, CollectionError

TEXT_OF_OBJECT: Final = ("#text", "S", "rendered", "text", "value")
"""Names of the text of an object that is a title or text, as DynamoDB and WordPress write them."""
_HAS_TEXT: Final = re.compile(
    r"#text|S|insert|parts|rendered|(?:\w*(?:_|(?<=[a-z])(?=[A-Z])))?(?i:content|text|value)"
)
"""Names of the texts in an object, as Jira, Teams, Notion, OpenAI and editors write them."""


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
        id=_id(record, id_name or "", origin) if number is None else str(number),
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
        parts = [
            text_in(part) if isinstance(part, Mapping) else _string({name: part}, name, origin)
            for part in value
        ]
        return separator.join(filter(str.strip, parts))
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
    return _string({name: value}, name, origin)


def text_in(value: Mapping[str, Any]) -> str:
    r"""Return the text of an object, which fields of usual names have at any depth; "" for none.

    Pieces are joined by line ends, unless there is a blank between them.

    >>> text_in({"type": "p", "content": [{"text": "It "}, {"text": "leaks"}, {"text": "oil"}]})
    'It leaks\noil'
    """
    pieces: list[str] = []
    for piece in filter(None, _pieces(value)):
        if pieces and piece == pieces[-1]:  # Notion repeats the text of an object without its marks
            continue
        if pieces and not (pieces[-1][-1].isspace() or piece[0].isspace()):
            pieces.append("\n")
        pieces.append(piece)
    return "".join(pieces)


def _pieces(value: Mapping[str, Any], levels: int = 20) -> Iterator[str]:
    for name, inner in value.items():
        for element in inner if isinstance(inner, list | tuple) else [inner]:
            if isinstance(element, Mapping) and levels:
                yield from _pieces(element, levels - 1)
            elif isinstance(element, str) and _HAS_TEXT.fullmatch(name):
                yield element


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
