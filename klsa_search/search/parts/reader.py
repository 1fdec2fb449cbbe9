"""What an open index reads: one generation, or the partitions of an index, in a present state."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol, Unpack

from klsa_search.analysis.analyzer import Analyzer
from klsa_search.collection.model import Document
from klsa_search.core.array_types import DocIds, Scores
from klsa_search.core.config import SearchSettings, Settings
from klsa_search.core.keywords import SearchParameters
from klsa_search.core.parameters import SpellingName
from klsa_search.errors import StoreError
from klsa_search.search.costs import QueryCounts
from klsa_search.search.filters.masks import FilterLike
from klsa_search.search.models import Models
from klsa_search.search.pages.excerpts import Excerpt
from klsa_search.search.pages.results import Hit
from klsa_search.search.parts.part_search import PartSearches
from klsa_search.search.state.state import State
from klsa_search.search.suggest.suggester import Candidate
from klsa_search.search.writing import Drift
from klsa_search.storage.columns.columns import Fields
from klsa_search.storage.documents import DocumentReader
from klsa_search.storage.log import LogPosition
from klsa_search.storage.manifest import Manifest, SpaceEntry
from klsa_search.storage.rules import Rule


class Reader(Protocol):
    """The documents of an open index in a present state; `Index` has many of these methods.

    Readers pickle by path, or by path and moment if they are views.
    """

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
    def generations(self) -> dict[Path, Manifest]:
        """Return the manifests of the generations that are read, by their folders."""

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

    @property
    def rules(self) -> Sequence[Rule]:
        """Return the rules of the index."""

    def rule_warnings(self) -> list[str]:
        """Return what the rules refer to and the index does not have, such as documents.

        >>> index.put_rule({"id": "soon", "then": {"pin": [{"id": "later", "position": 1}]}})
        >>> index.rule_warnings()
        ["rule 'soon': the index has no document 'later'"]
        """

    @property
    def passage_count(self) -> int | None:
        """Return the number of passages; None if documents are not divided."""

    @property
    def space_entries(self) -> tuple[SpaceEntry, ...]:
        """Return the spaces of vectors, with the numbers of live documents. Cost: O(max_doc)."""

    def __len__(self) -> int:
        """Return the number of live documents."""

    def state(self, operation: str = "this") -> State:
        """Return the state of all documents, of which partitions have none.

        operation  that needs it, as an error names it
        PartitionsUnsupported if the documents are in partitions; StoreError if it is closed.
        """

    def searches(self, models: Models) -> PartSearches:
        """Return a new search in the present state of all parts."""

    @property
    def partitions(self) -> tuple[Reader, ...]:
        """Return views of the partitions in one state, by number; of the only one if it is one."""

    def view(self) -> Reader:
        """Return a reader of the present state, which closes with this one."""

    def restricted(self, filter_: FilterLike) -> Reader:
        """Return a view of the documents that match a filter: see `Index.restricted`."""

    def check_writable(self) -> None:
        """Raise StoreError if it is a view, or closed."""

    def document_readers(self) -> list[DocumentReader]:
        """Return readers of the present documents, one for each partition."""

    @property
    def built_spaces(self) -> Sequence[SpaceEntry]:
        """Return the spaces of vectors of the build, with the fingerprints of their models."""

    @property
    def dimensions(self) -> Mapping[str, int]:
        """Return the dimensions of the present spaces of vectors, by name."""

    def is_quick(self, query: str, k: int) -> bool:
        """Return whether a search by words takes at most 1 ms: see `Index.is_quick`."""

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

    def close(self) -> None:
        """Release all files and memory; later calls raise StoreError.

        Running calls of other threads keep their arrays until they end, but raise StoreError if
        they look up an ID after this, as does a running `refresh`.
        """

    def document(self, id: str) -> Document:  # noqa: A002 - the field's own name
        """Return the document with this ID as it was indexed; DocumentNotFound."""

    def ids(self, doc_ids: Iterable[int] | None = None) -> list[str]:
        """Return the IDs of documents by doc id, or of all live documents in order of doc ids."""

    def doc_ids(self, ids: Iterable[str]) -> list[int]:
        """Return the doc ids of documents by ID, in order; DocumentNotFound."""

    def documents(self, doc_ids: Iterable[int]) -> list[Document]:
        """Return documents by doc id, in order, as they were indexed."""

    def live_doc_ids(self) -> DocIds:
        """Return the doc ids of all live documents, in the order of `ids`: (n,).

        >>> index.ids(index.live_doc_ids()[:2]) == index.ids()[:2]
        True
        """

    def live_documents(self) -> Iterator[Document]:
        """Yield all live documents as they were indexed, in order of their doc ids.

        >>> [document.id for document in index.live_documents()]
        ['heat', 'pump', 'leak', 'tyre', 'grip', 'copy']
        """

    def hits(
        self,
        doc_ids: DocIds,
        scores: Scores,
        terms: Collection[str],
        weights: Mapping[str, float] | None = None,
    ) -> tuple[Hit, ...]:
        """Return hits of ranked documents, in order, with snippets for the given terms.

        terms, weights  as `snippet` takes them

        >>> doc_ids, scores = index.rank("wet roads", k=1)
        >>> [hit.id for hit in index.hits(doc_ids, scores, {"road"})]
        ['tyre']
        """

    def excerpt(
        self,
        id: str,  # noqa: A002 - the field's own name
        *,
        span: tuple[int, int] | None = None,
        page: int | None = None,
    ) -> Excerpt:
        """Return a passage by its ID, or a part of a document, as citations name them.

        id     of a document, or of a passage, such as `manual#0-1822`; a document with exactly this
               ID wins
        span   first character, and the one after the last; with the ID of a document
        page   number of a page, from 1, if the text has page breaks; with the ID of a document
        Without span and page, the ID of a document returns its whole text. DocumentNotFound, also
        for the ID of a passage that the document no longer has; QueryError for a span or page
        outside the text.

        >>> index.excerpt("leak#19-28").text
        'old hoses'
        """

    def candidates(
        self, typed: str, k: int, filter_: FilterLike | None = None
    ) -> Sequence[Iterator[Candidate]]:
        """Return completions of the typed text by kind: see `Suggester.candidates`."""

    def parameters(self, /, **parameters: Unpack[SearchParameters]) -> SearchSettings:
        """Return search parameters, completed by those of the index; QueryError if invalid."""

    def query_counts(
        self,
        query: str,
        *,
        operators: bool | None = None,
        spelling: SpellingName | None = None,
        filter: FilterLike | None = None,  # noqa: A002 - as in `search`
    ) -> QueryCounts:
        """Return counts of what makes a query expensive. Cost: 3 to 50 µs.

        operators, spelling, filter  as of `search`

        >>> index.query_counts('"wet roads" tyres')
        QueryCounts(words=3, operators=1, ..., phrase_documents=3, ..., matches=6, ...)
        """

    def warm_up(self) -> None:
        """Load what the first queries need, by running some: 3 ms with 100,000 documents."""


def opened_before_fork(path: Path) -> StoreError:
    """Return the error of an index that was opened by a process from which this one was forked.

    path  in the folder of the index
    Locks that threads of that process had acquired are never released here.
    """
    return StoreError(
        f"index `{path.parent.name}` was opened before this process was forked; open it again "
        "in this process with open_index, or start processes by spawn or forkserver"
    )
