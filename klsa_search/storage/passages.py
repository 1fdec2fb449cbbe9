"""Passages as documents, which have an index of their own within a generation.

passages/...                     an index of the passages of a generation, as of documents
passages/passage_documents.npy   int32  (P,) doc id of the document of each passage

The ID of a passage names its document and its span of characters, so it is stable: `manual#0-1822`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final, NamedTuple

from klsa_search.analysis.passages import SEPARATOR, cut
from klsa_search.collection.model import Document
from klsa_search.collection.vectors import set_vectors, vectors_of

PASSAGE_DOCUMENTS: Final = "passage_documents"


class PassageId(NamedTuple):
    """What the ID of a passage says: its document, and its span of characters in the text."""

    document_id: str
    begin: int
    end: int

    @classmethod
    def of(cls, text: str) -> PassageId:
        """Return the parts of an ID; ValueError if it is not that of a passage.

        >>> PassageId.of("notes#2#0-1822")
        PassageId(document_id='notes#2', begin=0, end=1822)
        """
        document_id, _, span = text.rpartition("#")
        begin, _, end = span.partition("-")
        return cls(document_id, int(begin), int(end))

    def __str__(self) -> str:
        """Return the ID."""
        return f"{self.document_id}#{self.begin}-{self.end}"


def passages_of(document: Document, words: int) -> Iterator[Document]:
    """Yield the passages of a document, with its metadata, and its title and headings as title.

    words  of a passage, about; a document that is not longer is one passage
    """
    vectors = vectors_of(document)
    passages = cut(document.text, words)
    for number, (begin, end, heading, _) in enumerate(passages):
        passage = replace(
            document,
            id=str(PassageId(document.id, begin, end)),
            title=SEPARATOR.join(filter(None, (document.title, heading))),
            text=document.text[begin:end],
        )
        if vectors:  # those of its passages if there are as many, else all of the document
            of_passage = slice(number, number + 1)
            passage_vectors = {
                name: rows[of_passage] if len(rows) == len(passages) else rows
                for name, rows in vectors.items()
            }
            passage = set_vectors(passage, passage_vectors)
        yield passage
