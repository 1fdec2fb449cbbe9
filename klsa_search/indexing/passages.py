"""Passages: the second index of a generation, of the passages of its documents.

It is an ordinary generation in the folder `passages`, so kernel, BM25 and neighbours of passages
have lengths and statistics of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np

from klsa_search.collection.model import Document
from klsa_search.collection.passages import cut
from klsa_search.core.array_types import GrowableArray
from klsa_search.core.config import Settings
from klsa_search.storage.documents import DocumentReader, passages_of

ENOUGH: Final = 1.1
"""Passages for each document from which `passages = auto` divides documents."""


def number_of_passages(generation: Path, settings: Settings) -> int | None:
    """Return the number of passages of the documents of a generation, None if these stay whole.

    Cost: reading and cutting the texts.
    """
    words = settings.passage_words
    if words is None:
        return None
    documents = DocumentReader.open(generation)
    doc_ids = documents.live_doc_ids()
    passages = sum(len(cut(documents.text(doc_id), words)) for doc_id in doc_ids)
    return passages if divides(settings, len(doc_ids), passages) else None


def divides(settings: Settings, documents: int, passages: int) -> bool:
    """Return whether documents that have so many passages are divided into them."""
    if settings.passages != "auto":
        return settings.passage_words is not None
    return passages >= ENOUGH * max(documents, 1)


def stored_passages(generation: Path, words: int, document_of: GrowableArray) -> Iterator[Document]:
    """Yield the passages of the documents of a generation, in order.

    words        of a passage
    document_of  gets the document of each
    """
    documents = DocumentReader.open(generation).live_documents()
    for doc_id, document in enumerate(documents):
        passages = list(passages_of(document, words))
        document_of.extend(np.full(len(passages), doc_id, np.int32))
        yield from passages
