"""Documents made of mappings and of rows of data frames."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass, replace
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from math import isfinite, isnan
from pathlib import PurePath
from typing import Any, Final
from uuid import UUID

from klsa_search.collection.line_ends import join_divided_words
from klsa_search.collection.model import Document
from klsa_search.collection.nested import flat, has_path, value_at, without_paths
from klsa_search.collection.vectors import VECTORS, without_vectors
from klsa_search.errors import BadDocument, CollectionError

ID_NAMES = ("_id", "id")
TEXT_NAMES = ("text", "contents")
_TITLES: Final = (
    *("asunto", "assunto", "betreff", "objet", "oggetto", "otsikko", "titel", "titolo", "titre"),
    *(
        "titulo",
        "título",
        "tytuł",
        "заголовок",
        "название",
        "件名",
        "标题",
        "標題",
        "タイトル",
        "제목",
    ),
)
_TEXTS: Final = (
    *("beschreibung", "contenido", "conteúdo", "contenu", "contenuto", "descripción", "descrição"),
    *("descrizione", "inhalt", "opis", "tekst", "teksti", "testo", "texte", "texto", "treść"),
    *("описание", "текст", "内容", "本文", "正文", "내용", "본문"),
)
COMMON_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "id": ("key", "uuid", "number", "objectid", "issue key", "guid"),
    "title": ("subject", "name", "headline", "summary", *_TITLES),
    "text": (
        "body",
        "description",
        "content",
        "message",
        "desc",
        "overview",
        "page_content",
        *_TEXTS,
    ),
}
"""Names of columns, in any case, that are used in a source without title and text."""


def listed(names: Iterable[str]) -> str:
    """Return names for a message."""
    return ", ".join(map(repr, names))


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Columns of a table, or names in JSON objects, that make a document; blank for the default."""

    id: str = ""
    title: str = ""
    text: tuple[str, ...] = ()

    @classmethod
    def of(cls, mapping: Mapping[str, str | Sequence[str]] | None) -> Columns:
        """Return the columns of a mapping; CollectionError for unknown names and other values."""
        columns = dict(mapping or {})
        texts = columns.get("text", ())
        if isinstance(texts, str):
            columns["text"] = texts = (texts,)
        for name, column_names in columns.items():
            values = texts if name == "text" else (column_names,)
            is_role = name in ("id", "title", "text")
            if not is_role or not all(isinstance(column, str) and column for column in values):
                raise CollectionError(
                    f"columns = {{{name!r}: {column_names!r}}} is not valid; give 'id' and "
                    "'title', each the name of a column, and 'text', one or "
                    "several",
                    field="columns",
                )
        named = {name: str(columns.get(name, "")) for name in ("id", "title")}
        return cls(**named, text=tuple(texts))

    def names(self) -> tuple[str, ...]:
        """Return all columns given."""
        return tuple(filter(None, (self.id, self.title, *self.text)))

    def as_mapping(self) -> dict[str, str | list[str]]:
        """Return the columns given, as `of` reads them."""
        columns: dict[str, str | list[str]] = {
            "id": self.id,
            "title": self.title,
            "text": list(self.text),
        }
        return {role: names for role, names in columns.items() if names}

    def id_in(self, names: Collection[str]) -> str | None:
        """Return the id column among these names; None without one."""
        return next((name for name in ((self.id,) if self.id else ID_NAMES) if name in names), None)

    def lacks(self, names: Iterable[str]) -> bool:
        """Return whether no column is named for titles and texts, nor has their own names."""
        return not (self.title or self.text or {"title", *TEXT_NAMES}.intersection(names))

    def refuse_without_text(self, names: Sequence[str], origin: str) -> None:
        """Raise CollectionError if no column is for titles or texts."""
        if not self.lacks(names):
            return
        step = ""
        if any(name.isdecimal() or (" " in name and name.endswith(".")) for name in names):
            step = "; if this line is a document, add one with the names of the columns"
        raise CollectionError(
            f"{origin}: no column 'title' or 'text' among {listed(names)}; name them (--title, "
            f"--text, in Python columns=){step}"
        )

    def common(self, role: str, names: Iterable[str]) -> list[str]:
        """Return the columns with a common name for "id", "title" or "text".

        A summary is a title, as in Jira, only without another one.
        """
        columns = [name for name in names if name.strip().lower() in COMMON_NAMES[role]]
        others = [name for name in columns if name.strip().lower() != "summary"]
        return others or columns

    def completed(self, names: Sequence[str], origin: str) -> Columns:
        """Return these columns, with common names if title and text are missing, or the text.

        CollectionError, which begins with `origin`, if there are several for one of them; beside a
        title, they are not used then.
        """
        if not self.lacks(names):
            return self._with_text(names).with_title(names)
        by_role = {role: self.common(role, names) for role in COMMON_NAMES}
        if not by_role["text"]:  # a summary alone may as well be any field
            by_role["title"] = [
                name for name in by_role["title"] if name.strip().lower() != "summary"
            ]
        if not (by_role["title"] or by_role["text"]):
            by_role |= _in_one_object(names)
        if self.id_in(names) is not None:
            by_role["id"] = []
        if not (by_role["title"] or by_role["text"]):
            return self
        for role, candidates in by_role.items():
            if len(candidates) > 1:
                options = " or ".join(f"--{role} {name}" for name in candidates)
                raise CollectionError(
                    f"{origin}: {' and '.join(map(repr, candidates))} could each be the {role}; "
                    f"choose with {options} (in Python columns=), and name the columns of ID, "
                    "title and text",
                    field="columns",
                )
        chosen = {role: candidates[0] for role, candidates in by_role.items() if candidates}
        return Columns.of(({"id": self.id} if self.id else {}) | chosen)

    def _with_text(self, names: Sequence[str]) -> Columns:
        """Return these columns, with the only common name for texts beside a column `title`."""
        texts, ids = self.common("text", names), self.common("id", names)
        texts = texts or _in_one_object(names).get("text", [])
        if self.title or self.text or len(texts) != 1 or set(TEXT_NAMES).intersection(names):
            return self
        id_ = ids[0] if len(ids) == 1 and self.id_in(names) is None else self.id
        return replace(self, id=id_, text=(texts[0],))

    def with_title(self, names: Collection[str]) -> Columns:
        """Return these columns, with the only title in another language beside a column `text`."""
        titles = [name for name in names if name.strip().lower() in _TITLES]
        has_title = "title" in (name.strip().lower() for name in names)
        if self.title or self.text or has_title or len(titles) != 1:
            return self
        return replace(self, title=titles[0])


def _in_one_object(names: Iterable[str]) -> dict[str, list[str]]:
    """Return the paths of ID, title and text if a single nested object has them, as `_source`."""
    objects: dict[str, dict[str, list[str]]] = {}
    for path in names:
        outer, dot, name = path.rpartition(".")
        if dot and name in ID_NAMES:
            objects.setdefault(outer, {}).setdefault("id", []).append(path)
        for role, role_names in (("title", ("title",)), ("text", TEXT_NAMES)) if dot else ():
            if name.lower() in role_names or name.lower() in COMMON_NAMES[role]:
                objects.setdefault(outer, {}).setdefault(role, []).append(path)
    with_text = [roles for roles in objects.values() if "text" in roles]
    if len(with_text) != 1:
        return {}
    roles = with_text[0]
    for role, role_names in (("title", ("title",)), ("text", TEXT_NAMES)):
        exact = [path for path in roles.get(role, ()) if path.rpartition(".")[2] in role_names]
        roles[role] = exact[:1] or roles.get(role, [])
    return roles


PLAIN: Final = Columns()
_TUPLES: Final = {2: ("id", "text"), 3: ("id", "title", "text")}
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
    title_name = columns.title or "title"
    text_names = columns.text
    if not text_names:
        text_names = (next((name for name in TEXT_NAMES if name in record), "text"),)
    taken = [title_name, *text_names, *([id_name] if number is None and id_name else [])]
    rest = without_paths(record, taken)
    inner = rest.get("metadata")
    if isinstance(inner, Mapping):
        del rest["metadata"]
        rest = {**inner, **rest}
    texts = [_string(record, name, origin, "\n") for name in text_names]
    return Document(
        id=_string(record, id_name or "", origin) if number is None else str(number),
        title=_string(record, title_name, origin, ", "),
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
        paths = ", ".join(f"{name}.{inner}" for inner in list(flat(value))[:3])
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
    names. A row of a database has `keys`.
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
        if not hasattr(row, "keys"):
            return None
        row = dict(row)
    return {name: value if name == VECTORS else json_value(value) for name, value in row.items()}


def records_by_id(source: Mapping[Any, Any]) -> Iterator[Any]:
    """Yield the rows of a mapping of IDs to texts or mappings."""
    for id_, value in source.items():
        yield {"id": id_, **value} if isinstance(value, Mapping) else (id_, value)


def is_frame(source: Any) -> bool:
    """Return whether a source is a data frame of pandas or polars, without importing either."""
    return hasattr(source, "columns") and _reader(source) is not None


def rows(frame: Any) -> Iterator[Mapping[str, Any]]:
    """Yield rows as mappings, one in memory at a time; missing values are None, dates ISO 8601."""
    reader = _reader(frame)
    assert reader is not None
    names = [str(name) for name in frame.columns]
    for row in reader():
        yield dict(zip(names, map(json_value, row), strict=True))


def _reader(frame: Any) -> Any:
    if hasattr(frame, "iter_rows"):  # polars
        return frame.iter_rows
    if hasattr(frame, "itertuples"):  # pandas
        return lambda: frame.itertuples(index=False, name=None)
    return None


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
