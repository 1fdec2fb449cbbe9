"""What an open index reads: one generation, or the partitions of an index, in a present state."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from klsa_search.analysis.analyzer import Analyzer
from klsa_search.collection.model import Document
from klsa_search.core.array_types import DocIds
from klsa_search.core.config import Settings
from klsa_search.errors import StoreError
from klsa_search.kernels.vector_space import VectorSpaces
from klsa_search.search.state import State
from klsa_search.search.writing import Drift
from klsa_search.storage.columns.columns import Fields
from klsa_search.storage.documents import DocumentReader
from klsa_search.storage.log import LogPosition
from klsa_search.storage.manifest import Manifest


class Reader(Protocol):
    """The state of an open index, and its documents; `Index` has the methods of the same names."""

    @property
    def is_view(self) -> bool:
        """Return whether it reads one state only, so that it is read-only."""

    @property
    def name(self) -> str:
        """Return the name of the index."""

    @property
    def path(self) -> Path:
        """Return the folder of the generation, or the file that names the partitions."""

    @property
    def generation(self) -> str:
        """Return the name of the generation, or of the build of all partitions."""

    @property
    def manifest(self) -> Manifest:
        """Return the manifest of all documents of the build."""

    @property
    def settings(self) -> Settings:
        """Return the settings of the index."""

    @property
    def analyzer(self) -> Analyzer:
        """Return the analyser."""

    @property
    def last_write(self) -> LogPosition:
        """Return the last write that the state has."""

    @property
    def drift(self) -> Drift:
        """Return the drift from the build."""

    @property
    def fields(self) -> Fields:
        """Return the metadata fields that are columns."""

    @property
    def misfits(self) -> dict[str, int]:
        """Return the numbers of documents whose value of a field does not fit, by field."""

    @property
    def max_doc(self) -> int:
        """Return the number of doc ids."""

    @property
    def segments(self) -> int:
        """Return the number of segments of the postings."""

    @property
    def synonyms(self) -> Mapping[str, Sequence[str]]:
        """Return the synonyms of the index."""

    def __len__(self) -> int:
        """Return the number of live documents."""

    def state(self, operation: str = "this") -> State:
        """Return the state of all documents, of which partitions have none.

        operation  that needs it, as an error names it
        PartitionsUnsupported if the documents are in partitions; StoreError if it is closed.
        """

    def view(self) -> Reader:
        """Return a reader of the present state, which closes with this one."""

    def refresh(self) -> bool:
        """Read writes and builds of other processes; return if there were any."""

    def close(self) -> None:
        """Release all files and memory."""

    def check_writable(self) -> None:
        """Raise StoreError if it is a view, or closed."""

    def check_room(self, puts: int) -> None:
        """Raise WritingRefused if so many documents cannot be added."""

    def expect_writes(self) -> None:
        """Keep what refreshes fold from now on, for `save`."""

    def save(self) -> None:
        """Store what was folded, for readers that open the index later."""

    def document(self, id_: str) -> Document:
        """Return the document with this ID; DocumentNotFound."""

    def documents(self, doc_ids: Iterable[int]) -> list[Document]:
        """Return documents by doc id, in order."""

    def ids(self, doc_ids: Iterable[int] | None = None) -> list[str]:
        """Return the IDs of documents by doc id, by default of all live ones."""

    def doc_ids(self, ids: Iterable[str]) -> list[int]:
        """Return the doc ids of documents by ID, in order; DocumentNotFound."""

    def live_doc_ids(self) -> DocIds:
        """Return the doc ids of all live documents: (n,)."""

    def live_documents(self) -> Iterator[Document]:
        """Yield all live documents."""

    def document_readers(self) -> list[DocumentReader]:
        """Return readers of the present documents, one for each partition."""

    def vector_spaces(self) -> VectorSpaces:
        """Return the spaces of vectors by name."""


def check_process(opened_in: int, path: Path) -> None:
    """Raise StoreError if an index was opened by another process, from which this one was forked.

    path  in the folder of the index
    Locks that threads of that process had acquired are never released here.
    """
    if opened_in != os.getpid():
        raise StoreError(
            f"index `{path.parent.name}` was opened before this process was forked; open it again "
            "in this process with open_index, or start processes by spawn or forkserver"
        )
