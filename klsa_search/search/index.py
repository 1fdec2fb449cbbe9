"""The open index: the front door of searching."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from klsa_search.analysis import Analyzer
from klsa_search.arrays import Positions, Scores
from klsa_search.collection.model import Document
from klsa_search.config import SearchSettings
from klsa_search.errors import QueryError
from klsa_search.expansion import top_z
from klsa_search.search.batch import in_parallel
from klsa_search.search.engine import ExpandingEngine, Mix
from klsa_search.search.parameters import Parameters, whole_number
from klsa_search.search.passages import Passages
from klsa_search.search.query import QueryTerms, TermNumbers
from klsa_search.search.rankers import RANKERS, USES
from klsa_search.search.rankers.klsa import mix_of
from klsa_search.search.results import Hit, Results
from klsa_search.search.snapshot import Snapshot, open_snapshot
from klsa_search.store import DocumentReader, read_manifest
from klsa_search.store.generations import check_sizes


class Index:
    """One generation of an index, opened; immutable, and safe to share between threads.

    Arrays are memory-mapped, so opening costs the vocabulary and little more. `ranker`, `alpha`,
    `z` and `dimensions` of each call default to the settings the index was built with.
    """

    def __init__(self, generation: Path) -> None:
        self.path = generation
        self.name = generation.parent.name
        self.generation = generation.name
        self.manifest = read_manifest(generation)
        check_sizes(generation, self.manifest)
        self.settings = self.manifest.checked_settings()
        self.analyzer = Analyzer(self.settings)
        self._defaults = SearchSettings(
            **{name: getattr(self.settings, name) for name in SearchSettings.model_fields}
        )
        self._snapshot = open_snapshot(generation, self.settings)
        self._numbers = TermNumbers(self.analyzer, self._snapshot.vocabulary)
        self._documents = DocumentReader(generation)
        self._passages = Passages(
            self._documents, self._snapshot.forward, self.analyzer, self._snapshot.vocabulary
        )
        self._parameters = Parameters(self.name, self._defaults, self._snapshot)

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
        chosen = self._parameters.checked(parameters)
        return self._scores(query, chosen, self._parameters.dimensions(dimensions, chosen))

    def rank(
        self, query: str, k: int = 10, *, dimensions: int | None = None, **parameters: Any
    ) -> tuple[Positions, Scores]:
        """Positions and scores of the k best documents, best first.

        Only documents with a score above 0; ties by document order. See `scores`.
        """
        k = whole_number("k", k)
        chosen = self._parameters.checked(parameters)
        return self._best(query, k, chosen, self._parameters.dimensions(dimensions, chosen))

    def rank_many(
        self,
        queries: Iterable[str],
        k: int = 10,
        *,
        threads: int = 1,
        dimensions: int | None = None,
        **parameters: Any,
    ) -> list[tuple[Positions, Scores]]:
        """Rank for each query, in their order: what `rank` gives, whatever the number of threads.

        With the ranker bm25, and by default where D is cut, the threads work at the same time, in
        code that needs no GIL.
        """
        k = whole_number("k", k)
        chosen = self._parameters.checked(parameters)
        used = self._parameters.dimensions(dimensions, chosen)

        def work(some: Sequence[str]) -> list[tuple[Positions, Scores]]:
            if chosen.ranker == "bm25":
                return self._snapshot.engine.best_of_many(map(self._terms, some), k)
            engine = self._candidates(chosen)
            if engine is not None:
                found = engine.best_of_many(map(self._terms, some), k, self._mix(chosen))
                return [
                    answer or self._by_scores(query, k, chosen, used)
                    for query, answer in zip(some, found, strict=True)
                ]
            return [self._best(query, k, chosen, used) for query in some]

        return in_parallel(work, queries, whole_number("threads", threads))

    def search(
        self, query: str, k: int = 10, *, dimensions: int | None = None, **parameters: Any
    ) -> Results:
        """Return the k best documents with titles, snippets and metadata. See `rank`."""
        k = whole_number("k", k)
        chosen = self._parameters.checked(parameters)
        used = self._parameters.dimensions(dimensions, chosen)
        if chosen.ranker == "bm25" or self._candidates(chosen) is not None:
            positions, values = self._best(query, k, chosen, used)
            # Every impact is above 0, so a document that holds a term is a match.
            total = self._snapshot.bm25.matches(QueryTerms.of(self._terms(query)).numbers)
            total = max(total, len(positions))
        else:
            scores = self._scores(query, chosen, used)
            positions, values = top_z(scores, k)
            total = int(np.count_nonzero(scores > 0))
        hits = self.hits(positions, values, set(self.analyzer.terms(query)))
        known = {**chosen.model_dump(), "dimensions": used}
        return Results(
            query=query,
            hits=hits,
            total=total,
            ranker=chosen.ranker,
            parameters={name: known[name] for name in USES[chosen.ranker]},
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
        """
        records = self._documents.records(positions)
        passages = self._passages.of(positions, terms, weights=weights)
        return tuple(
            Hit(
                rank=rank,
                id=record.id,
                score=float(score),
                title=record.title,
                snippet=passage,
                metadata=record.metadata,
            )
            for rank, (record, passage, score) in enumerate(
                zip(records, passages, scores, strict=True), start=1
            )
        )

    def search_many(
        self,
        queries: Iterable[str],
        k: int = 10,
        *,
        threads: int = 1,
        dimensions: int | None = None,
        **parameters: Any,
    ) -> list[Results]:
        """Search for each query, in their order: what `search` gives. See `rank_many`."""

        def work(some: Sequence[str]) -> list[Results]:
            return [self.search(query, k, dimensions=dimensions, **parameters) for query in some]

        return in_parallel(work, queries, whole_number("threads", threads))

    def document(self, id: str) -> Document:  # noqa: A002 - the field's own name
        """Return the document of that id as it was indexed; DocumentNotFound."""
        return self._documents.get(id)

    def ids(self, positions: Iterable[int] | None = None) -> list[str]:
        """Ids of the documents at these positions, or of all, in document order."""
        return self._documents.all_ids() if positions is None else self._documents.ids(positions)

    @property
    def snapshot(self) -> Snapshot:
        """The arrays of the index: what a room above reads its documents and terms from."""
        return self._snapshot

    def positions(self, ids: Iterable[str]) -> list[int]:
        """Positions of the documents of these ids, in their order; DocumentNotFound."""
        return self._documents.positions(ids)

    def documents(self, positions: Iterable[int]) -> list[Document]:
        """Documents at these positions, in their order, as they were indexed."""
        return self._documents.at(positions)

    def parameters(self, **given: Any) -> SearchSettings:
        """Fill up parameters of a search by the index's own; QueryError for what it refuses."""
        return self._parameters.checked(given)

    def warm_up(self) -> None:
        """Compile what the first queries would wait for: half a minute, or 0.3 s from the cache."""
        for ranker in ("bm25", self._defaults.ranker):
            self.rank("", ranker=ranker)
            self.rank_many([""], ranker=ranker)
        first = np.zeros(min(len(self), 1), np.int64)
        self.hits(first, np.zeros(len(first), np.float32), ())

    def close(self) -> None:
        """Close the document store; the index is of no use afterwards."""
        self._documents.close()

    def _terms(self, query: str) -> list[int]:
        if not isinstance(query, str):
            raise QueryError(f"query = {query!r}: a text is needed", field="query")
        return self._numbers.of(query)

    def _scores(self, query: str, parameters: SearchSettings, dimensions: int) -> Scores:
        terms = QueryTerms.of(self._terms(query))
        return RANKERS[parameters.ranker](self._snapshot, terms, parameters, dimensions)

    def _best(
        self, query: str, k: int, parameters: SearchSettings, dimensions: int
    ) -> tuple[Positions, Scores]:
        if parameters.ranker == "bm25":
            return self._snapshot.engine.best(self._terms(query), k)
        engine = self._candidates(parameters)
        if engine is not None:
            answer = engine.best(self._terms(query), k, self._mix(parameters))
            if answer is not None:
                return answer
        return self._by_scores(query, k, parameters, dimensions)

    def _by_scores(
        self, query: str, k: int, parameters: SearchSettings, dimensions: int
    ) -> tuple[Positions, Scores]:
        return top_z(self._scores(query, parameters, dimensions), k)

    def _candidates(self, parameters: SearchSettings) -> ExpandingEngine | None:
        """Return the engine of a cut D where it answers, else None."""
        asked = parameters.ranker == "klsa" and parameters.alpha > 0 and not parameters.exact
        return self._snapshot.expanding if asked else None

    def _mix(self, parameters: SearchSettings) -> Mix:
        own = parameters is self._defaults
        return self._own_mix if own else mix_of(self._snapshot, parameters)

    @cached_property
    def _own_mix(self) -> Mix:
        return mix_of(self._snapshot, self._defaults)
