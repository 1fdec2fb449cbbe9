"""Columns of a table, or names in JSON objects, that are the ID, title and text of a document.

Given columns win over usual names, and these over common ones such as `subject`. If no column has a
name for texts, those with prose are the texts.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from klsa_search.collection.field_paths import flat, value_at
from klsa_search.collection.vectors import without_vectors
from klsa_search.core.wording import words
from klsa_search.errors import CollectionError

ID_NAMES: Final = ("_id", "id")
TEXT_NAMES: Final = ("text", "contents")
_USUAL: Final = {"id": ID_NAMES, "title": ("title",), "text": TEXT_NAMES}
USUAL_NAMES: Final = (*ID_NAMES, "title", *TEXT_NAMES)
_TITLES: Final = words(
    "asunto assunto başlık betreff cím judul naslov názov název objet oggetto onderwerp "
    "otsikko predmet předmět rubrik subiect titel titlu titolo titre titulo título tytuł "
    "tárgy ämne τίτλος θέμα заголовок назва название כותרת נושא العنوان الموضوع عنوان "
    "शीर्षक หัวข้อ 主题 主題 件名 标题 標題 タイトル 제목"
)
_TEXTS: Final = words(
    "body description content content_text message desc overview page_content açıklama "
    "beschreibung beskrivelse beskrivning contenido conteúdo contenu contenuto deskripsi "
    "descriere descripción descrição descrizione inhalt innehåll kuvaus leírás obsah "
    "omschrijving opis popis tekst teksti testo texte texto treść içerik κείμενο περιγραφή "
    "опис описание текст תוכן תיאור الوصف النص متن 内容 內容 本文 正文 내용 본문"
)
_SECOND: Final[Mapping[str, Sequence[str]]] = {
    "id": ("corpusid", "custom_id", "doc_id", "docid", "docno", "document_id", "pmid"),
    "title": (
        "emne", "konu", "question", "resumen", "resumo", "résumé", "short description",
        "short_description", "summary", "tema", "zusammenfassung", "тема", "要約",
    ),
    "text": (
        "abstract note", "abstract", "answer", "full_text", "passage", "selftext", "transcript",
        "content_html", "body_html", "body (html)", "encoded", "notes",
    ),
}  # fmt: skip
"""Names that are used only if there is no other, as a summary of Jira beside a title. Of texts the
first is used, as `notes` beside an abstract are about it.
"""
COMMON_NAMES: Final[Mapping[str, frozenset[str]]] = {
    "id": frozenset(
        [*ID_NAMES, "key", "uuid", "number", "objectid", "issue key", "guid", "id_", *_SECOND["id"]]
    ).union(["clave de incidencia", "clé de ticket", "schlüssel", "vorgangsschlüssel", "課題キー"]),
    "title": _TITLES.union(["title", "subject", "name", "headline"], _SECOND["title"]),
    "text": _TEXTS.union(TEXT_NAMES, _SECOND["text"]),
}
"""Names of columns, in any case, that are used in a source without title and text."""
_THINGS: Final = words(
    "article book card case comment course document event issue item job message movie note "
    "page post product recipe review song task ticket"
)
_TWO_WORDS: Final = {
    "title": (_THINGS, frozenset(["name", "title"])),
    "text": (_THINGS | {"body", "email", "full", "text"}, _TEXTS.union(TEXT_NAMES)),
}
"""First and second word of other names for titles and texts: not user or file name."""
_WORD_END: Final = re.compile(r"[\s_-]+|(?<=[a-z])(?=[A-Z])")
_ID: Final = re.compile(
    r"(?i:(?:.*[\s_-])?(?:id|nos?\.?|nr\.?|num\.?|number|nummer|n[°º]|n[uú]mero|numéro|key|sku|#|№)"
    r"|.+(?:#|nummer|nr\.?)|.*(?:номер|番号|编号|編號|번호))|.*[a-z]I[dD]"
)


def may_name_ids(name: str) -> bool:
    """Return whether a column may have IDs by its name.

    >>> [name for name in ("Ticket ID", "orderId", "Artikelnr.", "N°") if may_name_ids(name)]
    ['Ticket ID', 'orderId', 'Artikelnr.', 'N°']
    >>> may_name_ids("paid"), may_name_ids("Nummernschild")
    (False, False)
    """
    return _ID.fullmatch(name.strip()) is not None


_WORDS_OF_CODES: Final = words(
    "barcode ean fax gtin handy isbn issn mobile phone plz postcode release releases revision "
    "tel telefon telephone téléphone upc version versions zip zipcode"
)
_WORDS_OF_VERSIONS: Final = frozenset([
    "java", "node", "nodejs", "php", "python", "release", "releases", "revision", "ruby", "version",
    "versions",
])  # fmt: skip
_SKIPPED_WORDS: Final = frozenset(["", "code", "codes", "id", "name", "no", "nr", "num", "number"])


def names_codes(name: str) -> bool:
    """Return whether the digits of a field are no quantity by its name: an ID, a telephone number.

    >>> [name for name in ("phone 2", "Postal_PLZ", "appVersion", "zip_code") if names_codes(name)]
    ['phone 2', 'Postal_PLZ', 'appVersion', 'zip_code']
    >>> names_codes("price"), names_codes("phone_price")
    (False, False)
    """
    return may_name_ids(name) or _last_word(name) in _WORDS_OF_CODES


def names_versions(name: str) -> bool:
    """Return whether the values of a field may be versions by its name: 1.10 is not 1.1 then."""
    return _last_word(name) in _WORDS_OF_VERSIONS


def _last_word(name: str) -> str:
    """Return the last word of a name in lower case, but for `code`, `number` or digits after it."""
    words = [word.lower() for word in _WORD_END.split(re.sub(r"[^\w\s-]", " ", name))]
    return next((w for w in reversed(words) if w.strip("0123456789") not in _SKIPPED_WORDS), "")


def option(name: str, value: str) -> str:
    """Return an option with its value as messages write it, which commands take.

    >>> option("text", "Full text")
    "--text 'Full text'"
    """
    return f"--{name} {shlex.quote(value)}"


_LISTED: Final = 40  # names in a message, at most


def listed(names: Iterable[str]) -> str:
    """Return names for a message, the first ones if there are very many."""
    names = list(names)
    more = f" and {len(names) - _LISTED:,} more" if len(names) > _LISTED else ""
    return ", ".join(map(repr, names[:_LISTED])) + more


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
        for role, names in columns.items():
            values = texts if role == "text" else (names,)
            is_valid = all(isinstance(name, str) and name for name in values)
            if role not in _USUAL or not (is_valid or role in unused):
                raise CollectionError(
                    f"columns = {{{role!r}: {names!r}}} is not valid; give 'id' and 'title', each "
                    "the name of a column, and 'text', one or several, or None for none",
                    field="columns",
                )
        id_, title = (str(columns.get(role) or "") for role in ("id", "title"))
        return cls(id=id_, title=title, text=tuple(texts), unused=unused)

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
        if self.id:
            return self.id if self.id in names else None
        return self._usual("id", names)

    def title_in(self, names: Collection[str]) -> str:
        """Return the column of titles: that given, else the usual one among these names, or ""."""
        return self.title or self._usual("title", names) or ""

    def texts_in(self, names: Collection[str]) -> tuple[str, ...]:
        """Return the columns of texts: those given, else the usual one among these names."""
        usual = self._usual("text", names)
        return self.text or ((usual,) if usual else ())

    def _usual(self, role: str, names: Collection[str]) -> str | None:
        usual = () if role in self.unused else _USUAL[role]
        return next((name for name in usual if name in names), None)

    def filled(self, names: Collection[str]) -> Columns:
        """Return the columns that are used of these names: those given, else the usual ones."""
        return Columns(
            id=self.id_in(names) or "", title=self.title_in(names), text=self.texts_in(names)
        )

    def lacks(self, names: Collection[str]) -> bool:
        """Return whether no column is named for titles and texts, nor has their own names."""
        return not (self.title_in(names) or self.texts_in(names))

    def common(self, role: str, names: Iterable[str]) -> list[str]:
        """Return the columns with a common name for "id", "title" or "text".

        For texts, else those of two words such as `review_text`.
        """
        names = [] if role in self.unused else list(names)
        columns = [name for name in names if name.strip().lower() in COMMON_NAMES[role]]
        if role == "text" and not columns and len(names) > 1:
            columns = _of_two_words(role, names)
        second = _SECOND[role]
        first = [name for name in columns if name.strip().lower() not in second]
        if first or role != "text":
            return first or columns
        return sorted(columns, key=lambda name: second.index(name.strip().lower()))[:1]

    def completed(self, names: Sequence[str], origin: str) -> Columns:
        """Return these columns, with common names if title and text are missing, or the text.

        CollectionError, which begins with `origin`, if there are several for one of them; beside a
        title, they are not used then.
        """
        if not self.lacks(names):
            columns = self._with_text(names).with_title(names)
            ids = [name for name in names if name.strip().lower() in ID_NAMES]
            is_chosen = columns.id_in(names) or columns.id or "id" in self.unused
            return columns if is_chosen or len(ids) != 1 else replace(columns, id=ids[0])
        by_role = {role: self.common(role, names) for role in COMMON_NAMES}
        if by_role["text"]:
            titles = by_role["title"] or _of_two_words("title", names)
            by_role["title"] = titles if by_role["title"] or len(titles) == 1 else []
        else:  # a summary alone may as well be any field
            second = _SECOND["title"]
            titles = [name for name in by_role["title"] if name.strip().lower() not in second]
            by_role["title"] = titles
            nested = _in_one_object(names)
            if nested.get("text") or not titles:
                by_role |= nested
        by_role |= {role: [] for role in self.unused}
        if self.id_in(names) is not None:
            by_role["id"] = []
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
        chosen: dict[str, Any] = {role: columns[0] for role, columns in by_role.items() if columns}
        if "text" in chosen:
            chosen["text"] = (chosen["text"],)
        return replace(self, **chosen)

    def _with_text(self, names: Sequence[str]) -> Columns:
        """Return these columns, with the only common name for texts beside a title."""
        texts, ids = self.common("text", names), self.common("id", names)
        texts = texts or _in_one_object(names).get("text", [])
        is_chosen = self.texts_in(names) or "text" in self.unused
        if is_chosen or len(texts) != 1:
            return self
        id_ = ids[0] if len(ids) == 1 and self.id_in(names) is None else self.id
        return replace(self, id=id_, text=(texts[0],))

    def with_title(self, names: Collection[str]) -> Columns:
        """Return these columns, with the only title in another language beside a column `text`."""
        titles = [name for name in names if name.strip().lower() in {"title", *_TITLES}]
        is_chosen = self.title or self.text or "title" in self.unused
        if is_chosen or len(titles) != 1 or titles[0] == "title":
            return self
        return replace(self, title=titles[0])


PLAIN: Final = Columns()  # the columns of the usual names


def _of_two_words(role: str, names: Iterable[str]) -> list[str]:
    """Return the names of two words that tell a role; a path has none."""
    first, second = _TWO_WORDS[role]
    pairs = ((name, _WORD_END.split(name.strip())) for name in names if "." not in name)
    return [
        name
        for name, words in pairs
        if len(words) == 2 and words[0].lower() in first and words[1].lower() in second
    ]


def _in_one_object(names: Iterable[str]) -> dict[str, list[str]]:
    """Return the paths of ID, title and text of the only nested object with them, as `_source`.

    Of several, the outermost counts.
    """
    objects: dict[str, list[str]] = {}
    for path in names:
        outer, dot, name = path.rpartition(".")
        if dot:
            objects.setdefault(outer, []).append(name)
    with_text = [
        outer
        for outer, inner in objects.items()
        if any(name.lower() in COMMON_NAMES["text"] for name in inner)
    ]
    if not with_text and "geometry" in names and "properties" in objects:
        with_text = ["properties"]  # of GeoJSON: a name alone
    depth = min((outer.count(".") for outer in with_text), default=0)
    outermost = [outer for outer in with_text if outer.count(".") == depth]
    if len(outermost) != 1:
        return {}
    inner, filled = objects[outermost[0]], PLAIN.filled(objects[outermost[0]])
    roles = {
        "id": [filled.id],
        "title": [filled.title] if filled.title else PLAIN.common("title", inner),
        "text": list(filled.text) or PLAIN.common("text", inner),
    }
    return {
        role: [f"{outermost[0]}.{name}" for name in names if name] for role, names in roles.items()
    }


SAMPLE: Final = 50  # records at the beginning that tell which columns have prose
_MIN_WORDS: Final = 4  # words of a value of prose, on average
_MIN_DISTINCT: Final = 0.5
"""Share of values that differ, at least: removed posts all have the same text."""
_WORD: Final = re.compile(r"[^\W\d_]+")
_NO_PROSE: Final = re.compile(r"[/\\@=\d]")


def with_prose(
    columns: Columns, names: Sequence[str], records: Sequence[Mapping[str, Any]]
) -> Columns:
    """Return columns whose texts are the columns of prose among the first records.

    All of them belong to one object, the one with most prose, which also gives ID and title. One
    with the values of another, or their HTML, is left out. Without prose, nested fields with names
    for texts are the texts; without these nothing changes.
    """
    values = _texts_by_path(records)
    used = (columns.id_in(names), columns.title_in(names))
    lengths: dict[str, dict[str, int]] = {}
    for path, texts in values.items():
        parent, _, name = path.rpartition(".")
        if path not in used and name != "title" and _is_prose(name, texts):
            lengths.setdefault(parent, {})[path] = sum(map(len, texts))
    if not lengths:  # short ones are named for texts, as in `messages.text`
        for path, texts in values.items():
            parent, _, name = path.rpartition(".")
            if parent and name.lower() in COMMON_NAMES["text"]:
                lengths.setdefault(parent, {})[path] = sum(map(len, texts))
    if not lengths:
        return columns
    parent = min(lengths, key=lambda path: (-sum(lengths[path].values()), path.count(".")))
    plain = [
        path
        for path in lengths[parent]
        if path.removesuffix("_html") not in lengths[parent] or not path.endswith("_html")
    ]
    chosen = {tuple(values[path]): path for path in reversed(plain)}
    columns = replace(columns, text=tuple(reversed(chosen.values())))

    def beside(role: str, kinds: type | tuple[type, ...]) -> str:
        path = f"{parent}.{role}"
        is_used = role not in columns.unused and isinstance(value_at(records[0], path), kinds)
        return path if is_used else ""

    if not columns.id and columns.id_in(names) is None:
        columns = replace(columns, id=beside("id", (str, int)))
    return columns if columns.title_in(names) else replace(columns, title=beside("title", str))


def _texts_by_path(records: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return the texts of each path, not blank; a list that has a sentence is one text."""
    values: dict[str, list[str]] = {}
    for record in records:
        for path, value in flat(without_vectors(record)).items():
            items = value if isinstance(value, list) else [value]
            texts = [item for item in items if isinstance(item, str) and item.strip()]
            if any(_words(text) >= _MIN_WORDS for text in texts):
                texts = ["\n".join(texts)]
            if texts:
                values.setdefault(path, []).extend(texts)
    return values


def _words(text: str) -> int:
    """Return the number of words that are neither links nor codes."""
    count = 0
    for part in text.split():
        is_code = _NO_PROSE.search(part) is not None
        for word in _WORD.findall(part):
            # Scripts without blanks between words have no case, so a part is a sentence there.
            count += not is_code if word.lower() != word.upper() else (len(word) + 1) // 2
    return count


def _is_prose(name: str, texts: Sequence[str]) -> bool:
    """Return whether the values of a column are sentences rather than names, links or codes.

    If its name may be a text, they are longer: a table without header has one there.
    """
    if sum(map(_words, texts)) < _MIN_WORDS * len(texts):
        return False
    is_varied = len({*texts}) >= _MIN_DISTINCT * len(texts)
    is_question = name.endswith(("?", "？"))  # as in Google Forms
    is_header = is_question or (name.isascii() and name.isidentifier())
    return is_varied and (is_header or sum(map(len, texts)) >= 2 * len(name) * len(texts))
