"""The open index: the front door of searching."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, Unpack

import numpy as np

from klsa_search.arrays import Positions, Scores
from klsa_search.config import SearchSettings, SpellingName
from klsa_search.errors import QueryError
from klsa_search.keywords import SearchParameters
from klsa_search.search import engine
from klsa_search.search.answering import find
from klsa_search.search.batch import in_parallel
from klsa_search.search.costs import QueryCounts
from klsa_search.search.explaining import Explanation
from klsa_search.search.filters.masks import Given as Filter
from klsa_search.search.language import Asked
from klsa_search.search.living import LivingIndex
from klsa_search.search.parameters import whole_number
from klsa_search.search.presenting import Presenting, hits_of
from klsa_search.search.rankers import USES
from klsa_search.search.ranking import both
from klsa_search.search.results import Hit, SearchResults
from klsa_search.search.snippet import LENGTH, checked_length
from klsa_search.search.state import State
from klsa_search.search.suggest import Suggestion
from klsa_search.search.wishes import Mask, SearchOptions, Wishes

_QUICK_HITS: Final = 20
_QUICK_QUERY: Final = 256
"""Hits and characters of a query that are quick: ten hits take 50 µs."""

_QUICK_BYTES: Final = 2**20
"""Bytes of the longest documents, as many as hits, whose texts are quick: 5 ms if all are hits."""


class Index(LivingIndex):
    """One generation of an index, opened, and what was written to it since.

    Safe to share between threads.

    Arrays are memory-mapped, so opening costs the vocabulary and little more, once all files were
    found to be what was built: see `open_index`. What was written since the build is taken up when
    the index is opened, and by `refresh`; nothing else changes what it answers. `ranker`, `alpha`,
    `z` and `dimensions` of each call default to the settings the index was built with. StoreError
    from every call but the length once it is closed.
    """

    def scores(
        self, query: str, *, dimensions: int | None = None, **parameters: Unpack[SearchParameters]
    ) -> Scores:
        """Score every document: (size,) float32, in document order; 0 where there is none.

        query       a text, with the operators of docs/guides/query-syntax.md unless `operators`
                    is off; terms the collection does not hold are passed over
        dimensions  eigenvectors to use, at most those that were built
        parameters  `ranker`, `alpha`, `z`, `operators`, ...: `SearchParameters`
        QueryError for a parameter outside its limits; an empty query scores 0 everywhere.
        """
        state = self._opened()
        asked, chosen, used = _read(state, query, dimensions, parameters)
        return state.ranking.scores(asked, chosen, used)

    def rank(
        self,
        query: str,
        k: int = 10,
        *,
        mask: Mask | None = None,
        dimensions: int | None = None,
        **parameters: Unpack[SearchParameters],
    ) -> tuple[Positions, Scores]:
        """Positions and scores of the k best documents, best first.

        mask  documents that may be answered, all by default: (size,) bool; it changes no score
        Only documents with a score above 0; ties by document order. See `scores`.
        """
        state = self._opened()
        k = whole_number("k", k)
        asked, chosen, used = _read(state, query, dimensions, parameters)
        (top,) = state.ranking.top([asked], k, chosen, used, self._checked(mask))
        return top.positions, top.scores

    def rank_many(
        self,
        queries: Iterable[str],
        k: int = 10,
        *,
        threads: int = 1,
        mask: Mask | None = None,
        dimensions: int | None = None,
        **parameters: Unpack[SearchParameters],
    ) -> list[tuple[Positions, Scores]]:
        """Rank for each query, in their order: what `rank` gives, whatever the number of threads.

        With the ranker bm25, and by default where D is cut, the threads work at the same time, in
        code that needs no GIL.
        """
        state = self._opened()
        k = whole_number("k", k)
        reading, chosen = state.parameters.read(parameters)
        used = state.parameters.dimensions(dimensions, chosen)

        allowed = self._checked(mask)

        def work(some: Sequence[str]) -> list[tuple[Positions, Scores]]:
            asked = [state.language.read(query, reading) for query in some]
            found = state.ranking.top(asked, k, chosen, used, allowed)
            return [(top.positions, top.scores) for top in found]

        return in_parallel(work, queries, whole_number("threads", threads))

    def search(
        self,
        query: str,
        k: int = 10,
        *,
        offset: int = 0,
        filter: Filter | None = None,  # noqa: A002 - the peers' name
        sort: Iterable[str] = (),
        facets: Iterable[str] = (),
        max_facet_values: int = 100,
        distinct: str | None = None,
        min_score: float | None = None,
        positive: Iterable[str] = (),
        negative: Iterable[str] = (),
        mask: Mask | None = None,
        explain: bool = False,
        highlight: bool = False,
        snippet_length: int = LENGTH,
        quality: bool = False,
        dimensions: int | None = None,
        **parameters: Unpack[SearchParameters],
    ) -> SearchResults:
        """Return the k best documents with titles, snippets and metadata. See `rank`.

        offset    hits to pass over: that of the second page is k. Pages of one k never overlap
        filter    what the metadata must be, as text or JSON (`klsa_search.search.filters`); it
                  changes no score. With a filter or `sort` a blank query finds every document
        sort      metadata fields to sort by, as `field:asc` or `field:desc`, then by score
        facets    metadata fields whose values are counted in all that is found, of each the
                  `max_facet_values` most frequent
        distinct  metadata field of which each value is answered by its best document alone
        min_score least score of what is found; all of it is ranked then
        highlight tell where the words of the query stand in title and snippet, which then is the
                  passage whose words weigh most in the ranking, not the one with most words
        snippet_length
                  characters of a snippet, at most 10,000
        quality   tell how good a match each hit is, and whether any fits: some 2 ms, and a second
                  for the first of an index (`klsa_search.search.quality`)
        explain   tell of each hit how its score came about: some 2 ms a hit
        positive, negative  ids of relevant and irrelevant documents (relevance feedback). Without a
                  query the ranking depends on them alone. All documents are scored
        QueryError for what cannot be read, and for fields there are not; DocumentNotFound.

        >>> answer = index.search("coolant", filter="year >= 2020", sort=["year:desc"])
        >>> [(hit.id, hit.metadata["year"]) for hit in answer.hits]
        [('leak', 2024), ('heat', 2021)]
        >>> [hit.id for hit in index.search('"wet roads" -title:grip').hits]
        ['tyre', 'copy']
        """
        state = self._opened()
        k = whole_number("k", k)
        asked, chosen, used = _read(state, query, dimensions, parameters)
        allowed = both(self._checked(mask), asked.allowed)
        wishes = Wishes.checked(
            offset, filter, sort, facets, max_facet_values, distinct, min_score, positive, negative
        )
        if explain and wishes is not None and (wishes.positive or wishes.negative):
            raise QueryError(
                "explain: a ranking moved by positive or negative examples is not a sum "
                "of these parts; leave them out",
                field="explain",
            )
        if asked.allowed is not None:
            asked = asked._replace(allowed=None)  # which stands in the mask
        found = find(state, query, asked, k, chosen, used, allowed, wishes)
        interpretation = state.language.interpretation(query, asked)
        showing = Presenting(
            state=state,
            asked=asked,
            interpretation=interpretation,
            parameters=chosen,
            dimensions=used,
        )
        length, offset = checked_length(snippet_length), wishes.offset if wishes else 0
        hits = showing.hits(found.positions, found.scores, offset, length, weighed=highlight)
        best = None
        if highlight:
            hits = showing.highlighted(hits)
        if quality:
            hits, best = showing.judged(hits, found.positions)
        if explain:
            hits = showing.explained(hits, found.positions)
        return SearchResults(
            query=query,
            interpretation=interpretation,
            hits=hits,
            total=found.total,
            ranker=chosen.ranker,
            parameters={
                name: used if name == "dimensions" else getattr(chosen, name)
                for name in USES[chosen.ranker]
            },
            offset=offset,
            facets=found.facets,
            quality=best,
        )

    def explain(
        self,
        query: str,
        id: str,  # noqa: A002 - the field's own name
        *,
        dimensions: int | None = None,
        **parameters: Unpack[SearchParameters],
    ) -> Explanation:
        """Explain the score of one document, returned by a search or not.

        The score is what a search among this document alone gives it: it is looked at in full,
        however far it is from the first. DocumentNotFound; QueryError as of `search`.

        >>> found = index.explain("leaking coolant", "leak")
        >>> [term.term for term in found.lexical.terms]
        ['leak', 'coolant']
        """
        state = self._opened()
        asked, chosen, used = _read(state, query, dimensions, parameters)
        asked = asked._replace(allowed=None)  # it is explained whether it may be answered or not
        (position,) = state.documents.positions([id])
        alone = np.zeros(len(state.snapshot), np.bool_)
        alone[position] = True
        (top,) = state.ranking.top([asked], 1, chosen, used, engine.Mask(alone))
        score = float(top.scores[0]) if len(top.scores) else None
        interpretation = state.language.interpretation(query, asked)
        showing = Presenting(
            state=state,
            asked=asked,
            interpretation=interpretation,
            parameters=chosen,
            dimensions=used,
        )
        return showing.explaining().of(position, score)

    def hits(
        self,
        doc_ids: Positions,
        scores: Scores,
        terms: Collection[str],
        weights: Mapping[str, float] | None = None,
    ) -> tuple[Hit, ...]:
        """Hits of ranked documents, in their order, with the passages that show some terms best.

        terms, weights  as `snippet` takes them

        >>> doc_ids, scores = index.rank("wet roads", k=1)
        >>> [hit.id for hit in index.hits(doc_ids, scores, {"road"})]
        ['tyre']
        """
        return hits_of(self._opened(), doc_ids, scores, terms, weights)

    def search_many(
        self,
        queries: Iterable[str],
        k: int = 10,
        *,
        threads: int = 1,
        **wishes: Unpack[SearchOptions],
    ) -> list[SearchResults]:
        """Search for each query, in their order: what `search` gives. See `rank_many`.

        wishes  what else `search` takes, the same for all: `SearchOptions`
        """

        def work(some: Sequence[str]) -> list[SearchResults]:
            return [self.search(query, k, **wishes) for query in some]

        return in_parallel(work, queries, whole_number("threads", threads))

    def suggest(self, typed: str, k: int = 10) -> tuple[Suggestion, ...]:
        """Suggest at most k ways to go on with what was typed so far: words, phrases and titles.

        Words that begin as the last one typed does, as documents write them, the most frequent
        first; terms that follow the words typed in at least two documents; titles with what was
        typed in them, those that begin so first. Where nothing begins so, the last word is put
        right. A blank text gives none, and none raises. See `docs/guides/search.md`.

        >>> [(each.kind, each.text) for each in index.suggest("tyr")]
        [('word', 'tyres'), ('title', 'Tyres'), ('title', 'Tyres again')]
        """
        state = self._opened()
        if not isinstance(typed, str):
            raise QueryError(f"typed = {typed!r}: a text is needed", field="q")
        return tuple(state.suggesting.suggestions(typed, whole_number("k", k)))

    def parameters(self, /, **given: Unpack[SearchParameters]) -> SearchSettings:
        """Fill up parameters of a search by the index's own; QueryError for what it refuses."""
        return self._opened().parameters.read(given)[1]

    def is_quick(self, query: str, k: int = 10) -> bool:
        """Whether a `search` of no more than this takes a millisecond at most. Cost: 3 µs.

        For who answers in an event loop: a query of plain words that documents hold, and of few
        postings, for few hits. What it cannot know is how long documents take to be read, as from a
        slow disk, and whether all is compiled.

        >>> index.is_quick("leaking coolant"), index.is_quick("leaking -coolant")
        (True, False)
        """
        state = self._opened()
        if k > _QUICK_HITS or len(query) > _QUICK_QUERY or state.facts.analyzer.tokenizes:
            return False
        terms = state.language.plain(query)
        return (
            terms is not None
            and state.ranking.is_quick(terms)
            and state.documents.size_of_longest(k) <= _QUICK_BYTES
        )

    def query_counts(
        self,
        query: str,
        *,
        operators: bool | None = None,
        spelling: SpellingName | None = None,
    ) -> QueryCounts:
        """Count what makes a query expensive, for `klsa_search.search.costs`. Cost: 3 to 50 µs.

        operators, spelling  as of `search`

        >>> index.query_counts('"wet roads" tyres')
        QueryCounts(words=3, operators=1, misspelt=0, hit_bytes=..., phrase_documents=3)
        """
        state = self._opened()
        reading, _ = state.parameters.read({"operators": operators, "spelling": spelling})
        counts = state.language.counts(query, reading)
        return counts._replace(hit_bytes=state.documents.mean_size)

    def warm_up(self) -> None:
        """Compile what the first queries would wait for: half a minute, or 0.3 s from the cache."""
        for ranker in ("bm25", self._facts.defaults.ranker):
            self.rank("", ranker=ranker)
            self.rank_many([""], ranker=ranker)
        living = self._opened().snapshot.living
        first = np.arange(self.max_doc)[slice(None) if living is None else living.allowed][:1]
        self.hits(first, np.zeros(len(first), np.float32), ())

    def _checked(self, mask: Mask | None) -> engine.Mask | None:
        if mask is None:
            return None
        if not isinstance(mask, np.ndarray):
            fact = f"a {type(mask).__name__}"
        elif mask.dtype != np.bool_ or mask.shape != (self.max_doc,):
            fact = f"of shape {mask.shape} and type {mask.dtype}"
        else:
            return engine.Mask(mask)
        raise QueryError(
            f"mask is {fact}: give an array with a bool for each of the {self.max_doc} positions",
            field="mask",
        )


def _read(
    state: State, query: str, dimensions: int | None, parameters: SearchParameters
) -> tuple[Asked, SearchSettings, int]:
    """What a query asks for, by which parameters, with how many eigenvectors."""
    reading, chosen = state.parameters.read(parameters)
    asked = state.language.read(query, reading)
    return asked, chosen, state.parameters.dimensions(dimensions, chosen)
