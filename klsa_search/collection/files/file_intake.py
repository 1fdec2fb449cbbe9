"""Validation of the records of one file of a folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from klsa_search.collection.files.content import Unreadable
from klsa_search.collection.intake import Intake
from klsa_search.collection.mappings import Columns


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
