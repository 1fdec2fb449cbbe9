"""The open index: the front door of searching."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from klsa_search.analysis import Analyzer
from klsa_search.arrays import Positions, Scores
from klsa_search.collection import Document
from klsa_search.config import SearchSettings
from klsa_search.errors import QueryError, StoreError
from klsa_search.search import engine
from klsa_search.search.batch import in_parallel
from klsa_search.search.parameters import Parameters, whole_number
from klsa_search.search.passages import Passages
from klsa_search.search.rankers import USES
from klsa_search.search.ranking import Ranking
from klsa_search.search.results import Hit, Results
from klsa_search.search.snapshot import Snapshot, open_snapshot
from klsa_search.store import DocumentReader, check_once, read_manifest
from klsa_search.store.fields.columns import Field, open_fields
from klsa_search.store.generations import check_sizes

Mask = npt.NDArray[np.bool_]


class Index:
    """One generation of an index, opened; immutable, and safe to share between threads.

    Arrays are memory-mapped, so opening costs the vocabulary and little more, once all files were
    found to be what was built: see `open_index`. `ranker`, `alpha`, `z` and `dimensions` of each
    call default to the settings the index was built with. StoreError from every call but the
    length once it is closed.
    """

    def __init__(self, generation: Path) -> None:
        self.path = generation
        self.name = generation.parent.name
        self.generation = generation.name
        self.manifest = read_manifest(generation)
        check_sizes(generation, self.manifest)
        check_once(generation, self.manifest)
        self.settings = self.manifest.checked_settings()
        self.analyzer = Analyzer(self.settings)
        self._defaults = SearchSettings(
            **{name: getattr(self.settings, name) for name in SearchSettings.model_fields}
        )
        documents = DocumentReader(generation)
        snapshot = open_snapshot(generation, self.settings)
        self._held: _Opened | None = _Opened(
            snapshot,
            Ranking(snapshot, self.analyzer, self._defaults),
            Parameters(self.name, self._defaults, snapshot),
            documents,
            Passages(documents, snapshot.forward, self.analyzer, snapshot.vocabulary),
            open_fields(generation, self.manifest.fields, len(snapshot)),
        )

    def __len__(self) -> int:
        """N, the number of documents."""
        return self.manifest.counts.documents

    def __repr__(self) -> str:
        """Name, generation and size."""
        return f"<Index {self.name} generation {self.generation}: {len(self)} documents>"

    def scores(self, query: str, *, dimensions: int | None = None, **parameters: Any) -> Scores:
        """Score every document: (N,) float32, in document order.

        query       plain text; terms the collection does not hold are passed over
        dimensions  eigenvectors to use, at most those that were built
        parameters  fields of `SearchSettings`: `ranker`, `alpha`, `z`, `spectral`, ...
        QueryError for a parameter outside its limits; an empty query scores 0 everywhere.
        """
        opened = self._opened()
        chosen = opened.parameters.checked(parameters)
        used = opened.parameters.dimensions(dimensions, chosen)
        return opened.ranking.scores(query, chosen, used)

    def rank(
        self,
        query: str,
        k: int = 10,
        *,
        mask: Mask | None = None,
        dimensions: int | None = None,
        **parameters: Any,
    ) -> tuple[Positions, Scores]:
        """Positions and scores of the k best documents, best first.

        mask  documents that may be answered, all by default: (N,) bool; it changes no score
        Only documents with a score above 0; ties by document order. See `scores`.
        """
        opened = self._opened()
        k = whole_number("k", k)
        chosen = opened.parameters.checked(parameters)
        used = opened.parameters.dimensions(dimensions, chosen)
        (top,) = opened.ranking.top([query], k, chosen, used, self._checked(mask))
        return top.positions, top.scores

    def rank_many(
        self,
        queries: Iterable[str],
        k: int = 10,
        *,
        threads: int = 1,
        mask: Mask | None = None,
        dimensions: int | None = None,
        **parameters: Any,
    ) -> list[tuple[Positions, Scores]]:
        """Rank for each query, in their order: what `rank` gives, whatever the number of threads.

        With the ranker bm25, and by default where D is cut, the threads work at the same time, in
        code that needs no GIL.
        """
        opened = self._opened()
        k = whole_number("k", k)
        chosen = opened.parameters.checked(parameters)
        used = opened.parameters.dimensions(dimensions, chosen)

        allowed = self._checked(mask)

        def work(some: Sequence[str]) -> list[tuple[Positions, Scores]]:
            found = opened.ranking.top(some, k, chosen, used, allowed)
            return [(top.positions, top.scores) for top in found]

        return in_parallel(work, queries, whole_number("threads", threads))

    def search(
        self,
        query: str,
        k: int = 10,
        *,
        mask: Mask | None = None,
        dimensions: int | None = None,
        **parameters: Any,
    ) -> Results:
        """Return the k best documents with titles, snippets and metadata. See `rank`."""
        opened = self._opened()
        k = whole_number("k", k)
        chosen = opened.parameters.checked(parameters)
        used = opened.parameters.dimensions(dimensions, chosen)
        allowed = self._checked(mask)
        (top,) = opened.ranking.top([query], k, chosen, used, allowed, totals=True)
        terms = set(self.analyzer.terms(query))
        hits = _hits(opened, top.positions, top.scores, terms, None)
        return Results(
            query=query,
            hits=hits,
            total=top.total,
            ranker=chosen.ranker,
            parameters={
                name: used if name == "dimensions" else getattr(chosen, name)
                for name in USES[chosen.ranker]
            },
        )

    def hits(
        self,
        positions: Positions,
        scores: Scores,
        terms: Collection[str],
        weights: Mapping[str, float] | None = None,
    ) -> tuple[Hit, ...]:
        """Hits of ranked documents, in their order, with the passages that show some terms best.

        terms, weights  as `snippet` takes them

        >>> positions, scores = index.rank("wet roads", k=1)
        >>> [hit.id for hit in index.hits(positions, scores, {"road"})]
        ['tyre']
        """
        return _hits(self._opened(), positions, scores, terms, weights)

    def search_many(
        self,
        queries: Iterable[str],
        k: int = 10,
        *,
        threads: int = 1,
        mask: Mask | None = None,
        dimensions: int | None = None,
        **parameters: Any,
    ) -> list[Results]:
        """Search for each query, in their order: what `search` gives. See `rank_many`."""

        def work(some: Sequence[str]) -> list[Results]:
            given = {"mask": mask, "dimensions": dimensions, **parameters}
            return [self.search(query, k, **given) for query in some]

        return in_parallel(work, queries, whole_number("threads", threads))

    def document(self, id: str) -> Document:  # noqa: A002 - the field's own name
        """Return the document of that id as it was indexed; DocumentNotFound."""
        return self._opened().documents.get(id)

    def ids(self, positions: Iterable[int] | None = None) -> list[str]:
        """Ids of the documents at these positions, or of all, in document order."""
        documents = self._opened().documents
        return documents.all_ids() if positions is None else documents.ids(positions)

    @property
    def fields(self) -> Mapping[str, Field]:
        """Metadata fields as columns, by name: what `mask` of a search is made of.

        A field is a column if it was declared when the index was built, or if all its values are
        of one type; `manifest.fields` says why any other is none.

        >>> sorted(index.fields)
        ['about', 'seen', 'year']
        >>> recent = index.fields["seen"].between("2024-03-01") & ~index.fields["year"].equal(2021)
        >>> [hit.id for hit in index.search("coolant", mask=recent).hits]
        ['leak', 'pump']
        """
        return self._opened().fields

    @property
    def snapshot(self) -> Snapshot:
        """The arrays of the index: what a room above reads its documents and terms from."""
        return self._opened().snapshot

    def positions(self, ids: Iterable[str]) -> list[int]:
        """Positions of the documents of these ids, in their order; DocumentNotFound."""
        return self._opened().documents.positions(ids)

    def documents(self, positions: Iterable[int]) -> list[Document]:
        """Documents at these positions, in their order, as they were indexed."""
        return self._opened().documents.at(positions)

    def parameters(self, **given: Any) -> SearchSettings:
        """Fill up parameters of a search by the index's own; QueryError for what it refuses."""
        return self._opened().parameters.checked(given)

    def warm_up(self) -> None:
        """Compile what the first queries would wait for: half a minute, or 0.3 s from the cache."""
        for ranker in ("bm25", self._defaults.ranker):
            self.rank("", ranker=ranker)
            self.rank_many([""], ranker=ranker)
        first = np.zeros(min(len(self), 1), np.int64)
        self.hits(first, np.zeros(len(first), np.float32), ())

    def close(self) -> None:
        """Let go of all files and memory; any call afterwards is refused with a StoreError.

        A call that another thread is in keeps its arrays until it ends; one that has yet to look up
        an id is refused there.
        """
        opened, self._held = self._held, None
        if opened is not None:
            opened.documents.close()

    def _checked(self, mask: Mask | None) -> engine.Mask | None:
        if mask is None:
            return None
        if not isinstance(mask, np.ndarray):
            fact = f"a {type(mask).__name__}"
        elif mask.dtype != np.bool_ or mask.shape != (len(self),):
            fact = f"of shape {mask.shape} and type {mask.dtype}"
        else:
            return engine.Mask(mask)
        raise QueryError(
            f"mask is {fact}: give an array with a bool for each of the {len(self)} documents",
            field="mask",
        )

    def _opened(self) -> _Opened:
        opened = self._held
        if opened is None:
            raise StoreError(
                f"index {self.name} was closed: open it again with open_index({self.path.parent!s})"
            )
        return opened


@dataclass(frozen=True, slots=True)
class _Opened:
    """What every call holds on to until it ends, whoever closes the index meanwhile."""

    snapshot: Snapshot
    ranking: Ranking
    parameters: Parameters
    documents: DocumentReader
    passages: Passages
    fields: Mapping[str, Field]


def _hits(
    opened: _Opened,
    positions: Positions,
    scores: Scores,
    terms: Collection[str],
    weights: Mapping[str, float] | None,
) -> tuple[Hit, ...]:
    records = opened.documents.records(positions.tolist())
    passages = opened.passages.of(positions, terms, weights=weights)
    return tuple(
        Hit(
            rank=rank,
            id=record.id,
            score=score,
            title=record.title,
            snippet=passage,
            metadata=record.metadata,
        )
        for rank, (record, passage, score) in enumerate(
            zip(records, passages, scores.tolist(), strict=True), start=1
        )
    )
