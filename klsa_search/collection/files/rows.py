"""Tables in a folder of files: one document per row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final
from zipfile import ZipFile

from klsa_search.collection import csv_files, json_files, tables, xml_files
from klsa_search.collection.columns import Columns
from klsa_search.collection.files.content import LARGEST, Unreadable
from klsa_search.collection.folder import suffix_of
from klsa_search.collection.intake import Intake, TruncatedFile
from klsa_search.collection.lines import translate_read_errors
from klsa_search.collection.model import Document
from klsa_search.errors import CollectionError

Reader = Callable[[Path, Intake], Iterator[Document]]
READERS: Final[dict[str, Reader]] = {
    "csv": partial(csv_files.documents, kind="csv"),
    "json": json_files.json_documents,
    "jsonl": json_files.documents,
    "parquet": tables.parquet_documents,
    "tsv": partial(csv_files.documents, kind="tsv"),
    "xlsx": tables.sheet_documents,
    "xml": xml_files.documents,
}
"""Readers of tables by format."""


_REASONS: Final = {
    "json": "no array or lines of objects",
    "xml": "no repeated element with a title or text",
}
"""Why a table has no documents, by format."""


def row_documents(path: Path, name: str, table: str, intake: FileIntake) -> Iterator[Document]:
    """Yield the documents of the rows of a table.

    name   path below the folder
    table  format, one of `READERS`
    The ID is the path, # and the ID of the row, or its number in the file if no column has IDs: so
    it does not depend on other files, and with a column of IDs not on other rows either. Metadata
    has `kind` and `path`, unless columns have these names. A file whose beginning shows that its
    rows are no documents is counted in `unread`.
    """
    try:
        if table in ("json", "jsonl"):
            table = _json_format(path)
        elif table == "xlsx":
            _check_size(path)
        for row in READERS[table](path, intake):
            origin = intake.shown(row.origin)
            if not row.id.strip():
                intake.refuse(f"{origin}: the id is blank")
                continue
            metadata = {"kind": table, "path": name, **row.metadata}
            yield replace(row, id=f"{name}#{row.id}", metadata=metadata, origin=origin)
    except Unreadable as fault:
        intake.unread.add(f"{suffix_of(name)}: {fault.kind}", name)
    except TruncatedFile:
        raise
    except CollectionError:
        if intake.begun:
            raise
        intake.unread.add(f"{suffix_of(name)}: {_REASONS.get(table, 'no valid header')}", name)


def _json_format(path: Path) -> str:
    """Return json or jsonl; Unreadable for a file of neither objects nor an array of them."""
    format_ = json_files.json_format(path)
    if format_ is None:
        raise Unreadable("no array or lines of objects")
    return format_


def _check_size(path: Path) -> None:
    """Raise TruncatedFile for a workbook that is unpacked to more than `LARGEST` bytes."""
    with translate_read_errors(path), ZipFile(path) as packed:
        size = sum(part.file_size for part in packed.infolist())
    if size > LARGEST:
        raise TruncatedFile(f"{path}: is too large (more than {LARGEST >> 20} MiB unpacked)")


class FileIntake(Intake):
    """Validates the records of one file; counts and notes in the intake of the whole folder.

    Columns are recognised, and rows without IDs numbered, for each file by itself.

    path   where the file is read
    shown  its path in messages, which differs for an unpacked file
    begun  whether a table has a header that makes documents
    """

    takes_objects = False

    def __init__(self, folder: Intake, path: Path, shown: str) -> None:
        super().__init__(folder.options)
        self.problems, self.notes = folder.problems, folder.notes
        self.unread = folder.unread
        self._missing_columns, self._absent = folder._missing_columns, folder._absent
        self.begun = False
        self._path, self._shown = str(path), shown

    def shown(self, message: str) -> str:
        """Return a message with the path that users know."""
        return message.replace(self._path, self._shown)

    def compare_header(self, file: Path, names: list[str]) -> None:
        """Return: tables of a folder have nothing to do with each other."""

    def begin(
        self, file: Path, names: Sequence[str], *, key: str | None = None
    ) -> tuple[Columns, bool]:
        """Return the columns of the file, and whether to number its documents.

        Unreadable if no column has titles or texts.
        """
        if self.columns.completed(names, str(file)).lacks(names):
            raise Unreadable("no title or text column")
        self.begun = True
        return super().begin(file, names, key=key)
