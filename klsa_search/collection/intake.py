"""Validation of records: refused ones, and columns, notes and IDs of those that are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final, TypeVar

from klsa_search.collection.columns import (
    SAMPLE,
    TEXT_NAMES,
    Columns,
    listed,
    may_name_ids,
    option,
    with_prose,
)
from klsa_search.collection.field_paths import flat, has_path, path_names, value_at
from klsa_search.collection.folder import FileCache
from klsa_search.collection.mappings import as_document, with_messages
from klsa_search.collection.model import Document, Problems, TruncatedFile, Unread, document_fault
from klsa_search.collection.reading_options import DEFAULTS, CheckedReadingOptions
from klsa_search.collection.vectors import with_vectors, without_vectors
from klsa_search.core.wording import counted
from klsa_search.errors import CollectionError

_Row = TypeVar("_Row")

ADVICE: Final = "; correct it, or skip it (--on-error skip, in Python on_error='skip')"
"""Next step after the refusal of a record, for sources that commands and programs read."""


_NO_TEXTS: Final = frozenset(["NA", "<NA>", "NULL", "NaN", "nan", "None", "\\N", "#N/A"])
"""Texts that stand for none, as R, pandas, databases and Excel write them."""
_NO_TEXT: Final = "no title and no text"
_SHOWN_COLUMNS: Final = 20  # columns that an error lists, at most


def read_ahead(rows: Iterator[_Row]) -> tuple[list[_Row], Iterator[_Row]]:
    """Return the first `SAMPLE` rows, and an iterator over all of them.

    An error of reading is raised after the rows that precede it.
    """
    first, fault = list[_Row](), None
    try:
        for row in islice(rows, SAMPLE):
            first.append(row)
    except CollectionError as error:
        fault = error

    def again() -> Iterator[_Row]:
        yield from first
        if fault is not None:
            raise fault
        yield from rows

    return first, again()


class Intake:
    """Validates records; stops at the first invalid one, or counts them in `problems`.

    takes_objects   whether a JSON file of one object without list is a document; in a folder it may
                    be a file of settings
    is_single_file  whether the source has one file: the rows of several may be counted alike
    """

    takes_objects = True
    is_single_file = True

    def __init__(
        self, options: CheckedReadingOptions = DEFAULTS, cache: FileCache | None = None
    ) -> None:
        self.options = options
        self.columns = options.columns
        self.skipping = options.on_error == "skip"
        self.cache = cache  # of the files of a folder, if it is read repeatedly
        self.problems = Problems()
        self.unread = Unread()  # files whose content has shown that they are no documents
        self.numbered: list[str] = []  # files without IDs
        self.notes: dict[str, list[str]] = {}  # what was recognised, and in which files
        self.header: tuple[list[str], Columns] = [], self.columns  # of the file begun last
        self.completed: set[Columns] = set()  # recognised by common names, of each file
        self.uniform = True  # whether one set of columns was used for all records
        self.has_texts = False
        self.unused_texts: dict[str, int] = {}  # characters by field, while no text is used
        self.missing_columns = set(self.columns.names())
        self._lacking: dict[str, tuple[int, str]] = {}  # records without a part, and the first
        self._number = 0
        self._present_columns: set[str] = set()  # of records before all of the former were found

    def refuse(self, message: str, *, kind: str | None = None) -> None:
        """Refuse one record: raise CollectionError, or count it when skipping.

        message  "file:line: reason"
        kind     for a file that cannot be read: its suffix and fault
        """
        if not self.skipping:
            raise CollectionError(self.shown(message) + ADVICE)
        self.problems.add(self.shown(message), kind=kind)

    def shown(self, message: str) -> str:
        """Return a message with the paths that users know."""
        return message

    def note(self, file: Path, fact: str) -> None:
        """Record what was recognised in a file, once if several records show it."""
        files, shown = self.notes.setdefault(fact, []), self.shown(str(file))
        if files[-1:] != [shown]:
            files.append(shown)

    def begin(
        self,
        file: Path,
        names: Sequence[str],
        *,
        key: str | None = None,
        following: Callable[[], Iterable[Mapping[str, Any]]] = tuple,
    ) -> tuple[Columns, bool]:
        """Return the columns of a file, and whether to number its documents.

        names      columns of a table, or names in its first object
        key        column that is the ID if no other is, and no other file is read
        following  returns the first records, whose prose is the text if no column is named for it

        Columns with common names are used, or suggested, with a note. CollectionError if several
        are possible.
        """
        columns = self.columns
        is_id = self.is_single_file and key in names and "id" not in columns.unused
        if is_id and columns.id_in(names) is None and not columns.id:
            columns = replace(columns, id=key or "")
        self.header = list(names), columns.filled(names)  # kept if the columns are ambiguous
        columns = columns.completed(names, str(file))
        self.check_columns(columns, names)
        if not (self.columns.title or "text" in columns.unused):
            columns = self._with_prose(columns, names, following)
        self.header = list(names), columns.filled(names)
        if columns != self.columns:
            self.completed.add(columns)
            used = {"id": columns.id, "title": columns.title, "text": ", ".join(columns.text)}
            before = {"id": self.columns.id, "title": "", "text": ""}
            chosen = {role: name for role, name in used.items() if name and name != before[role]}
            uses = ", ".join(f"{name!r} as {role}" for role, name in chosen.items())
            options = " ".join(option(role, name) for role, name in chosen.items())
            self.note(file, f"using column {uses}; other columns: {options} (in Python columns=)")
        else:
            self.uniform = False
        for name in () if columns.texts_in(names) else columns.common("text", names):
            if name not in columns.names():
                advice = f"{option('text', name)} searches it"
                self.note(file, f"column {name!r} is not searched; {advice}")
        numbered = columns.id_in(names) is None and not self.columns.id
        if numbered:
            self.numbered.append(str(file))
            unused = columns.common("id", names) or list(filter(may_name_ids, names))[:1]
            for name in unused if "id" not in columns.unused else ():
                advice = f"{option('id', name)} uses it"
                self.note(file, f"column {name!r} is not used as ID; {advice}")
        return columns, numbered

    def check_columns(self, columns: Columns, names: Sequence[str]) -> None:
        """Refuse a file with these columns; only those of a folder may be no documents."""

    def _with_prose(
        self,
        columns: Columns,
        names: Sequence[str],
        following: Callable[[], Iterable[Mapping[str, Any]]],
    ) -> Columns:
        """Return columns with those of prose, if none is for texts, or a recognised one is blank.

        So is `description` in exports of WordPress.
        """
        if not columns.texts_in(names):
            return with_prose(columns, names, list(following()))
        if columns.text == self.columns.text:
            return columns
        first = list(following())
        if any(value_at(record, name) for record in first for name in columns.text):
            return columns
        left = [name for name in names if name not in columns.text]
        further = replace(columns, text=()).completed(left, "")
        further = further if further.text else with_prose(further, left, first)
        return further if further.text else columns

    def documents(
        self,
        file: Path,
        records: Iterable[tuple[str, Mapping[str, Any] | Document]],
        *,
        names: Sequence[str] | None = None,
        key: str | None = None,
        needs_text: bool = False,
        origin: str = "",
        advice: str = "",
        has_ids: bool = False,
    ) -> Iterator[Document]:
        """Yield the documents of records with their origins, whose columns `begin` decides.

        names       columns of a table; by default those in the first record
        needs_text  whether one must be for titles or texts
        origin      of the names, for that error; by default the file
        advice      ends that error
        has_ids     whether all have an ID, title and text of the usual names: nothing is decided
        """
        columns, numbered, begun = None, False, has_ids
        rest: Iterator[tuple[str, Mapping[str, Any] | Document]] = (
            (where, record if isinstance(record, Document) else with_messages(record))
            for where, record in records
        )

        def following() -> Iterable[Mapping[str, Any]]:
            nonlocal rest
            first, rest = read_ahead(rest)
            return (record for _, record in first if not isinstance(record, Document))

        def begin(names: Sequence[str]) -> tuple[Columns, bool]:
            columns, numbered = self.begin(file, names, key=key, following=following)
            if needs_text and columns.lacks(names):
                raise CollectionError(
                    f"{origin or file}: no column 'title' or 'text' among {listed(names)}; name "
                    f"them (--title, --text, in Python columns=){advice}"
                )
            return columns, numbered

        if names is not None:
            columns, numbered = begin(names)
            begun = True
        while current := next(rest, None):
            where, record = current
            if isinstance(record, Document):
                yield record
                continue
            if not begun:
                rest = chain([current], rest)
                columns, numbered = begin(path_names(record))
                begun = True
                continue
            if names is not None:  # other formats have values for none
                for name in (columns or self.columns).texts_in(record):
                    if isinstance(record.get(name), str) and record[name] in _NO_TEXTS:
                        record = {**record, name: ""}
                        fact = "a text is only NA, NULL or the like, which is blank"
                        self._note_lack(fact, where)
            document = self.document(record, where, columns, numbered=numbered)
            if document is not None:
                yield document

    def document(
        self,
        record: Mapping[str, Any],
        origin: str,
        columns: Columns | None = None,
        *,
        numbered: bool = False,
    ) -> Document | None:
        """Return the document of a record; None if it was refused.

        columns   as `begin` has returned for its file; by default those given for the source
        numbered  use the next number as its id
        """
        if self.missing_columns:
            self.missing_columns -= {
                name for name in self.missing_columns if has_path(record, name)
            }
            self._present_columns.update(path_names(record))
        if columns is None:
            columns = self.columns
        elif columns != self.columns and self._has_own_text(record, columns):
            plain = replace(self.columns, id=columns.id).with_title(record)
            self.uniform = self.uniform and columns == plain
            columns = plain
        for name in columns.names():
            if name not in record and not has_path(record, name):
                self._note_lack(f"no column {name!r}", origin)
        if numbered and (id_ := columns.id_in(record)):
            self.refuse(
                f"{origin}: has {id_!r}, unlike the first record, so that documents are "
                "numbered; give all an ID, or none"
            )
            return None
        try:
            document = as_document(
                record, origin, columns, number=self._number + 1 if numbered else None
            )
        except CollectionError as error:
            self.refuse(error.message)
            return None
        self._number += numbered
        return document

    def _has_own_text(self, record: Mapping[str, Any], completed: Columns) -> bool:
        """Return whether a record needs no columns with common names."""
        if not set(TEXT_NAMES).isdisjoint(record) and "text" not in completed.unused:
            return True
        has_common = any(has_path(record, name) for name in completed.text)
        return not self.columns.lacks(record) and not has_common

    def read_file(self, records: Iterator[Document]) -> Iterator[Document]:
        """Yield the documents of one file; when skipping, a truncated file is counted and ends."""
        try:
            yield from records
        except TruncatedFile as error:
            message = self.shown(error.message)
            if not self.skipping:
                raise TruncatedFile(message) from None
            self.problems.add(message)

    def validated(self, documents: Iterator[Document]) -> Iterator[Document]:
        """Yield documents with a new, non-blank id, and text and metadata that can be stored.

        Memory: the set of ids, about 100 bytes each.
        """
        seen: set[str] = set()
        for document in documents:
            try:
                document = with_vectors(document)
            except ValueError as error:
                self.refuse(f"{document.origin or 'document'}: {error}")
                continue
            reason = document_fault(document)
            if not reason and document.id in seen:
                reason = f"the id {document.id!r} is used before"
                if any(columns.id for columns in self.completed):
                    reason += "; name another column of IDs by --id (in Python columns=)"
            if reason:
                self.refuse(f"{document.origin or 'document'}: {reason}")
                continue
            seen.add(document.id)
            if not self.has_texts:
                self._seek_texts(document)
            if not (document.title.strip() or document.text.strip()):
                self._note_lack(_NO_TEXT, document.origin or f"document {document.id!r}")
            yield document
        for part, (count, first) in self._lacking.items():
            records = (
                f"this and {counted(count - 1, 'more record')}" if count > 1 else "this record"
            )
            if part != _NO_TEXT or self.has_texts:
                self.notes[f"{part}, in {records}"] = [self.shown(first)]
        if seen:
            self.refuse_missing_columns()

    def _note_lack(self, part: str, origin: str) -> None:
        """Count a record that lacks a part."""
        count, first = self._lacking.get(part, (0, origin))
        self._lacking[part] = count + 1, first

    def refuse_missing_columns(self) -> None:
        """Raise CollectionError if no document so far has one of the columns given."""
        if not self.missing_columns:
            return
        missing, present = (
            ", ".join(map(repr, sorted(names)[:_SHOWN_COLUMNS]))
            for names in (self.missing_columns, self._present_columns)
        )
        step = f"; the columns are {present}" if present else ""
        role = self.columns.role_of(min(self.missing_columns))
        raise CollectionError(
            f"no document has a column {missing}; check the spelling{step}", field=f"columns.{role}"
        )

    def _seek_texts(self, document: Document) -> None:
        """Note whether a document has a title or text, else which fields have texts."""
        self.has_texts = bool(document.title.strip() or document.text.strip())
        if not self.has_texts and document.metadata:
            for name, value in flat(without_vectors(document.metadata)).items():
                for text in value if isinstance(value, list) else [value]:
                    if isinstance(text, str) and " " in text.strip():
                        self.unused_texts[name] = self.unused_texts.get(name, 0) + len(text)
