"""The reader of an index that has one generation: holds its state, and replaces it by refreshes."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from klsa_search.analysis.analyzer import Analyzer
from klsa_search.collection.model import Document
from klsa_search.core.array_types import DocIds
from klsa_search.core.config import Settings
from klsa_search.errors import StoreError, WritingRefused
from klsa_search.kernels.segments import aligned
from klsa_search.kernels.vector_space import VectorSpaces
from klsa_search.kernels.vocabulary import Vocabulary
from klsa_search.lowrank import sparse_expansion
from klsa_search.search.collection_statistics import Weighing
from klsa_search.search.log_tailer import LogTailer, PointInTime
from klsa_search.search.rankers import needs_eigenvectors
from klsa_search.search.reader import check_process
from klsa_search.search.state import GenerationInfo, State, open_state
from klsa_search.search.writing import Drift
from klsa_search.storage.columns.columns import Fields
from klsa_search.storage.current import current_generation, open_current
from klsa_search.storage.documents import DocumentReader
from klsa_search.storage.log import LogPosition
from klsa_search.storage.manifest import Manifest


class _Current(NamedTuple):
    """Everything about an index that changes, replaced as a whole.

    state   None once the index is closed
    tailer  None once the index is closed, and for a view of one state
    """

    info: GenerationInfo
    state: State | None
    tailer: LogTailer | None


class GenerationReader:
    """Reads a generation of an index with later writes: see `Reader`.

    The state is one immutable value, which `refresh` and `close` replace in one step.
    """

    def __init__(self, current: _Current, vocabulary: Vocabulary | None, *, owns: bool) -> None:
        self._current = current
        self._vocabulary = vocabulary
        self._owns = owns  # the open documents; views borrow them
        self._process = os.getpid()
        self._refresh_lock = threading.Lock()  # held during a refresh
        self._swap_lock = threading.Lock()  # held briefly; guards writes of _current

    @classmethod
    def open(
        cls,
        generation: Path,
        moment: PointInTime | None = None,
        vocabulary: Vocabulary | None = None,
    ) -> GenerationReader:
        """Open a generation with its writes.

        moment      until which writes are read; the result is a view then
        vocabulary  terms of the generation, by default those that it stores
        """
        _, state, tailer = _open(generation, vocabulary, moment)
        current = _Current(state.info, state, tailer if moment is None else None)
        return cls(current, vocabulary, owns=True)

    @classmethod
    def of_state(cls, state: State) -> GenerationReader:
        """Return a reader of one state, which closes with the one that opened it."""
        return cls(_Current(state.info, state, None), None, owns=False)

    def view(self) -> GenerationReader:
        """Return a reader of the present state, which closes with this one."""
        return GenerationReader.of_state(self.state())

    @property
    def is_view(self) -> bool:
        """Return whether it reads one state only."""
        return self._current.tailer is None

    @property
    def info(self) -> GenerationInfo:
        """Return what is known of the present state, also once it is closed."""
        return self._current.info

    def state(self, operation: str = "this") -> State:
        """Return the present state; StoreError once it is closed."""
        check_process(self._process, self.path)
        state = self._current.state
        if state is None:
            raise StoreError(
                f"index `{self.name}` is closed; open it again with "
                f"open_index({str(self.path.parent)!r})"
            )
        return state

    def refresh(self) -> bool:
        """Read writes and new generations of other processes; return if there were any."""
        with self._refresh_lock:
            tailer, before = self._current.tailer, self.state()
            if tailer is None:
                return False
            if current_generation(self.path.parent) == self.path:
                state = tailer.state(before)
                if state is before:
                    return False
                self._swap(state, tailer)
                return True
            base, state, tailer = open_current(
                self.path.parent, lambda generation: _open(generation, self._vocabulary)
            )
            try:
                # Running calls keep the previous state, whose files close with the last of them.
                self._swap(state, tailer)
            except BaseException:
                base.close()
                raise
            return True

    def _swap(self, state: State, tailer: LogTailer) -> None:
        """Replace the current state; StoreError if the index was closed."""
        with self._swap_lock:
            self.state()
            self._current = _Current(state.info, state, tailer)

    def configure(self, synonyms: Mapping[str, Sequence[str]], settings: Settings) -> None:
        """Use synonyms and query settings of all partitions, from the next `weigh` on."""
        with self._refresh_lock:
            self._tailer().configure(synonyms, settings)

    def weigh(self, weighing: Weighing) -> None:
        """Weigh words by the documents of all partitions from now on."""
        with self._refresh_lock:
            tailer = self._tailer()
            self._swap(tailer.weighed(self.state(), weighing), tailer)

    def expect_writes(self) -> None:
        """Keep what refreshes fold from now on, for `save`."""
        if self._current.tailer is not None:
            self._current.tailer.saves = True

    def save(self) -> None:
        """Store what was folded in files of the generation, for readers that open it later."""
        with self._refresh_lock:
            if self._current.tailer is not None:
                self._current.tailer.save()

    def _tailer(self) -> LogTailer:
        tailer = self._current.tailer
        assert tailer is not None
        return tailer

    def close(self) -> None:
        """Release all files and memory, unless it is a view."""
        with self._swap_lock:
            state = self._current.state
            self._current = _Current(self.info, None, None)
        if state is not None and self._owns:
            state.close()

    def check_writable(self) -> None:
        """Raise StoreError if it is a view, or closed."""
        is_view = self.is_view
        self.state()
        if is_view:
            raise StoreError("a snapshot is read-only; write to the index itself")

    def check_room(self, puts: int) -> None:
        """Raise WritingRefused if so many documents cannot be added.

        Checked before a batch is logged: a log that cannot be applied would make the index
        unusable.
        """
        state, name = self.state(), self.name
        if field := needs_eigenvectors(state.info.settings):
            raise WritingRefused(
                f"index `{name}` is read-only: {field} = {getattr(state.info.settings, field)} "
                "reads eigenvectors, which documents written after the build do not have; rebuild "
                "it with the spectral function gvsm, head 0 and another ranker to allow writes"
            )
        # The first later document has the next aligned doc id.
        used = max(len(state.snapshot), aligned(state.info.manifest.counts.documents))
        if puts and used + puts > sparse_expansion.MAX_DOCUMENTS:
            raise WritingRefused(
                f"index `{name}` is full: {used:,} of {sparse_expansion.MAX_DOCUMENTS:,} doc "
                f"ids are in use, and {puts:,} more documents were given; `klsa-index "
                f"refit {name}` frees those of deleted documents, or divide the "
                "documents among several indexes"
            )

    @property
    def path(self) -> Path:
        """Return the folder of the generation."""
        return self.info.path

    @property
    def name(self) -> str:
        """Return the name of the index."""
        return self.path.parent.name

    @property
    def generation(self) -> str:
        """Return the name of the generation."""
        return self.path.name

    @property
    def manifest(self) -> Manifest:
        """Return the manifest of the generation."""
        return self.info.manifest

    @property
    def settings(self) -> Settings:
        """Return the settings of the index."""
        return self.info.settings

    @property
    def analyzer(self) -> Analyzer:
        """Return the analyser."""
        return self.info.analyzer

    @property
    def last_write(self) -> LogPosition:
        """Return the last write of the log in the present state."""
        return self.info.last

    @property
    def drift(self) -> Drift:
        """Return the drift from the build."""
        return self.info.drift

    @property
    def fields(self) -> Fields:
        """Return the metadata fields that are columns."""
        return self.state().fields

    @property
    def misfits(self) -> dict[str, int]:
        """Return the numbers of documents whose value of a field does not fit, by field."""
        return {name: field.misfits for name, field in self.fields.items()}

    @property
    def max_doc(self) -> int:
        """Return the number of doc ids."""
        return len(self.state().snapshot)

    @property
    def segments(self) -> int:
        """Return the number of segments of the postings."""
        return len(self.state().snapshot.query_kernel.postings.parts)

    @property
    def synonyms(self) -> Mapping[str, Sequence[str]]:
        """Return the synonyms of the index."""
        return self.state().query_parser.synonyms

    def __len__(self) -> int:
        """Return the number of live documents."""
        return self.info.documents

    def document(self, id_: str) -> Document:
        """Return the document with this ID; DocumentNotFound."""
        return self.state().documents.get(id_)

    def documents(self, doc_ids: Iterable[int]) -> list[Document]:
        """Return documents by doc id, in order."""
        return self.state().documents.at(doc_ids)

    def ids(self, doc_ids: Iterable[int] | None = None) -> list[str]:
        """Return the IDs of documents by doc id, by default of all live ones."""
        documents = self.state().documents
        return documents.ids(documents.live_doc_ids() if doc_ids is None else doc_ids)

    def doc_ids(self, ids: Iterable[str]) -> list[int]:
        """Return the doc ids of documents by ID, in order; DocumentNotFound."""
        return self.state().documents.doc_ids(ids)

    def live_doc_ids(self) -> DocIds:
        """Return the doc ids of all live documents: (n,)."""
        return np.flatnonzero(self.state().snapshot.live_docs())

    def live_documents(self) -> Iterator[Document]:
        """Yield all live documents, in order of their doc ids."""
        return self.state().documents.live_documents()

    def document_readers(self) -> list[DocumentReader]:
        """Return the reader of the present documents."""
        return [self.state().documents]

    def vector_spaces(self) -> VectorSpaces:
        """Return the spaces of vectors."""
        return self.state().snapshot.vectors


def _open(
    generation: Path, vocabulary: Vocabulary | None, moment: PointInTime | None = None
) -> tuple[State, State, LogTailer]:
    """Open a generation; return it as it was built, with later writes, and their tailer."""
    base = open_state(generation, vocabulary)
    try:
        tailer = LogTailer(base)
        return base, tailer.state(base, moment=moment), tailer
    except BaseException:
        base.close()
        raise
