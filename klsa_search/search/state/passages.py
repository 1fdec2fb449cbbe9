"""The passages of an open index, which are an index of their own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import DocIds, GrowableArray, values_at
from klsa_search.search.engine.mask import Mask
from klsa_search.search.engine.query_terms import UNKNOWN
from klsa_search.search.engine.top_docs import TopDocs
from klsa_search.storage.documents import DocumentReader, passages_of
from klsa_search.storage.write_log import Write

if TYPE_CHECKING:
    from klsa_search.search.state.state import State


@dataclass(frozen=True)
class PassageIndex:
    """Passages in one state of an index; their doc ids are called rows here.

    state        of the index of passages
    document_of  (P,) int32, doc id of the document of each row, ascending
    """

    state: State
    document_of: npt.NDArray[np.int32]

    @classmethod
    def of(
        cls, state: State, document_of: npt.NDArray[np.int32], documents: DocumentReader
    ) -> PassageIndex:
        """Return the passages of documents, whose filters name these."""
        passages, find = cls(state, document_of), documents.existing
        filters = state.filters.finding(lambda ids: passages.rows_of(find(ids)))
        return replace(passages, state=replace(state, filters=filters))

    def rows_of(self, doc_ids: DocIds) -> npt.NDArray[np.int64]:
        """Return the rows of the passages of documents."""
        first = np.searchsorted(self.document_of, doc_ids, "left")
        after = np.searchsorted(self.document_of, doc_ids, "right")
        counts = after - first
        ends = np.cumsum(counts)
        rows = np.arange(counts.sum()) + np.repeat(first - (ends - counts), counts)
        return np.asarray(rows, np.int64)

    def mask_of(self, doc_ids: DocIds) -> Mask:
        """Return the mask of the passages of documents."""
        return Mask.of_documents(self.rows_of(doc_ids), len(self.document_of))

    def mask(self, documents: Mask | None) -> Mask | None:
        """Return the mask of the passages of the documents of a mask."""
        return None if documents is None else Mask(documents.allowed[self.document_of])

    def best(self, top: TopDocs) -> TopDocs:
        """Return the best passage of each document, of passages best first."""
        _, positions = np.unique(self.document_of[top.doc_ids], return_index=True)
        return top.at(np.sort(positions))

    def best_of(self, doc_ids: DocIds, best: TopDocs) -> TopDocs:
        """Return the best passage of each document: row -1 and score 0 if it has none.

        best  at most one passage of each document
        """
        documents, none = self.document_of[best.doc_ids], len(best.doc_ids)
        order = np.argsort(documents)
        positions = values_at(doc_ids, documents[order], order, missing=none)
        return best.joined(best.unscored(np.full(1, -1))).at(positions)

    def terms_of(self, numbers: Iterable[int], terms: Sequence[str]) -> list[int]:
        """Return term numbers of documents as those of passages; negative ones stay.

        terms  of the documents, by number
        """
        of_passages = self.state.snapshot.vocabulary.numbers
        return [n if n < 0 else of_passages.get(terms[n], UNKNOWN) for n in numbers]


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
