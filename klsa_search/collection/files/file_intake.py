"""Validation of the records of one file of a folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from klsa_search.collection.files.content import Unreadable
from klsa_search.collection.intake import Intake, TruncatedFile
from klsa_search.collection.mappings import Columns
from klsa_search.collection.model import Document


class FileIntake(Intake):
    """Validates the records of one file; counts and notes in the intake of the whole folder.

    Columns are recognised, and rows without IDs numbered, for each file by itself.

    path   where the file is read
    shown  its path in messages, which differs for an unpacked file
    begun  whether a table has a header that makes documents
    """

    takes_objects = False

    def __init__(self, folder: Intake, path: Path, shown: str) -> None:
        super().__init__(columns=folder.columns, encoding=folder.encoding)
        self.skipping, self.problems, self.notes = folder.skipping, folder.problems, folder.notes
        self.unread = folder.unread
        self._missing_columns, self._absent = folder._missing_columns, folder._absent
        self.begun = False
        self._path, self._shown = str(path), shown

    def shown(self, message: str) -> str:
        """Return a message with the path that users know."""
        return message.replace(self._path, self._shown)

    def refuse(self, message: str, *, kind: str | None = None) -> None:
        """Refuse one record or the file."""
        super().refuse(self.shown(message), kind=kind)

    def note(self, file: Path, fact: str) -> None:
        """Record what was recognised in the file."""
        super().note(Path(self.shown(str(file))), fact)

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

    def read_file(self, records: Iterator[Document]) -> Iterator[Document]:
        """Yield the documents of the file; when skipping, a truncated file is counted and ends."""
        try:
            yield from records
        except TruncatedFile as error:
            message = self.shown(error.message)
            if not self.skipping:
                raise TruncatedFile(message) from None
            self.problems.add(message)
