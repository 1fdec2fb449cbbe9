"""Options for reading a source, as callers give them and checked."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self, TypedDict

from klsa_search.collection.columns import Columns
from klsa_search.collection.detection import FORMATS
from klsa_search.collection.encodings import check_encoding
from klsa_search.collection.folder import Selection
from klsa_search.collection.intake import check_on_error
from klsa_search.errors import CollectionError

PathLike = str | os.PathLike[str]
Folders = PathLike | Iterable[PathLike]


class Reading(TypedDict, total=False):
    """Keyword arguments of `open_collection` for reading a source, to be passed as `**reading`.

    >>> lenient: Reading = {"format": "jsonl", "on_error": "skip"}
    >>> len(list(open_collection("reports.jsonl", **lenient).documents()))
    6
    """

    format: str | None
    on_error: str
    data: Folders | None
    follow_links: bool
    exclude: str | Sequence[str]
    columns: Mapping[str, str | Sequence[str]] | None
    sections: bool
    encoding: str | None


_DEFAULTS: Final[tuple[object, ...]] = (None, False, "stop", {}, [])


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingOptions:
    """Options for reading a source, checked.

    stored  those that are not defaults, as JSON values, without `data`
    """

    format: str | None
    on_error: str
    data: Folders | None
    selection: Selection
    columns: Columns
    sections: bool
    encoding: str | None
    stored: Mapping[str, Any]

    @classmethod
    def of(cls, reading: Reading) -> Self:
        """Return the options of keyword arguments; CollectionError, TypeError for unknown names."""
        for name in reading.keys() - Reading.__annotations__.keys():
            raise TypeError(f"{name!r} is not an option for reading a source")
        format_, encoding = reading.get("format"), reading.get("encoding")
        on_error = reading.get("on_error", "stop")
        check_on_error(on_error)
        check_encoding(encoding)
        if format_ is not None and format_ not in FORMATS:
            raise CollectionError(
                f"unknown format {format_!r}; the formats are: {', '.join(FORMATS)}", field="format"
            )
        exclude = reading.get("exclude", ())
        patterns = (exclude,) if isinstance(exclude, str) else tuple(exclude)
        stored = {**reading, "exclude": list(patterns)}
        if reading.get("columns"):
            stored["columns"] = dict(reading["columns"] or {})
        return cls(
            format=format_,
            on_error=on_error,
            data=reading.get("data"),
            selection=Selection(reading.get("follow_links", False), patterns),
            columns=Columns.of(reading.get("columns")),
            sections=reading.get("sections", False),
            encoding=encoding,
            stored={
                name: value
                for name, value in stored.items()
                if name != "data" and value not in _DEFAULTS
            },
        )
