"""The part of an open index that reads its description and its documents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Self, TypeVar

from klsa_search.analysis.analyzer import Analyzer
from klsa_search.analysis.tokenizers import trust
from klsa_search.collection.model import Document
from klsa_search.core.array_types import DocIds
from klsa_search.core.config import Settings
from klsa_search.errors import IndexNotFound, StoreError
from klsa_search.search.filters.masks import FilterLike
from klsa_search.search.generation_reader import GenerationReader
from klsa_search.search.log_tailer import PointInTime
from klsa_search.search.models import NO_MODELS, Models
from klsa_search.search.reader import Reader
from klsa_search.search.restricted_state import restricted_state
from klsa_search.search.snapshot import Snapshot
from klsa_search.search.state import State
from klsa_search.search.writing import Drift
from klsa_search.storage.columns.columns import Fields
from klsa_search.storage.current import current_generation
from klsa_search.storage.directories import is_index
from klsa_search.storage.log import LogPosition
from klsa_search.storage.manifest import Manifest

Opened = TypeVar("Opened")


class OpenedIndex:
    """An open index: its state, held by a reader, and its documents.

    Made by `open_index`. A view of one state is an index with a reader of that state.
    """

    def __init__(self, reader: Reader, models: Models = NO_MODELS) -> None:
        self._reader, self._models = reader, models

    @property
    def path(self) -> Path:
        """Return the folder of the generation."""
        return self._reader.path

    @property
    def name(self) -> str:
        """Return the name of the index."""
        return self._reader.name

    @property
    def generation(self) -> str:
        """Return the name of the generation."""
        return self._reader.generation

    @property
    def manifest(self) -> Manifest:
        """Return the manifest of the generation."""
        return self._reader.manifest

    @property
    def settings(self) -> Settings:
        """Return the settings of the index."""
        return self._reader.settings

    @property
    def analyzer(self) -> Analyzer:
        """Return the analyser, which turns texts into terms."""
        return self._reader.analyzer

    @property
    def last_write(self) -> LogPosition:
        """Return the last write of the log that is visible to searches."""
        return self._reader.last_write

    @property
    def drift(self) -> Drift:
        """Return the drift of the index from its build."""
        return self._reader.drift

    @property
    def max_doc(self) -> int:
        """Return the number of doc ids, including deleted documents: the length of masks.

        Equal to the number of documents until one is deleted or replaced.
        """
        return self._reader.max_doc

    @property
    def segments(self) -> int:
        """Return the number of segments of the postings: that of the build, and of later writes.

        >>> index.segments
        1
        """
        return self._reader.segments

    @property
    def misfits(self) -> dict[str, int]:
        """Return the numbers of documents whose value of a field does not fit, by field.

        >>> index.misfits["year"]
        0
        """
        return self._reader.misfits

    def __len__(self) -> int:
        """Return the number of live documents."""
        return len(self._reader)

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
        state, generation = self._state(), self.path.absolute()
        trusted = self.settings.tokenizer
        if state.info.restricted:
            raise StoreError("a restricted index cannot be pickled; pickle the index itself")
        if not self._reader.is_view:
            return _reopen, (type(self), generation.parent, trusted)
        moment = PointInTime(
            state.info.last,
            dict(state.query_parser.synonyms),
            state.rules.rules,
            state.info.settings,
        )
        return _reopen_snapshot, (type(self), generation, moment, trusted)

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
        return self._reader.refresh()

    def snapshot(self) -> Self:
        """Return a read-only view of the present state; it closes with this index.

        For several calls that must see the same state while others write.

        >>> before = index.snapshot()
        >>> index.delete(["copy"]), len(before), len(index)
        (1, 6, 5)
        """
        return type(self)(self._reader.view(), self._models)

    def restricted(self, filter: FilterLike) -> Self:  # noqa: A002 - as in `search`
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
        state = self._state("restricted views and tenant tokens")
        return self._view(restricted_state(state, filter))

    def _view(self, state: State) -> Self:
        """Return a read-only index of a state, which closes with this index."""
        return type(self)(GenerationReader.of_state(state), self._models)

    def document(self, id: str) -> Document:  # noqa: A002 - the field's own name
        """Return the document with this ID as it was indexed; DocumentNotFound."""
        return self._reader.document(id)

    def ids(self, doc_ids: Iterable[int] | None = None) -> list[str]:
        """Return the IDs of documents by doc id, or of all live documents in order of doc ids."""
        return self._reader.ids(doc_ids)

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
        return self._reader.fields

    @property
    def arrays(self) -> Snapshot:
        """Return the arrays of the present state, for other packages; not public."""
        return self._state("exploration, which needs all documents in one place").snapshot

    def doc_ids(self, ids: Iterable[str]) -> list[int]:
        """Return the doc ids of documents by ID, in order; DocumentNotFound."""
        return self._reader.doc_ids(ids)

    def documents(self, doc_ids: Iterable[int]) -> list[Document]:
        """Return documents by doc id, in order, as they were indexed."""
        return self._reader.documents(doc_ids)

    def live_doc_ids(self) -> DocIds:
        """Return the doc ids of all live documents, in the order of `ids`: (n,).

        >>> index.ids(index.live_doc_ids()[:2]) == index.ids()[:2]
        True
        """
        return self._reader.live_doc_ids()

    def live_documents(self) -> Iterator[Document]:
        """Yield all live documents as they were indexed, in order of their doc ids.

        >>> [document.id for document in index.live_documents()]
        ['heat', 'pump', 'leak', 'tyre', 'grip', 'copy']
        """
        return self._reader.live_documents()

    def close(self) -> None:
        """Release all files and memory; later calls raise StoreError.

        Running calls of other threads keep their arrays until they end, but raise StoreError if
        they look up an ID after this, as does a running `refresh`.
        """
        self._reader.close()

    def __enter__(self) -> Self:
        """Return the index, to close it at the end of a block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the index."""
        self.close()

    def _state(self, operation: str = "this") -> State:
        """Return the present state; `operation` is what needs it: see `Reader.state`."""
        return self._reader.state(operation)


def _reopen(cls: Callable[[Reader], Opened], folder: Path, tokenizer: str | None) -> Opened:
    """Open the current generation of the index in a folder, with later writes.

    tokenizer  trusted by the process that pickled the index; unpickling trusts that process
    """
    if tokenizer is not None:
        trust(tokenizer)
    if not is_index(folder):
        raise IndexNotFound(
            f"no index at `{folder}`, the path of the pickled index; restore the "
            "folder, or open the index with open_index"
        )
    return cls(GenerationReader.open(current_generation(folder)))


def _reopen_snapshot(
    cls: Callable[[Reader], Opened],
    generation: Path,
    moment: PointInTime,
    tokenizer: str | None,
) -> Opened:
    """Open a generation as it was at a moment, without later writes."""
    if tokenizer is not None:
        trust(tokenizer)
    if not generation.is_dir():
        raise IndexNotFound(
            f"generation `{generation}` of the pickled snapshot no longer exists; "
            "open the index and take a new snapshot"
        )
    return cls(GenerationReader.open(generation, moment))
