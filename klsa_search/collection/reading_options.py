"""Options for reading a source, and the columns of a table or names in JSON for a document."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from types import NoneType
from typing import Any, Final, Literal, Self, TypedDict, get_args

from klsa_search.core.arguments import name_of
from klsa_search.errors import CollectionError

ID_NAMES = ("_id", "id")
TEXT_NAMES = ("text", "contents")
_TITLES: Final = frozenset(
    re.findall(
        r"\S+",
        "asunto assunto başlık betreff cím judul naslov názov název objet oggetto onderwerp "
        "otsikko predmet předmět rubrik subiect titel titlu titolo titre titulo título tytuł "
        "tárgy ämne τίτλος θέμα заголовок назва название כותרת נושא العنوان الموضوع عنوان शीर्षक "
        "หัวข้อ 主题 主題 件名 标题 標題 タイトル 제목",
    )
)
_TEXTS: Final = frozenset(
    re.findall(
        r"\S+",
        "body description content content_text message desc overview page_content açıklama "
        "beschreibung "
        "beskrivelse beskrivning contenido conteúdo contenu contenuto deskripsi descriere "
        "descripción descrição descrizione inhalt innehåll kuvaus leírás obsah omschrijving opis "
        "popis tekst teksti testo texte texto treść içerik κείμενο περιγραφή опис описание текст "
        "תוכן תיאור الوصف النص متن 内容 內容 本文 正文 내용 본문",
    )
)
_SECOND_TITLES: Final = frozenset(
    ["emne", "konu", "question", "short description", "short_description", "summary",
     "tema", "тема"]
)  # fmt: skip
_SECOND_TEXTS: Final = (
    "abstract note", "abstract", "answer", "full_text", "passage", "selftext", "transcript",
    "content_html", "body_html", "encoded", "notes",
)  # fmt: skip
"""Names of which the first is used, as `notes` beside an abstract are about it."""
_SECOND_IDS: Final = frozenset(
    ["corpusid", "custom_id", "doc_id", "docid", "docno", "document_id", "pmid"]
)
_SECOND: Final = _SECOND_TITLES.union(_SECOND_TEXTS, _SECOND_IDS)
"""Names that are used only if there is no other, as a summary of Jira beside a title."""
COMMON_NAMES: Final[Mapping[str, frozenset[str]]] = {
    "id": frozenset(["key", "uuid", "number", "objectid", "issue key", "guid", "id_"])
    | _SECOND_IDS,
    "title": frozenset(["subject", "name", "headline"]) | _TITLES | _SECOND_TITLES,
    "text": _TEXTS.union(_SECOND_TEXTS),
}
"""Names of columns, in any case, that are used in a source without title and text."""

_BEFORE_TITLE: Final = frozenset(
    ["product", "item", "article", "book", "page", "post", "movie", "job", "recipe", "course",
     "card", "task", "event", "ticket", "case", "issue", "document", "song"]
)  # fmt: skip
_BEFORE_TEXT: Final = frozenset(
    ["review", "product", "article", "post", "comment", "page", "message", "email", "job", "item",
     "full", "body", "card", "task", "event", "ticket", "case", "issue", "document", "note", "text"]
)  # fmt: skip
"""First of two words of which the second is a name for titles or texts: not user or file name."""
_WORD_END: Final = re.compile(r"[\s_-]+|(?<=[a-z])(?=[A-Z])")

_ID: Final = re.compile(
    r"(?i:(?:.*[\s_-])?(?:id|nos?\.?|nr\.?|num\.?|number|nummer|key|sku|#|№)"
    r"|.+(?:#|nummer|nr\.?))|.*[a-z]I[dD]"
)


def may_name_ids(name: str) -> bool:
    """Return whether a column may have IDs by its name.

    >>> [name for name in ("Ticket ID", "orderId", "Artikelnr.", "Part #") if may_name_ids(name)]
    ['Ticket ID', 'orderId', 'Artikelnr.', 'Part #']
    >>> may_name_ids("paid"), may_name_ids("Nummernschild")
    (False, False)
    """
    return _ID.fullmatch(name.strip()) is not None


def option(name: str, value: str) -> str:
    """Return an option with its value as messages write it, which commands take.

    >>> option("text", "Full text")
    "--text 'Full text'"
    """
    return f"--{name} {shlex.quote(value)}"


_QUOTED: Final = r"'(?:[^']|'\"'\"')+'"  # as shlex quotes
_OPTION: Final = re.compile(
    r"(?<![^\s(])--(id|title|text|format|encoding|records|sections)(?![\w-])"
    rf"(?: ({_QUOTED}|[\w@%+=:,./-]*[\w@%+=:/-]))?",
    re.ASCII,
)
_IN_PYTHON: Final = re.compile(r" \((?:in Python \w+=|None in Python)\)|, in Python \w+=")


def with_parameters(message: str) -> str:
    """Return a message about reading with options as the parameters that HTTP has for them.

    >>> with_parameters("choose --title 'Full name' or --title Name (in Python columns=)")
    'choose title=Full name or title=Name'
    >>> with_parameters("name them (--title, --text, in Python columns=)")
    'name them (title, text)'
    >>> with_parameters("page--text.csv: the id 'my--id' is used before")
    "page--text.csv: the id 'my--id' is used before"
    """

    def parameter(match: re.Match[str]) -> str:
        name, value = match.groups()
        return name if value is None else f"{name}={shlex.split(value)[0]}"

    return _OPTION.sub(parameter, _IN_PYTHON.sub("", message))


def listed(names: Iterable[str]) -> str:
    """Return names for a message."""
    return ", ".join(map(repr, names))


ColumnsLike = Mapping[str, str | Sequence[str] | None]
"""Columns by role: "id", "title" and "text"; None if no column has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Columns of a table, or names in JSON objects, that make a document; blank for the default.

    unused  roles that no column has, whatever its name: "id", "title", "text"
    """

    id: str = ""
    title: str = ""
    text: tuple[str, ...] = ()
    unused: frozenset[str] = frozenset()

    @classmethod
    def of(cls, mapping: ColumnsLike | None) -> Columns:
        """Return the columns of a mapping; CollectionError for unknown names and other values."""
        if not isinstance(mapping, Mapping | None):
            raise CollectionError(
                f"columns = {mapping!r} is not valid; give a mapping, as {{'text': 'body'}}",
                field="columns",
            )
        columns = dict(mapping or {})
        texts = columns.get("text", ())
        texts = (texts,) if isinstance(texts, str) else texts or ()
        unused = frozenset(role for role, names in columns.items() if names is None)
        for name, column_names in columns.items():
            values = texts if name == "text" else (column_names,)
            is_valid = all(isinstance(column, str) and column for column in values)
            if name not in ("id", "title", "text") or not (is_valid or name in unused):
                raise CollectionError(
                    f"columns = {{{name!r}: {column_names!r}}} is not valid; give 'id' and "
                    "'title', each the name of a column, and 'text', one or "
                    "several, or None for none",
                    field="columns",
                )
        named = {name: str(columns.get(name) or "") for name in ("id", "title")}
        return cls(**named, text=tuple(texts), unused=unused)

    def role_of(self, name: str) -> str:
        """Return the role of a column given."""
        return {self.id: "id", self.title: "title"}.get(name, "text")

    def names(self) -> tuple[str, ...]:
        """Return all columns given."""
        return tuple(filter(None, (self.id, self.title, *self.text)))

    def as_mapping(self) -> dict[str, str | list[str] | None]:
        """Return the columns given, as `of` reads them."""
        columns: dict[str, str | list[str] | None] = dict.fromkeys(sorted(self.unused))
        named = (("id", self.id), ("title", self.title), ("text", list(self.text)))
        return columns | {role: names for role, names in named if names}

    def id_in(self, names: Collection[str]) -> str | None:
        """Return the id column among these names; None without one."""
        return self._first("id", (self.id,) if self.id else ID_NAMES, names)

    def title_in(self, names: Collection[str]) -> str:
        """Return the column of titles: that given, else the usual one among these names, or ""."""
        return self.title or self._first("title", ("title",), names) or ""

    def texts_in(self, names: Collection[str]) -> tuple[str, ...]:
        """Return the columns of texts: those given, else the usual one among these names."""
        usual = self._first("text", TEXT_NAMES, names)
        return self.text or tuple(filter(None, [usual]))

    def _first(self, role: str, usual: Sequence[str], names: Collection[str]) -> str | None:
        """Return the first usual name of a role that is among these names, unless it is unused."""
        return next((n for n in usual if n in names and role not in self.unused), None)

    def filled(self, names: Collection[str]) -> Columns:
        """Return the columns that are used of these names: those given, else the usual ones."""
        return Columns(
            id=self.id_in(names) or "", title=self.title_in(names), text=self.texts_in(names)
        )

    def lacks(self, names: Collection[str]) -> bool:
        """Return whether no column is named for titles and texts, nor has their own names."""
        return not (self.title_in(names) or self.texts_in(names))

    def refuse_without_text(self, names: Sequence[str], origin: str, step: str = "") -> None:
        """Raise CollectionError if no column is for titles or texts; `step` ends its message."""
        if self.lacks(names):
            raise CollectionError(
                f"{origin}: no column 'title' or 'text' among {listed(names)}; name them (--title, "
                f"--text, in Python columns=){step}"
            )

    def common(self, role: str, names: Iterable[str]) -> list[str]:
        """Return the columns with a common name for "id", "title" or "text".

        For texts, else those of two words such as `review_text`.
        """
        names = [] if role in self.unused else list(names)
        columns = [name for name in names if name.strip().lower() in COMMON_NAMES[role]]
        if role == "text" and not columns and len(names) > 1:
            last = _TEXTS.union(TEXT_NAMES)
            columns = [name for name in names if _are_words(name, _BEFORE_TEXT, last)]
        first = _first_choices(columns)
        if first or role != "text":
            return first or columns
        return sorted(columns, key=lambda name: _SECOND_TEXTS.index(name.strip().lower()))[:1]

    def completed(self, names: Sequence[str], origin: str) -> Columns:
        """Return these columns, with common names if title and text are missing, or the text.

        CollectionError, which begins with `origin`, if there are several for one of them; beside a
        title, they are not used then.
        """
        if not self.lacks(names):
            return self._with_text(names).with_title(names)
        by_role = {role: self.common(role, names) for role in COMMON_NAMES}
        if not by_role["text"]:  # a summary alone may as well be any field
            by_role["title"] = _first_choices(by_role["title"])
        nested = {} if by_role["text"] else _in_one_object(names)
        if nested.get("text") or not (by_role["title"] or by_role["text"]):
            by_role |= nested
        elif by_role["text"] and not by_role["title"]:  # the only one such as `Product name`
            last = frozenset(["name", "title"])
            titles = [name for name in names if _are_words(name, _BEFORE_TITLE, last)]
            by_role["title"] = titles if len(titles) == 1 else []
        if self.id_in(names) is not None:
            by_role["id"] = []
        by_role |= {role: [] for role in self.unused}
        if not (by_role["title"] or by_role["text"]):
            return self
        for role, candidates in by_role.items():
            if len(candidates) > 1:
                options = " or ".join(option(role, name) for name in candidates)
                raise CollectionError(
                    f"{origin}: {' and '.join(map(repr, candidates))} could each be the {role}; "
                    f"choose with {options} (in Python columns=), and name the columns of ID, "
                    "title and text",
                    field=f"columns.{role}",
                )
        chosen: dict[str, Any] = {role: names[0] for role, names in by_role.items() if names}
        if "text" in chosen:
            chosen["text"] = (chosen["text"],)
        return replace(self, **chosen)

    def _with_text(self, names: Sequence[str]) -> Columns:
        """Return these columns, with the only common name for texts beside a column `title`."""
        texts, ids = self.common("text", names), self.common("id", names)
        texts = texts or _in_one_object(names).get("text", [])
        is_chosen = self.title or self.texts_in(names) or "text" in self.unused
        if is_chosen or len(texts) != 1:
            return self
        id_ = ids[0] if len(ids) == 1 and self.id_in(names) is None else self.id
        return replace(self, id=id_, text=(texts[0],))

    def with_title(self, names: Collection[str]) -> Columns:
        """Return these columns, with the only title in another language beside a column `text`."""
        titles = [name for name in names if name.strip().lower() in _TITLES]
        has_title = "title" in (name.strip().lower() for name in names)
        is_chosen = self.title or self.text or "title" in self.unused
        if is_chosen or has_title or len(titles) != 1:
            return self
        return replace(self, title=titles[0])


def _first_choices(names: Iterable[str]) -> list[str]:
    """Return names without those that are used only if there is no other."""
    return [name for name in names if name.strip().lower() not in _SECOND]


def _are_words(name: str, first: Collection[str], last: Collection[str]) -> bool:
    """Return whether a name has two words, each among those, in any case; a path has none."""
    words = [] if "." in name else _WORD_END.split(name.strip())
    return len(words) == 2 and words[0].lower() in first and words[1].lower() in last


def _in_one_object(names: Iterable[str]) -> dict[str, list[str]]:
    """Return the paths of ID, title and text of the only nested object with them, as `_source`.

    Of several, the outermost counts.
    """
    objects: dict[str, dict[str, list[str]]] = {}
    for path in names:
        outer, dot, name = path.rpartition(".")
        if dot and name in ID_NAMES:
            objects.setdefault(outer, {}).setdefault("id", []).append(path)
        for role, role_names in (("title", ("title",)), ("text", TEXT_NAMES)) if dot else ():
            if name.lower() in role_names or name.lower() in COMMON_NAMES[role]:
                objects.setdefault(outer, {}).setdefault(role, []).append(path)
    with_text = [outer for outer, roles in objects.items() if "text" in roles]
    if not with_text and {"geometry", "properties"}.issubset(names):
        with_text = ["properties"] if "properties" in objects else []  # of GeoJSON: a name alone
    depth = min((outer.count(".") for outer in with_text), default=0)
    outermost = [outer for outer in with_text if outer.count(".") == depth]
    if len(outermost) != 1:
        return {}
    roles = objects[outermost[0]]
    for role, role_names in (("title", ("title",)), ("text", TEXT_NAMES)):
        exact = [path for path in roles.get(role, ()) if path.rpartition(".")[2] in role_names]
        roles[role] = exact[:1] or roles.get(role, [])
    return roles


PLAIN: Final = Columns()
"""The columns of the usual names."""


PathLike = str | os.PathLike[str]
Folders = PathLike | Iterable[PathLike]
OnError = Literal["stop", "skip"]


FormatName = Literal[
    "csv", "json", "jsonl", "parquet", "references", "smart", "text", "trec", "tsv", "xlsx", "xml"
]
"""Name of a format that a file may have."""
FORMATS: Final = ("beir", *get_args(FormatName))
"""Names of all formats; beir is a folder."""


class Reading(TypedDict, total=False):
    """Keyword arguments of `open_collection` for reading a source, to be passed as `**reading`.

    >>> lenient: Reading = {"format": "jsonl", "on_error": "skip"}
    >>> len(list(open_collection("reports.jsonl", **lenient).documents()))
    6
    """

    format: str | None
    on_error: OnError
    data: Folders | None
    follow_links: bool
    exclude: str | Sequence[str]
    columns: ColumnsLike | None
    sections: bool
    encoding: str | None
    records: str | None


_TYPES: Final[Mapping[str, tuple[tuple[type, ...], str]]] = {
    "follow_links": ((bool,), name_of(bool)),
    "sections": ((bool,), name_of(bool)),
    "encoding": ((str, NoneType), name_of(str)),
    "records": ((str, NoneType), "the path of a list, such as data.cards"),
}
"""Types of options, and what to give, for a message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingOptions:
    """Options for reading a source: values of `Reading`, checked."""

    format: str | None = None
    on_error: OnError = "stop"
    data: Folders | None = None
    follow_links: bool = False
    exclude: tuple[str, ...] = ()
    columns: Columns = PLAIN
    sections: bool = False
    encoding: str | None = None
    records: str | None = None

    @classmethod
    def checked(cls, options: Mapping[str, Any]) -> Self:
        """Return the options of keyword arguments; CollectionError names the first invalid one."""
        names = [field.name for field in fields(cls)]
        options = {n: list(v) if isinstance(v, Iterator) else v for n, v in options.items()}
        for name, value in options.items():
            if name not in names:
                listed_names = ", ".join(sorted(names))
                fault = f"unknown option {name!r}; the options are: {listed_names}"
            elif name == "format" and value not in (None, *FORMATS):
                fault = f"unknown format {value!r}; the formats are: {', '.join(FORMATS)}"
            elif name == "on_error" and value not in get_args(OnError):
                fault = f"on_error = {value!r} is not valid; give 'stop' or 'skip'"
            elif name in _TYPES and not isinstance(value, _TYPES[name][0]):
                fault = f"{name} = {value!r} is not valid; give {_TYPES[name][1]}"
            elif name == "exclude" and not _are_all(value, (str,)):
                fault = f"exclude = {value!r} is not valid; give a pattern or a list of them"
            elif name == "data" and value is not None and not _are_all(value, (str, os.PathLike)):
                fault = f"data = {value!r} is not valid; give a folder or a list of them"
            else:
                continue
            raise CollectionError(fault, field=name)
        exclude = options.get("exclude", ())
        exclude = (exclude,) if isinstance(exclude, str) else tuple(exclude)
        return cls(**{**options, "exclude": exclude, "columns": Columns.of(options.get("columns"))})

    def stored(self) -> dict[str, Any]:
        """Return the options that are not defaults as JSON values, without `data`."""
        changed = {
            name: getattr(self, name)
            for name in ("format", "on_error", "follow_links", "sections", "encoding", "records")
            if getattr(self, name) != getattr(DEFAULTS, name)
        }
        if self.exclude:
            changed["exclude"] = list(self.exclude)
        if self.columns != PLAIN:
            changed["columns"] = self.columns.as_mapping()
        return changed


def _are_all(value: Any, types: tuple[type, ...]) -> bool:
    """Return whether a value has one of these types, or all its elements do."""
    values = value if isinstance(value, Collection) else [value]
    return all(isinstance(element, types) for element in values)


DEFAULTS: Final = ReadingOptions()
