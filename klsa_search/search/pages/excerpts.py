"""Excerpts: documents, passages and pages by ID, as the texts that citations name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import NoneType
from typing import Any, Final

from klsa_search.analysis.passages import heading_of, page_of
from klsa_search.collection.vectors import without_vectors
from klsa_search.core.arguments import brief, checked_argument, checked_items
from klsa_search.core.wording import counted
from klsa_search.errors import DocumentNotFound, QueryError
from klsa_search.search.state.state import State
from klsa_search.storage.documents import DocumentReader
from klsa_search.storage.passages import PassageId

_NUMBER: Final = re.compile(r"[0-9]{1,10}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """A part of the text of a document, or all of it.

    id       of the document, or with `#BEGIN-END` if it is a part: the ID of a passage
    span     of characters in the text of the document
    page     of its beginning, from 1; None if the text has no page breaks
    heading  path of the headings that hold at its beginning; "" for a whole document
    metadata of the document as hits have it: without its vectors, and with numbers in number fields

    >>> found: klsa.Excerpt = index.excerpt("leak", span=(0, 30))
    >>> found.id, found.text
    ('leak#0-30', 'Coolant leaks from old hoses; ')
    """

    id: str
    document_id: str
    title: str
    text: str
    span: tuple[int, int]
    page: int | None
    heading: str
    metadata: Mapping[str, Any]

    @property
    def is_part(self) -> bool:
        """Return whether the document has more text.

        >>> index.excerpt("leak").is_part, index.excerpt("leak#0-7").is_part
        (False, True)
        """
        return self.id != self.document_id


def excerpt_of(
    state: State,
    id: str,  # noqa: A002 - the field's own name
    span: tuple[int, int] | None,
    page: int | None,
) -> Excerpt:
    """Return a passage by its ID, or a part of a document: see `Index.excerpt`."""
    documents = state.documents
    checked_argument("page", page, int, NoneType)
    if span is not None and len(checked_items("span", span, int)) != 2:
        raise QueryError(f"span = {brief(span)}; give its begin and end", field="span")
    if span is not None and page is not None:
        raise QueryError("page: `span` is given as well; give one of them", field="page")
    document_id = id
    if documents.find(id) is None:
        document_id, span_of_id = _of_passage(documents, id)
        if span is not None or page is not None:
            raise QueryError(
                f"id = {id!r} is that of a passage, which has its own span; give the ID of the "
                f"document, {document_id!r}",
                field="id",
            )
        span = span_of_id
    document = documents.get(document_id)
    text = document.text
    document_excerpt = Excerpt(
        id=document_id,
        document_id=document_id,
        title=document.title,
        text=text,
        span=(0, len(text)),
        page=page_of(text, 0),
        heading="",
        metadata=state.fields.with_numbers(without_vectors(document.metadata)),
    )
    if page is not None:
        span = _span_of_page(document_id, text, page)
    if span is None:
        return document_excerpt
    begin, end = span
    if not 0 <= begin <= end <= len(text):
        raise QueryError(
            f"span = {begin}-{end} is not inside the text of document {document_id!r}, which has "
            f"{len(text):,} characters",
            field="span",
        )
    return replace(
        document_excerpt,
        id=str(PassageId(document_id, begin, end)),
        text=text[begin:end],
        span=(begin, end),
        page=page_of(text, begin),
        heading=heading_of(text, begin),
    )


def span_of(text: str) -> tuple[int, int]:
    """Return a span written as BEGIN-END; QueryError.

    >>> from klsa_search.search.pages.excerpts import span_of
    >>> span_of("0-1822")
    (0, 1822)
    """
    begin, _, end = text.partition("-")
    if not (_NUMBER.fullmatch(begin) and _NUMBER.fullmatch(end)):
        raise QueryError(
            f"span = {text!r} is not of the form BEGIN-END, as in 0-1822", field="span"
        )
    return int(begin), int(end)


def _of_passage(documents: DocumentReader, id_: str) -> tuple[str, tuple[int, int]]:
    try:
        passage = PassageId.of(id_)
    except ValueError:
        passage = PassageId(id_, 0, 0)
    doc_id = documents.find(passage.document_id)
    if doc_id is None:
        documents.doc_ids([id_])  # raises
    elif str(passage) != id_ or not 0 <= passage.begin <= passage.end <= len(
        documents.text(doc_id)
    ):
        raise DocumentNotFound(
            f"no passage {id_!r}: document {passage.document_id!r} has no such span, or has "
            "changed; search again",
            field="id",
        )
    return passage.document_id, (passage.begin, passage.end)


def _span_of_page(document_id: str, text: str, page: int) -> tuple[int, int]:
    pages = text.removesuffix("\f").split("\f")
    if "\f" not in text:
        raise QueryError(
            f"page = {page}: document {document_id!r} has no pages; use a span", field="page"
        )
    if not 1 <= page <= len(pages):
        raise QueryError(
            f"page = {page}: document {document_id!r} has {counted(len(pages), 'page')}",
            field="page",
        )
    begin = sum(len(page_) + 1 for page_ in pages[: page - 1])
    return begin, begin + len(pages[page - 1])
