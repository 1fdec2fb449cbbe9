"""Answers of documents and of writes to them."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from klsa_search.search.index import Index
from klsa_search.search.pages.excerpts import Excerpt
from klsa_search.service.schemas.responses import Answer
from klsa_search.storage.columns.declared import FieldWarning


class DocumentAnswer(Answer):
    """One document, or a part of it: the fields from `document_id` on are only those of a part."""

    id: str = Field(description="ID of the document, or of the part, such as `manual#0-1822`")
    index: str
    generation: str
    title: str
    text: str
    metadata: dict[str, Any]
    document_id: str | None = None
    span: tuple[int, int] | None = Field(None, description="characters in the document")
    page: int | None = Field(
        None, description="page of the beginning, from 1, if the document has pages"
    )
    heading: str | None = Field(None, description="path of the headings at the beginning")

    @classmethod
    def of(cls, excerpt: Excerpt, index: Index) -> DocumentAnswer:
        """Return a document or a part of one; fields of parts are unset in a whole document."""
        names = ["id", "title", "text"]
        if excerpt.is_part:
            names += ["document_id", "span", "heading"]
            if excerpt.page is not None:
                names.append("page")
        fields = {name: getattr(excerpt, name) for name in names}
        return cls(
            index=index.name,
            generation=index.generation,
            metadata=dict(excerpt.metadata),
            **fields,
        )


class WriteAnswer(Answer):
    """Result of a write, which is durable and searchable when it is answered."""

    index: str
    generation: str = Field(description="generation that was written to")
    added: int = Field(description="documents added or replaced")
    deleted: int = Field(description="documents deleted")
    log_position: int = Field(description="position of the last row in the log of writes")
    warnings: tuple[FieldWarning, ...] = Field(
        (),
        description="values of the wrong type for their fields; filters, sorting and facets "
        "ignore them",
    )
    time_ms: float


class SyncIdsAnswer(Answer):
    """IDs of the documents that a sync wrote."""

    added: list[str]
    changed: list[str]
    deleted: list[str]


class CountedWarnings(Answer):
    """Values of the wrong type for their fields, which count as missing."""

    count: int
    first: list[str] = Field(description="the first ones")
    kinds: dict[str, int] = Field(description="number of them by field")


class SyncAnswer(Answer):
    """Result of a sync, which is durable and searchable when it is answered."""

    index: str
    generation: str
    added: int = Field(description="documents added")
    changed: int = Field(description="documents replaced, because they differed")
    deleted: int = Field(description="documents deleted, because the body does not have them")
    unchanged: int = Field(description="documents that were equal already; not written")
    batches: int = Field(description="batches in the log of writes; 0 if nothing was written")
    removed_fields: list[str] = Field(
        description="metadata fields that changed documents had, and no document of the body has"
    )
    dry_run: bool
    ids: SyncIdsAnswer | None = Field(None, description="with `list`: the IDs")
    log_position: int = Field(description="position of the last row in the log of writes")
    warnings: CountedWarnings
    time_ms: float


class LineAnswer(Answer):
    """Result of one line of a stream; names without a value are left out."""

    line: int = Field(description="line number from 1, counting blank lines")
    ok: bool
    id: str | None = None
    generation: str | None = Field(None, description="generation that the document was written to")
    log_position: int | None = Field(None, description="position of its row in the log of writes")
    warnings: list[dict[str, str]] | None = Field(
        None, description="values of the document of the wrong type for their fields"
    )
    error: dict[str, str | None] | None = Field(None, description="error, as in an error response")
