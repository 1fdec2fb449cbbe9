"""Options for reading a source."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, TypedDict, get_args

from pydantic import BeforeValidator, ConfigDict, Field, ValidationError

from klsa_search.collection.columns import PLAIN, Columns, ColumnsLike
from klsa_search.core.settings_group import OptionDisplay, SettingsGroup, as_tuple, first_fault
from klsa_search.errors import CollectionError

PathLike = str | os.PathLike[str]
Folders = PathLike | Iterable[PathLike]
OnError = Literal["stop", "skip"]


FormatName = Literal[
    "csv", "json", "jsonl", "parquet", "references", "smart", "text", "trec", "tsv", "xlsx", "xml"
]
"""Name of a format that a file may have."""
FORMATS: Final = ("beir", *get_args(FormatName))
"""Names of all formats; beir is a folder."""


class FileReading(TypedDict, total=False):
    """Keyword arguments for reading one file."""

    format: str | None
    columns: ColumnsLike | None
    sections: bool
    encoding: str | None
    records: str | None


class ReadingOptions(FileReading, total=False):
    """Keyword arguments of `open_collection` for reading a source, to be passed as `**reading`.

    >>> lenient: ReadingOptions = {"format": "jsonl", "on_error": "skip"}
    >>> len(list(open_collection("reports.jsonl", **lenient).documents()))
    6
    """

    on_error: OnError
    data: Folders | None
    follow_links: bool
    exclude: str | Sequence[str]


class ColumnOptions(SettingsGroup):
    """Columns of documents, as commands and requests name them; blank for none."""

    id: Annotated[str | None, OptionDisplay(metavar="COLUMN", default="id")] = Field(
        None, description="take document IDs from this column; blank: number the documents"
    )
    title: Annotated[str | None, OptionDisplay(metavar="COLUMN", default="title")] = Field(
        None, description="take titles from this column; blank: from none"
    )
    text: Annotated[tuple[str, ...], BeforeValidator(as_tuple), OptionDisplay(metavar="COLUMN")] = (
        Field(
            (),
            description="take texts from these columns, which are joined; blank: from none. Other "
            "columns become metadata",
        )
    )

    @property
    def columns(self) -> dict[str, str | list[str] | None]:
        """The argument `columns` of `open_collection`."""
        columns: dict[str, str | list[str] | None] = {}
        for role, name in (("id", self.id), ("title", self.title)):
            if name is not None:
                columns[role] = name if name.strip() else None
        if self.text:
            columns["text"] = [name for name in self.text if name.strip()] or None
        return columns


class FileOptions(SettingsGroup):
    """How one file is read, as programs, commands and requests say it."""

    format: Annotated[
        Literal["beir", FormatName] | None, OptionDisplay(metavar="NAME", default="detected")
    ] = Field(None, description="read this format")
    sections: bool = Field(
        False, description="make one document of each section, page or chapter of a text"
    )
    encoding: Annotated[str | None, OptionDisplay(metavar="NAME", default="detected")] = Field(
        None, description="read CSV and texts in this encoding, such as cp1251 or shift_jis"
    )
    records: Annotated[
        str | None, OptionDisplay(metavar="PATH", default="the list with most text")
    ] = Field(None, description="read the list at this path of a JSON object, such as data.cards")


class CheckedReadingOptions(FileOptions):
    """Options for reading a source: values of `ReadingOptions`, checked."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    on_error: OnError = Field(
        "stop", description="stop at a bad record or unreadable file, or skip and count it"
    )
    data: Annotated[
        tuple[Annotated[Path, Field(strict=False)], ...] | None, BeforeValidator(as_tuple)
    ] = None
    follow_links: bool = Field(False, description="follow symbolic links in a SOURCE folder")
    exclude: Annotated[
        tuple[str, ...], BeforeValidator(as_tuple), OptionDisplay(metavar="GLOB")
    ] = Field(
        (),
        description="leave out files and folders of a SOURCE folder or archive by a pattern as in "
        ".gitignore, such as *.log or drafts/; one that begins with ! reads what others leave out",
    )
    columns: Annotated[Columns, BeforeValidator(Columns.of)] = PLAIN

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
        options = self.model_dump(mode="json", exclude={"data", "columns"}, exclude_defaults=True)
        columns = self.columns.as_mapping()
        return {**options, "columns": columns} if columns else options


DEFAULTS: Final = CheckedReadingOptions()


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
