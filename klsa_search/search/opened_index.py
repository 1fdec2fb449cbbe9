"""The part of an open index that replaces its state, and reads documents from it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np

from klsa_search.analysis.analyzer import Analyzer
from klsa_search.collection.model import Document
from klsa_search.core.array_types import DocIds
from klsa_search.core.config import Settings
from klsa_search.errors import StoreError
from klsa_search.search.filters.masks import Given as Filter
from klsa_search.search.log_tailer import LogTailer, PointInTime
from klsa_search.search.models import NO_MODELS, Models
from klsa_search.search.pickling import check_process, reopen, reopen_snapshot
from klsa_search.search.restricted_state import restricted_state
from klsa_search.search.snapshot import Snapshot
from klsa_search.search.state import GenerationInfo, State, open_state
from klsa_search.search.writing import Drift
from klsa_search.storage.columns.columns import Fields
from klsa_search.storage.current import current_generation, open_current
from klsa_search.storage.log import LogPosition
from klsa_search.storage.manifest import Manifest


class _Current(NamedTuple):
    """Everything about an index that changes, replaced as a whole.

    state   None once the index is closed
    tailer  None once the index is closed, and for a snapshot
    """

    info: GenerationInfo
    state: State | None
    tailer: LogTailer | None


class OpenedIndex:
    """The state of an open index, and its documents.

    The state is one immutable value, which `refresh` and `close` replace in one step.
    """

    def __init__(
        self,
        generation: Path,
        moment: PointInTime | None = None,
        *,
        models: Models = NO_MODELS,
    ) -> None:
        base = self._open_state(generation)
        self._models, self._process = models, os.getpid()
        tailer = LogTailer(base)
        self._owns = True  # the open documents; snapshots borrow them
        self._refresh_lock = threading.Lock()  # held during a refresh
        self._swap_lock = threading.Lock()  # held briefly; guards writes of _current
        try:
            # No search has run here yet: compile in this process.
            state = tailer.state(base, moment=moment)
        except BaseException:
            base.close()
            raise
        self._current = _Current(state.info, state, tailer if moment is None else None)

    def _open_state(self, generation: Path) -> State:
        """Open a generation as it was built."""
        return open_state(generation)

    @property
    def _info(self) -> GenerationInfo:
        return self._current.info

    @property
    def path(self) -> Path:
        """Return the folder of the generation."""
        return self._info.path

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
        return self._info.manifest

    @property
    def settings(self) -> Settings:
        """Return the settings of the index."""
        return self._info.settings

    @property
    def analyzer(self) -> Analyzer:
        """Return the analyser, which turns texts into terms."""
        return self._info.analyzer

    @property
    def last_write(self) -> LogPosition:
        """Return the last write of the log that is visible to searches."""
        return self._info.last

    @property
    def drift(self) -> Drift:
        """Return the drift of the index from its build."""
        return self._info.drift

    @property
    def max_doc(self) -> int:
        """Return the number of doc ids, including deleted documents: the length of masks.

        Equal to the number of documents until one is deleted or replaced.
        """
        return len(self._opened().snapshot)

    @property
    def segments(self) -> int:
        """Return the number of segments of the postings: that of the build, and of later writes.

        >>> index.segments
        1
        """
        return len(self._opened().snapshot.query_kernel.postings.parts)

    @property
    def misfits(self) -> dict[str, int]:
        """Return the numbers of documents whose value of a field does not fit, by field.

        >>> index.misfits["year"]
        0
        """
        return {name: field.misfits for name, field in self.fields.items()}

    def __len__(self) -> int:
        """Return the number of live documents."""
        return self._info.documents

    def __repr__(self) -> str:
        """Return name, generation and number of documents."""
        return f"<Index {self.name} generation {self.generation}: {len(self)} documents>"

    def __reduce__(self) -> tuple[Callable[..., Self], tuple[object, ...]]:
        """Pickle by path: unpickling opens the index at the same path.

        The result is the index at that time, or for a snapshot the same state of the same
        generation. IndexNotFound if that no longer exists.

        >>> import pickle
        >>> pickle.loads(pickle.dumps(index))
        <Index reports generation 000001: 6 documents>
        """
        state, generation = self._opened(), self.path.absolute()
        trusted = self.settings.tokenizer
        if state.info.restricted:
            raise StoreError("a restricted index cannot be pickled; pickle the index itself")
        if self._current.tailer is not None:
            return reopen, (type(self), generation.parent, trusted)
        moment = PointInTime(
            state.info.last,
            dict(state.query_parser.synonyms),
            state.rules.rules,
            state.info.settings,
        )
        return reopen_snapshot, (type(self), generation, moment, trusted)

    def refresh(self) -> bool:
        """Make writes and new generations of other processes visible; return if any were.

        Searches continue meanwhile; running ones see the state at their start. StoreError if the
        index is or gets closed. Cost: 0.5 ms if nothing changed, else see `add`.

        >>> other = open_index("index/reports")
        >>> other.delete(["tyre", "copy"])
        2
        >>> len(index), index.refresh(), len(index)
        (6, True, 4)
        """
        with self._refresh_lock:
            tailer, before = self._current.tailer, self._opened()
            if tailer is None:
                return False
            if current_generation(self.path.parent) == self.path:
                state = tailer.state(before)
                if state is before:
                    return False
                self._swap(state, tailer)
                return True
            base, state, tailer = open_current(self.path.parent, self._open_with_writes)
            try:
                # Running calls keep the previous state, whose files close with the last of them.
                self._swap(state, tailer)
            except BaseException:
                base.close()
                raise
            return True

    def _open_with_writes(self, generation: Path) -> tuple[State, State, LogTailer]:
        """Open a generation; return it as it was built, with later writes, and their tailer."""
        base = self._open_state(generation)
        try:
            tailer = LogTailer(base)
            return base, tailer.state(base), tailer
        except BaseException:
            base.close()
            raise

    def _swap(self, state: State, tailer: LogTailer) -> None:
        """Replace the current state; StoreError if the index was closed."""
        with self._swap_lock:
            self._opened()
            self._current = _Current(state.info, state, tailer)

    def snapshot(self) -> Self:
        """Return a read-only view of the present state; it closes with this index.

        For several calls that must see the same state while others write.

        >>> before = index.snapshot()
        >>> index.delete(["copy"]), len(before), len(index)
        (1, 6, 5)
        """
        return self._view(self._opened())

    def restricted(self, filter: Filter) -> Self:  # noqa: A002 - as in `search`
        """Return a read-only view of the documents that match a filter; it closes with this index.

        The others are as deleted: no search, count, suggestion, explanation or look-up finds them,
        and words that only they contain are unknown. Document frequencies are those of the view.
        The expansion, the latent space, the mean length and the calibration of quality are those
        of the index, and `manifest`, `judgements` and `synonyms` too. Cost: O(max_doc + V) and the
        words of the documents, or of those that are hidden if they are fewer; recent views are
        cached until the next write. QueryError for an invalid filter.

        >>> tyres = index.restricted('about = "tyres"')
        >>> [hit.id for hit in tyres.search("wet coolant").hits], len(tyres)
        (['tyre', 'grip'], 2)
        >>> tyres.search("coolant").interpretation.unknown
        ('coolant',)
        """
        return self._view(restricted_state(self._opened(), filter))

    def _view(self, state: State) -> Self:
        """Return a read-only index of a state, which closes with this index."""
        view = object.__new__(type(self))  # three times as fast as `copy`
        view.__dict__.update(self.__dict__, _current=_Current(state.info, state, None), _owns=False)
        return view

    def document(self, id: str) -> Document:  # noqa: A002 - the field's own name
        """Return the document with this ID as it was indexed; DocumentNotFound."""
        return self._opened().documents.get(id)

    def ids(self, doc_ids: Iterable[int] | None = None) -> list[str]:
        """Return the IDs of documents by doc id, or of all live documents in order of doc ids."""
        documents = self._opened().documents
        return documents.ids(documents.live_doc_ids() if doc_ids is None else doc_ids)

    @property
    def fields(self) -> Fields:
        """Metadata fields as columns, by name, to make a `mask` for searches.

        A field is a column if it was declared when the index was built, or if all its values are of
        one type; `fields.others` says why others are not. A detected column keeps its type: an
        added value that does not fit counts as missing, and its document as one of its `misfits`.
        The type of a field that first occurs in added documents is that of its first value.

        >>> sorted(index.fields)
        ['about', 'seen', 'year']
        >>> recent = index.fields["seen"].between("2024-03-01") & ~index.fields["year"].equal(2021)
        >>> [hit.id for hit in index.search("coolant", mask=recent).hits]
        ['leak', 'pump']
        """
        return self._opened().fields

    @property
    def arrays(self) -> Snapshot:
        """Return the arrays of the present state, for other packages; not public."""
        return self._opened().snapshot

    def doc_ids(self, ids: Iterable[str]) -> list[int]:
        """Return the doc ids of documents by ID, in order; DocumentNotFound."""
        return self._opened().documents.doc_ids(ids)

    def documents(self, doc_ids: Iterable[int]) -> list[Document]:
        """Return documents by doc id, in order, as they were indexed."""
        return self._opened().documents.at(doc_ids)

    def live_doc_ids(self) -> DocIds:
        """Return the doc ids of all live documents, in the order of `ids`: (n,).

        >>> index.ids(index.live_doc_ids()[:2]) == index.ids()[:2]
        True
        """
        return np.flatnonzero(self._opened().snapshot.live_docs())

    def live_documents(self) -> Iterator[Document]:
        """Yield all live documents as they were indexed, in order of their doc ids.

        >>> [document.id for document in index.live_documents()]
        ['heat', 'pump', 'leak', 'tyre', 'grip', 'copy']
        """
        return self._opened().documents.live_documents()

    def close(self) -> None:
        """Release all files and memory; later calls raise StoreError.

        Running calls of other threads keep their arrays until they end, but raise StoreError if
        they look up an ID after this, as does a running `refresh`.
        """
        with self._swap_lock:
            state = self._current.state
            self._current = _Current(self._info, None, None)
        if state is not None and self._owns:
            state.close()

    def __enter__(self) -> Self:
        """Return the index, to close it at the end of a block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the index."""
        self.close()

    def _check_writable(self) -> None:
        """Raise StoreError if the index is a snapshot, or closed."""
        tailer = self._current.tailer
        self._opened()
        if tailer is None:
            raise StoreError("a snapshot is read-only; write to the index itself")

    def _opened(self) -> State:
        check_process(self._process, self.path)
        state = self._current.state
        if state is None:
            raise StoreError(
                f"index `{self.name}` is closed; open it again with "
                f"open_index({str(self.path.parent)!r})"
            )
        return state
