"""Options for reading a source, and the columns of a table or names in JSON for a document."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, Literal, Self, TypedDict

from pydantic import BeforeValidator, ConfigDict, Field, ValidationError

from klsa_search.core.parameters import SettingsGroup, Shown, first_fault
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
_SECOND_TEXTS: Final = frozenset(["abstract", "abstract note", "answer", "content_html"])
_SECOND: Final = _SECOND_TITLES | _SECOND_TEXTS
"""Names that are used only if there is no other, as a summary of Jira beside a title."""
COMMON_NAMES: Final[Mapping[str, frozenset[str]]] = {
    "id": frozenset(["key", "uuid", "number", "objectid", "issue key", "guid", "id_"]),
    "title": frozenset(["subject", "name", "headline"]) | _TITLES | _SECOND_TITLES,
    "text": _TEXTS | _SECOND_TEXTS,
}
"""Names of columns, in any case, that are used in a source without title and text."""

_BEFORE_TITLE: Final = frozenset(
    ["product", "item", "article", "book", "page", "post", "movie", "job", "recipe", "course"]
)
_BEFORE_TEXT: Final = frozenset(
    ["review", "product", "article", "post", "comment", "page", "message", "email", "job", "item",
     "full", "body"]
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

    def filled(self, names: Collection[str]) -> Columns:
        """Return the columns that are used of these names: those given, else the usual ones."""
        title = self.title or ("title" if "title" in names else "")
        usual = next(((name,) for name in TEXT_NAMES if name in names), ())
        return Columns(id=self.id_in(names) or "", title=title, text=self.text or usual)

    def lacks(self, names: Iterable[str]) -> bool:
        """Return whether no column is named for titles and texts, nor has their own names."""
        return not (self.title or self.text or {"title", *TEXT_NAMES}.intersection(names))

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
        names = list(names)
        columns = [name for name in names if name.strip().lower() in COMMON_NAMES[role]]
        if role == "text" and not columns and len(names) > 1:
            last = _TEXTS.union(TEXT_NAMES)
            columns = [name for name in names if _are_words(name, _BEFORE_TEXT, last)]
        return _first_choices(columns) or columns

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
        if not (by_role["title"] or by_role["text"]):
            by_role |= _in_one_object(names)
        elif by_role["text"] and not by_role["title"]:  # the only one such as `Product name`
            last = frozenset(["name", "title"])
            titles = [name for name in names if _are_words(name, _BEFORE_TITLE, last)]
            by_role["title"] = titles if len(titles) == 1 else []
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
    columns: Mapping[str, str | Sequence[str]] | None
    sections: bool
    encoding: str | None


def _patterns(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


class ReadingOptions(SettingsGroup):
    """Options for reading a source: values of `Reading`, checked, with the help of commands."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    format: Annotated[str | None, Shown(metavar="NAME", default="detected")] = Field(
        None, description="read SOURCE in this format"
    )
    on_error: OnError = Field(
        "stop", description="stop at a bad record or unreadable file, or skip and count it"
    )
    data: Any = Field(None, exclude=True)
    follow_links: bool = Field(False, description="follow symbolic links in a SOURCE folder")
    exclude: Annotated[tuple[str, ...], BeforeValidator(_patterns), Shown(metavar="GLOB")] = Field(
        (),
        description="leave out files and folders of a SOURCE folder or archive by a pattern as in "
        ".gitignore, such as *.log or drafts/; one that begins with ! reads what others leave out",
    )
    columns: Annotated[Columns, BeforeValidator(Columns.of)] = Field(PLAIN, exclude=True)
    sections: bool = Field(
        False,
        description="make one document of each section, page or chapter of the files in a folder",
    )
    encoding: Annotated[str | None, Shown(metavar="NAME", default="detected")] = Field(
        None, description="read CSV and texts in this encoding, such as cp1251 or shift_jis"
    )

    @classmethod
    def checked(cls, options: Mapping[str, Any]) -> Self:
        """Return the options of keyword arguments; CollectionError names the first invalid one."""
        try:
            return cls(**options)
        except ValidationError as error:
            message, field = first_fault(error, cls, "option")
            raise CollectionError(message, field=field) from None

    def stored(self) -> dict[str, Any]:
        """Return the options that are not defaults as JSON values, without `data`."""
        columns = {} if self.columns == PLAIN else {"columns": self.columns.as_mapping()}
        return self.model_dump(mode="json", exclude_defaults=True) | columns


DEFAULTS: Final = ReadingOptions()
