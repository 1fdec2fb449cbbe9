"""Later writes of documents as writes to the index of their passages."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import GrowableArray
from klsa_search.search.state.passages import PassageIndex
from klsa_search.storage.documents import DocumentReader, passages_of
from klsa_search.storage.write_log import Write


class PassageWrites:
    """Writes of documents as writes of passages, and the document of each passage.

    built      passages of the build
    documents  of the build
    words      of a passage
    """

    def __init__(self, built: PassageIndex, documents: DocumentReader, words: int) -> None:
        self._built, self._documents, self._words = built, documents, words
        self._ids: dict[str, list[str]] = {}  # passages of later documents
        self._next = len(documents)
        self._document_of = GrowableArray(np.int32)
        self._document_of.extend(built.document_of)

    def of(self, write: Write) -> list[Write]:
        """Return a write of a document as writes of its passages, deletions first."""
        before = self._ids.get(write.id)
        if before is None:
            before = self._ids_of_build(write.id)
        passages = list(passages_of(write.document, self._words)) if write.document else []
        after = [passage.id for passage in passages]
        gone = set(before).difference(after)
        self._ids[write.id] = after
        if passages:
            self._document_of.extend(np.full(len(passages), self._next, np.int32))
            self._next += 1
        puts = [Write(write.seq, passage.id, passage) for passage in passages]
        return [*(Write(write.seq, id_, None) for id_ in sorted(gone)), *puts]

    def document_of(self) -> npt.NDArray[np.int32]:
        """Return the document of each passage so far."""
        return self._document_of.rows

    def _ids_of_build(self, id_: str) -> list[str]:
        doc_id = self._documents.find(id_)
        if doc_id is None:
            return []
        rows = self._built.rows_of(np.array([doc_id], np.int64))
        return self._built.state.documents.ids(rows.tolist())
