"""The gate every document passes: what is refused, and what a refusal means."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from klsa_search.collection.mappings import PLAIN, Columns, as_document
from klsa_search.collection.model import Document, Problems
from klsa_search.errors import CollectionError

MAX_DEPTH: Final = 100
"""Levels of lists and objects in metadata: what reads or writes JSON takes some hundreds."""

_CONTAINERS: Final = (Mapping, list, tuple)


class TruncatedFile(CollectionError):
    """The rest of one file cannot be read; what came before it was whole.

    Reading with on_error="skip" counts it and goes on with the next file. Any other
    CollectionError stops in both modes: it says that the source is not what it was taken for.
    """


class Intake:
    """Decide about bad records: stop at the first, or count them in `problems` and go on.

    numbered  files without ids, whose documents are numbered
    """

    def __init__(self, on_error: str = "stop", columns: Columns = PLAIN) -> None:
        """Start with no problems; CollectionError for an `on_error` other than stop and skip."""
        if on_error not in ("stop", "skip"):
            raise CollectionError(
                f"on_error = {on_error!r} is not 'stop' or 'skip'", field="on_error"
            )
        self.skipping = on_error == "skip"
        self.columns = columns
        self.problems = Problems()
        self.numbered: list[str] = []
        self._number = 0
        self._unseen = set(columns.names())

    def refuse(self, message: str, *, kind: str | None = None) -> None:
        """Refuse one record; `message` is "file:line: reason". Raises unless skipping.

        kind  of a file that cannot be read: what all have in common that fail alike
        """
        if not self.skipping:
            raise CollectionError(
                f"{message}; correct it, or skip it (--on-error skip, in Python on_error='skip')"
            )
        self.problems.add(message, kind=kind)

    def may_number(self, file: Path) -> bool:
        """Whether documents of a file without ids are numbered, which is noted."""
        if self.columns.id:
            return False
        self.numbered.append(str(file))
        return True

    def document(
        self, record: Mapping[str, Any], origin: str, *, numbered: bool = False
    ) -> Document | None:
        """Make a document of a record, by its columns; None where it was refused.

        numbered  its id is how many have been numbered before it, and one
        """
        self._unseen.difference_update(record)
        try:
            made = as_document(
                record, origin, self.columns, number=self._number + 1 if numbered else None
            )
        except CollectionError as error:
            self.refuse(error.message)
            return None
        self._number += numbered
        return made

    def read_file(self, records: Iterator[Document]) -> Iterator[Document]:
        """Pass on the records of one file; when skipping, a file cut short just ends."""
        try:
            yield from records
        except TruncatedFile as cut:
            if not self.skipping:
                raise
            self.problems.add(cut.message)

    def validated(self, documents: Iterator[Document]) -> Iterator[Document]:
        """Let through documents with a new, non-blank id, and text and metadata that can be stored.

        The set of ids seen is the only thing that grows with the corpus: about 100 bytes each.
        """
        seen: set[str] = set()
        for document in documents:
            reason = document_fault(document)
            if not reason and document.id in seen:
                reason = duplicate_id(document.id)
            if reason:
                self.refuse(f"{document.origin or 'document'}: {reason}")
                continue
            seen.add(document.id)
            yield document
        if self._unseen and seen:
            missing = ", ".join(map(repr, sorted(self._unseen)))
            raise CollectionError(
                f"no document has a column {missing}; name columns as the source does",
                field="columns",
            )


def duplicate_id(id: str) -> str:  # noqa: A002 - the field's own name
    """Say why a document cannot be kept whose id another has."""
    return f"the id {id!r} is used before"


def text_fault(text: str) -> str | None:
    """Say why a text cannot be kept: a NUL byte, bytes that are not UTF-8; None if it can.

    Lines are decoded with `surrogateescape`, so a foreign byte arrives as a lone surrogate.
    """
    if "\0" in text:
        return "contains a NUL byte"
    if text.isascii():
        return None
    try:
        text.encode()
    except UnicodeEncodeError as error:
        code = ord(text[error.start])
        if 0xDC80 <= code <= 0xDCFF:
            return f"is not UTF-8: byte 0x{code - 0xDC00:02x} at column {error.start + 1}"
        return f"contains U+{code:04X}, half of a character"
    return None


def document_fault(document: Document) -> str | None:
    """Say why a document cannot be kept; None if it can."""
    for name in ("id", "title", "text"):
        value = getattr(document, name)
        # A Document made in Python can hold anything, whatever its annotations say.
        if not isinstance(value, str):
            return f"the {name} is of type {type(value).__name__}, not str"
        reason = text_fault(value)
        if reason:
            return f"the {name} {reason}"
    if not document.id.strip():
        return "the id is blank"
    return _metadata_fault(document.metadata)


def _metadata_fault(metadata: object) -> str | None:
    """Say why metadata cannot be kept as a JSON object; None if it can."""
    if not isinstance(metadata, Mapping):
        return f"the metadata is of type {type(metadata).__name__}, not a mapping"
    if not metadata:
        return None
    try:
        written = _json(dict(metadata))
    except (TypeError, ValueError, RecursionError) as error:
        return _field_fault(metadata) or f"the metadata is not JSON ({error})"
    if _is_deeper(metadata, MAX_DEPTH):
        return f"the metadata is nested more than {MAX_DEPTH} levels deep; flatten it"
    reason = text_fault(written)
    return f"the metadata {reason}" if reason else None


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, allow_nan=False)


def _field_fault(metadata: Mapping[Any, Any]) -> str | None:
    """Name the first field that is not JSON; None if each is, as where only their order fails."""
    for name, value in metadata.items():
        try:
            _json({name: value})
        except (TypeError, RecursionError) as error:
            return f"the field {name!r} is not JSON ({error})"
        except ValueError as error:
            if "circular" in str(error).lower():
                return f"the field {name!r} is not JSON ({error})"
            return (
                f"the field {name!r} contains NaN or an infinite number, which is "
                "not valid JSON; use null (None in Python)"
            )
    return None


def _is_deeper(metadata: Mapping[Any, Any], levels: int) -> bool:
    level: list[Any] = [metadata]
    for _ in range(levels):
        values = (each.values() if isinstance(each, Mapping) else each for each in level)
        level = [value for each in values for value in each if isinstance(value, _CONTAINERS)]
    return bool(level)
