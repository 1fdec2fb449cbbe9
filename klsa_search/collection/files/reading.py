"""Folders and archives of files: one document for each file, section, or row of a table."""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Final
from zipfile import ZipFile

from klsa_search.collection import csv_files, json_files, references, tables, xml_files
from klsa_search.collection.columns import Columns
from klsa_search.collection.detection import is_sidecar
from klsa_search.collection.files.archives import ZippedFile, open_zip
from klsa_search.collection.files.content import LARGEST, Content, Unreadable, check_storable
from klsa_search.collection.files.formats import (
    format_of,
    format_of_file,
    is_archive,
    is_docbook,
    is_mailbox,
    missing_extra,
    table_of,
)
from klsa_search.collection.files.sandbox import Sandbox
from klsa_search.collection.folder import (
    EVERYTHING,
    Selection,
    display_path,
    record_unread,
    suffix_of,
    uncompressed_name,
    walk,
)
from klsa_search.collection.intake import Intake
from klsa_search.collection.lines import translate_read_errors
from klsa_search.collection.model import Document, TruncatedFile, Unread
from klsa_search.core.installation import require
from klsa_search.errors import CollectionError

Reader = Callable[[Path, Intake], Iterator[Document]]
READERS: Final[dict[str, Reader]] = {
    "csv": partial(csv_files.documents, kind="csv"),
    "json": json_files.json_documents,
    "jsonl": json_files.documents,
    "parquet": tables.parquet_documents,
    "references": references.documents,
    "tsv": partial(csv_files.documents, kind="tsv"),
    "xlsx": tables.sheet_documents,
    "xml": xml_files.documents,
}
"""Readers of tables by format."""


def folder_documents(
    root: Path, intake: Intake, selection: Selection = EVERYTHING
) -> Iterator[Document]:
    """Stream the documents of a folder, archive or file; a file with an unknown suffix is text.

    The id is the path below the folder, with slashes, followed by #1, #2 if a file has several
    documents (mails or sections). Files that cannot be read, or exceed the limits of `sandbox`, are
    refused. Memory: one file.
    """
    with Sandbox() as sandbox:
        for path in paths(root, selection):
            name = display_path(path, root) if path != root else path.name
            of_file = FileIntake(intake, path, str(path))
            if path == root and is_archive(path):
                documents = _zipped_documents(path, "", selection, of_file, sandbox)
            elif path == root:
                documents = _file_documents(path, name, of_file, sandbox)
            else:
                read = partial(documents_of_file, path, name, selection, of_file, sandbox)
                documents = (
                    intake.cache.documents(path, read, lambda: intake.problems.count)
                    if intake.cache
                    else read()
                )
            yield from of_file.read_file(documents)


def paths(
    root: Path, selection: Selection = EVERYTHING, unread: Unread | None = None
) -> Iterator[Path]:
    """Yield the files that `folder_documents` reads, in its order.

    Others, including those whose packages are missing, are added to `unread`, but not tables of
    queries and judgements. MissingExtra if `root` is a file that needs packages.
    """
    for path in walk(root, selection, unread):
        if path == root:
            extra = missing_extra(path)
            if extra and format_of(path):
                require(extra)
            yield path
        elif missing_extra(path) or not (format_of(path) or table_of(path) or is_archive(path)):
            record_unread(path, root, unread)
        elif not (table_of(path) and is_sidecar(root, path)):
            yield path


def documents_of_file(
    path: Path, name: str, selection: Selection, intake: FileIntake, sandbox: Sandbox
) -> Iterator[Document]:
    """Yield the documents of a file."""
    table = table_of(path)
    if table and not is_docbook(path):
        return row_documents(path, name, table, intake)
    if is_archive(path):
        return _zipped_documents(path, f"{name}/", selection, intake, sandbox)
    return _file_documents(path, name, intake, sandbox)


def _zipped_documents(
    path: Path, prefix: str, selection: Selection, intake: FileIntake, sandbox: Sandbox
) -> Iterator[Document]:
    """Yield the documents of the files of an archive, whose names get a prefix."""
    try:
        with open_zip(path) as files, TemporaryDirectory(prefix="klsa-zip-") as folder:
            for file in files:
                name = f"{prefix}{file.name}"
                kind = selection.exclusion_of_member(name) or _unread_kind(file)
                if kind:
                    intake.unread.add(kind, name)
                    continue
                try:
                    with file.unpacked(Path(folder)) as copy:
                        of_file = FileIntake(intake, copy, f"{path}/{file.name}")
                        documents = documents_of_file(copy, name, selection, of_file, sandbox)
                        yield from of_file.read_file(documents)
                except Unreadable as fault:
                    _refuse(intake, f"{path}/{file.name}", fault)
    except Unreadable as fault:
        _refuse(intake, str(path), fault)


def _unread_kind(file: ZippedFile) -> str | None:
    """Return the kind of a file of an archive that is not read; None if it is read."""
    path = PurePosixPath(file.name)
    if stat.S_ISLNK(file.info.external_attr >> 16):
        return "linked"
    if is_archive(path):
        return f"{suffix_of(file.name)} in an archive"
    if missing_extra(path) or not (format_of(path) or table_of(path)):
        return suffix_of(file.name)
    return None


def _file_documents(
    path: Path, name: str, intake: FileIntake, sandbox: Sandbox
) -> Iterator[Document]:
    kind, sections = format_of_file(path), intake.options.sections
    number, file = 0, PurePosixPath(name)
    try:
        contents = (
            sandbox.read(kind, path, intake.options.encoding)
            if kind.is_sandboxed
            else map(check_storable, kind.read(path, intake.options.encoding))
        )
        for content in contents:
            for note in content.notes:
                intake.note(path, note)
            metadata = {**content.metadata, "kind": kind.name, "path": name}
            title = content.title or Path(file.name[: len(uncompressed_name(file))]).stem
            parts = _sections(content, title) if sections else [(title, content.text)]
            several = sections or is_mailbox(path)
            for heading, text in parts:
                number += 1
                yield Document(
                    id=f"{name}#{number}" if several else name,
                    title=heading,
                    text=text,
                    metadata=metadata,
                    origin=intake.shown(f"{path}:1"),
                )
    except Unreadable as fault:
        _refuse(intake, str(path), fault)


def _refuse(intake: FileIntake, path: str, fault: Unreadable) -> None:
    pure = PurePosixPath(path)
    name = pure.name.lower() if is_archive(pure) else uncompressed_name(pure)
    suffix = PurePosixPath(name).suffix or "without suffix"
    detail = f" ({fault.detail})" if fault.detail else ""
    intake.refuse(f"{path}:{fault.line}: {fault.kind}{detail}", kind=f"{suffix}: {fault.kind}")


def _sections(content: Content, title: str) -> list[tuple[str, str]]:
    """Return title and text of each section; content without sections has one."""
    return [
        (f"{title}: {heading}" if heading and heading != title else title, text)
        for heading, text, _ in content.sections
    ] or [(title, "")]


_REASONS: Final = {
    "json": "no array or lines of objects",
    "xml": "no repeated element with a title or text",
}
"""Why a table has no documents, by format."""


def row_documents(path: Path, name: str, table: str, intake: FileIntake) -> Iterator[Document]:
    """Yield the documents of the rows of a table.

    name   path below the folder
    table  format, one of `READERS`
    The ID is the path, # and the ID of the row, or its number in the file: so it does not depend on
    other files. A file whose beginning shows that its rows are no documents is counted in `unread`.
    """
    try:
        if table in ("json", "jsonl"):
            table = json_files.json_format(path) or ""
            if not table:
                raise Unreadable(_REASONS["json"])
        elif table == "xlsx":
            check_size(path)
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


def check_size(path: Path) -> None:
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
        self.missing_columns, self._lacking = folder.missing_columns, folder._lacking
        self.begun = False
        self._path, self._shown = str(path), shown

    def shown(self, message: str) -> str:
        """Return a message with the path that users know."""
        return message.replace(self._path, self._shown)

    def check_columns(self, columns: Columns, names: Sequence[str]) -> None:
        """Raise Unreadable if no column has titles or texts."""
        if columns.lacks(names):
            raise Unreadable("no title or text column")
        self.begun = True
