"""Options for reading a source, as callers give them and checked."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Final, Literal, Self, TypedDict

from pydantic import BeforeValidator, ConfigDict, Field, ValidationError

from klsa_search.collection.columns import PLAIN, Columns
from klsa_search.core.parameters import SettingsGroup, Shown, first_fault
from klsa_search.errors import CollectionError

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
