"""The open index: search, rank and explain."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import DocIds, DocumentMask, Scores
from klsa_search.core.config import SearchSettings
from klsa_search.core.keywords import SearchParameters
from klsa_search.core.parameters import SpellingName
from klsa_search.errors import EmbedderFailed
from klsa_search.search.assembly import assemble_results
from klsa_search.search.collectors import collect
from klsa_search.search.costs import QueryCounts
from klsa_search.search.excerpts import Excerpt, excerpt_of
from klsa_search.search.explain.explanation import Explanation
from klsa_search.search.filters.masks import FilterLike
from klsa_search.search.hit_explanations import explanation_of
from klsa_search.search.hits import fetch_hits, hits_of
from klsa_search.search.options import Query, SearchOptions, as_query, checked_integer
from klsa_search.search.parameters import checked_mask
from klsa_search.search.planning import parse_query, plan_search, query_vector
from klsa_search.search.query.evidence import Evidence
from klsa_search.search.query_costs import counts_of, is_quick
from klsa_search.search.results import Hit, SearchResults
from klsa_search.search.searcher import in_parallel, intersection
from klsa_search.search.suggest.suggester import Suggestion, checked_typed
from klsa_search.search.vector_ranking import VectorLike, vector_parts, with_vectors
from klsa_search.search.writable_index import WritableIndex
from klsa_search.storage.manifest import SpaceEntry


class Index(WritableIndex):
    """An open generation of an index, with later writes; safe to share between threads.

    Arrays are memory-mapped, so opening costs little more than reading the vocabulary, once the
    checksums of all files have been verified: see `open_index`. Writes by other processes become
    visible when the index is opened, and by `refresh`. `ranker`, `alpha`, `z` and `dimensions` of
    each call default to the settings of the index. After `close`, every call but the length raises
    StoreError.
    """

    def scores(
        self, query: str, *, dimensions: int | None = None, **parameters: Unpack[SearchParameters]
    ) -> Scores:
        """Return the scores of all documents, (max_doc,) float32, by doc id; 0 for deleted ones.

        query       a text, with the operators of docs/guides/query-syntax.md unless `operators`
                    is off; words that no document contains are ignored
        dimensions  eigenvectors to use, at most those that were built
        parameters  `ranker`, `alpha`, `z`, `operators`, ...: `SearchParameters`
        QueryError for a parameter outside its limits; an empty query scores 0 everywhere.
        """
        state = self._state("scores of all documents")
        parsed, chosen, used = parse_query(state, query, dimensions, parameters)
        return state.searcher.scores(parsed, chosen, used)

    def rank(
        self,
        query: str,
        k: int = 10,
        *,
        mask: DocumentMask | None = None,
        vector: VectorLike | None = None,
        dimensions: int | None = None,
        **parameters: Unpack[SearchParameters],
    ) -> tuple[DocIds, Scores]:
        """Return doc ids and scores of the k best documents, best first.

        mask    documents to rank, (max_doc,) bool, by default all; it does not change scores
        vector  of the query: see `search`
        Only documents with a score above 0 are returned; ties are ordered by doc id. See `scores`.
        EmbedderFailed if the embedder of the index does.
        """
        state = self._state()
        k = checked_integer("k", k)
        parsed, chosen, used = parse_query(state, query, dimensions, parameters)
        allowed = checked_mask(mask, len(state.snapshot))
        query_vector_, warnings = query_vector(state, state, query, vector, self._models.embedders)
        if warnings:
            raise EmbedderFailed(warnings[0], field="embedder")
        if query_vector_ is None:
            (top,) = state.searcher.top([parsed], k, chosen, used, allowed)
        else:
            by_words = state.searcher.ranking(parsed._replace(mask=None), chosen, used)
            rank = with_vectors(by_words, vector_parts(state.snapshot, query_vector_, by_words))
            top = rank(k, intersection(allowed, parsed.mask))
        return top.doc_ids, top.scores

    def rank_many(
        self,
        queries: Iterable[str],
        k: int = 10,
        *,
        threads: int = 1,
        mask: DocumentMask | None = None,
        dimensions: int | None = None,
        **parameters: Unpack[SearchParameters],
    ) -> list[tuple[DocIds, Scores]]:
        """Return the result of `rank` for each query, in order, for any number of threads.

        With the ranker bm25, and by default, threads run in parallel, in
        code that releases the GIL.
        """
        state = self._state()
        k = checked_integer("k", k)
        reading, chosen = state.parameters.read(parameters)
        used = state.parameters.dimensions(dimensions, chosen)

        allowed = checked_mask(mask, len(state.snapshot))

        def work(batch: Sequence[str]) -> list[tuple[DocIds, Scores]]:
            if self._models.embedders and state.snapshot.vectors:
                view = self._view(state)
                return [
                    view.rank(query, k, mask=mask, dimensions=dimensions, **parameters)
                    for query in batch
                ]
            parsed = [state.query_parser.parse(query, reading) for query in batch]
            found = state.searcher.top(parsed, k, chosen, used, allowed)
            return [(top.doc_ids, top.scores) for top in found]

        return in_parallel(work, queries, checked_integer("threads", threads))

    def search(
        self,
        query: str | Query,
        k: int = 10,
        **options: Unpack[SearchOptions],
    ) -> SearchResults:
        """Return the k best documents with titles, snippets and metadata. See `rank`.

        query  a text, or a `Query`, which has its options already: then leave out all others
        Unlike `rank`, a search finds the document whose ID is the query first, if the ID has a
        letter, and a digit or sign; and it corrects short words if documents contain no word of the
        query.

        offset    number of hits to skip: k for the second page; pages of the same k do not overlap
        filter    condition on metadata, as text or JSON (`klsa_search.search.filters`); does not
                  change scores. With a filter or `sort` a blank query finds every document
        sort      metadata fields to sort by, as `field:asc` or `field:desc`, then by score
        facets    metadata fields of which to count values over all matches, the `max_facet_values`
                  most frequent of each
        distinct  metadata field; only the best document for each of its values is returned
        min_score minimum score of matches; all of them are ranked then
        highlight return where the words of the query are in title, snippet and passages of other
                  searched fields; each is then the passage whose words contribute most to the score
        snippet_length
                  maximum length of a snippet in characters, at most 10,000
        quality   return how good a match each hit is, and whether any is good: about 20 µs a
                  hit, and 0.2 s for the first such search (`klsa_search.search.quality`)
        explain   explain the score of each hit: about 0.3 ms a hit
        prefix    "last": the last word is still being typed, so its completions match as well
        group     "document", or "passage" for passages of long documents, each by its own score;
                  operators, totals and facets are then those of passages (`Hit`)
        max_tokens  with `group="passage"`: return the best passages that fit into this number of
                  tokens, without repetitions, passages that follow each other as one
                  (`klsa_search.search.budget`)
        count_tokens  counts the tokens of a text; by default an estimate, a quarter of its bytes
        rerank    let the reranker of the index order the first `rerank` hits; their scores stay. If
                  it fails, `warnings` of the results say so
        rules     apply the rules of the index (`set_rules`), which are about documents: they do not
                  apply to passages
        vector    vector of the query, as `{space: numbers}`: documents near to it score more, and
                  match even without a word of the query (`klsa_search.search.vector_ranking`). By
                  default the embedder of the index makes it, if it has one; `{}` for none
        positive, negative  ids of relevant and irrelevant documents (relevance feedback). Without a
                  query the ranking depends on them alone. All documents are scored
        QueryError for invalid parameters and unknown fields; DocumentNotFound.

        >>> answer = index.search("coolant", filter="year >= 2020", sort=["year:desc"])
        >>> [(hit.id, hit.metadata["year"]) for hit in answer.hits]
        [('leak', 2024), ('heat', 2021)]
        >>> [hit.id for hit in index.search('"wet roads" -title:grip').hits]
        ['tyre', 'copy']
        """
        return self._search(as_query(query, k, options))

    def _search(self, request: Query) -> SearchResults:
        """Return the results of a request, on the present state."""
        opened = self._state()
        state, plan = plan_search(opened, request, self._models)
        top, facets = collect(state, plan)
        hits, best = fetch_hits(opened, state, plan, top)
        return assemble_results(
            plan,
            top.total,
            facets,
            hits,
            best,
            reranker=self._models.reranker,
            document_of=opened.documents.get,
        )

    def explain(
        self,
        query: str,
        id: str,  # noqa: A002 - the field's own name
        *,
        vector: VectorLike | None = None,
        dimensions: int | None = None,
        **parameters: Unpack[SearchParameters],
    ) -> Explanation:
        """Return an explanation of the score of one document, found by a search or not.

        The score is that of a search restricted to this document, which scores it exactly.
        DocumentNotFound; QueryError as in `search`.

        >>> found = index.explain("leaking coolant", "leak")
        >>> [term.term for term in found.lexical.terms]
        ['leak', 'coolant']
        """
        state = self._state()
        parsed, chosen, used = parse_query(state, query, dimensions, parameters, correct_alone=True)
        (doc_id,) = state.documents.doc_ids([id])
        query_vector_, _ = query_vector(state, state, query, vector, self._models.embedders)
        return explanation_of(state, parsed, chosen, used, query_vector_, doc_id)

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
        return excerpt_of(self._state().documents, id, span, page)

    @property
    def passage_count(self) -> int | None:
        """Return the number of passages; None if documents are not divided into passages.

        >>> index.passage_count is None  # its documents are short
        True
        """
        passages = self._state().passages
        return None if passages is None else passages.state.info.documents

    @property
    def embeds_queries(self) -> bool:
        """Return whether searches without a vector get one from an embedder.

        >>> index.embeds_queries  # it was opened without embedders
        False
        """
        return bool(self._models.embedders and self._state().snapshot.vectors)

    @property
    def vector_spaces(self) -> tuple[SpaceEntry, ...]:
        """Return the spaces of vectors, with the numbers of live documents. Cost: O(max_doc).

        >>> written = index.patch("leak", {"_vectors": {"minilm": [0.1, -0.3, 0.2]}})
        >>> [(space.name, space.dimension, space.documents) for space in index.vector_spaces]
        [('minilm', 3, 1)]
        """
        snapshot = self._state().snapshot
        live = snapshot.live_docs()
        built = {entry.name: entry.fingerprint for entry in self.manifest.vectors}
        return tuple(
            SpaceEntry(
                name=space.name,
                dimension=space.dimension,
                vectors=sum(int(np.count_nonzero(live[part.documents])) for part in space.parts),
                documents=int(np.count_nonzero(live & space.has(len(live)))),
                fingerprint=built.get(space.name),
            )
            for space in snapshot.vectors.values()
        )

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
        return hits_of(self._state(), doc_ids, scores, terms, weights)

    def search_many(
        self,
        queries: Iterable[str | Query],
        k: int = 10,
        *,
        threads: int = 1,
        **options: Unpack[SearchOptions],
    ) -> list[SearchResults]:
        """Return the result of `search` for each query, in order. See `rank_many`.

        options  other arguments of `search`, the same for all queries: `SearchOptions`
        """

        def work(batch: Sequence[str | Query]) -> list[SearchResults]:
            return [self.search(query, k, **options) for query in batch]

        return in_parallel(work, queries, checked_integer("threads", threads))

    def suggest(self, typed: str, k: int = 10) -> tuple[Suggestion, ...]:
        """Return at most k completions of the typed text: words, phrases and titles.

        Suggestions are words that begin with the last typed word, most frequent first; terms that
        follow the typed words in at least two documents; and titles that contain the text, those
        that begin with it first. If no word begins with the last one, it is corrected. A blank text
        has no suggestions. See `docs/guides/search.md`.

        >>> [(each.kind, each.text) for each in index.suggest("tyr")]
        [('word', 'tyres'), ('title', 'Tyres'), ('title', 'Tyres again')]
        """
        state = self._state()
        checked_typed(typed)
        return tuple(state.suggester.suggestions(typed, checked_integer("k", k), Evidence()))

    def parameters(self, /, **parameters: Unpack[SearchParameters]) -> SearchSettings:
        """Return search parameters, completed by those of the index; QueryError if invalid."""
        return self._state().parameters.read(parameters)[1]

    def is_quick(self, query: str, k: int = 10) -> bool:
        """Return whether a `search` with only these parameters takes at most 1 ms. Cost: 3 µs.

        For event loops: true for few hits of plain, known words with few postings, if documents are
        not divided into passages. It does not consider slow disks.

        >>> index.is_quick("leaking coolant"), index.is_quick("leaking -coolant")
        (True, False)
        """
        return not self.embeds_queries and is_quick(self._state(), query, k)

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
        options: SearchParameters = {"operators": operators, "spelling": spelling}
        return counts_of(self._state(), query, options, filter)

    def warm_up(self) -> None:
        """Load what the first queries need, by running some: 3 ms with 100,000 documents."""
        for ranker in ("bm25", self._state().info.defaults.ranker):
            self.rank("", ranker=ranker)
            self.rank_many([""], ranker=ranker)
        live = self._state().snapshot.live
        first = np.arange(self.max_doc)[slice(None) if live is None else live.allowed][:1]
        self.hits(first, np.zeros(len(first), np.float32), ())


def ids_of(index: Index) -> Callable[[DocIds], npt.NDArray[Any]]:
    """Return a function that returns the IDs of live documents by doc id: (n,) of str.

    It is for many rankings: it reads all IDs first.
    """
    live, ids = index.live_doc_ids(), np.array(index.ids(), dtype=object)
    order = np.argsort(live)
    return lambda doc_ids: ids[order[np.searchsorted(live, doc_ids, sorter=order)]]
