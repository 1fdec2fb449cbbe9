"""Options for reading a source."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from types import NoneType
from typing import Any, Final, Literal, Self, TypedDict, get_args

from klsa_search.collection.columns import PLAIN, Columns, ColumnsLike
from klsa_search.core.arguments import name_of
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


class ReadingOptions(TypedDict, total=False):
    """Keyword arguments of `open_collection` for reading a source, to be passed as `**reading`.

    >>> lenient: ReadingOptions = {"format": "jsonl", "on_error": "skip"}
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
class CheckedReadingOptions:
    """Options for reading a source: values of `ReadingOptions`, checked."""

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
