"""What `build` accepts as a source, turned into one stream of documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from klsa_search.collection import open_collection
from klsa_search.collection.model import Collection, Document, Problems
from klsa_search.errors import CollectionError

Source = str | Path | Collection | Iterable[Document | Mapping[str, Any]]


class Records:
    """Documents given from Python, as a collection: `Document`s or mappings with an `id`."""

    name = "records"
    format = "records"

    def __init__(self, records: Iterable[Document | Mapping[str, Any]]) -> None:
        self._records = records
        self.problems = Problems()

    def documents(self) -> Iterator[Document]:
        """Check each record as it comes; CollectionError for a missing or repeated id."""
        seen: set[str] = set()
        for number, record in enumerate(self._records, start=1):
            document = record if isinstance(record, Document) else _document(record, number)
            if document.id in seen:
                raise CollectionError(f"record {number}: id {document.id!r} stands twice")
            seen.add(document.id)
            yield document

    def queries(self) -> list[Any]:
        """Records carry no queries."""
        return []

    def judgements(self) -> list[Any]:
        """Records carry no judgements."""
        return []


def collection_of(
    source: Source,
    *,
    format: str | None,
    on_error: str,
    data: Any,  # noqa: A002
) -> Collection:
    """Open a path or a name, take a collection as it is, or wrap an iterable of records."""
    if isinstance(source, (str, Path)):
        return open_collection(source, format=format, on_error=on_error, data=data)
    if isinstance(source, Iterable):
        return Records(source)
    return source


def _document(record: Mapping[str, Any], number: int) -> Document:
    if not isinstance(record, Mapping) or record.get("id") in (None, ""):
        raise CollectionError(
            f"record {number}: every record is a mapping with an 'id'; "
            "'title' and 'text' are indexed, everything else is kept as metadata"
        )
    rest = {key: value for key, value in record.items() if key not in ("id", "title", "text")}
    return Document(
        id=str(record["id"]),
        title=str(record.get("title") or ""),
        text=str(record.get("text") or ""),
        metadata=rest,
        origin=f"record {number}",
    )
