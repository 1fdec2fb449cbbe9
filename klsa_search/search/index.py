"""The open index: search, rank and explain."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Final, Unpack, get_args

import numpy as np

from klsa_search.core.array_types import DocIds, DocumentMask, Scores
from klsa_search.core.config import SearchSettings, SpellingName
from klsa_search.core.keywords import SearchParameters
from klsa_search.errors import EmbedderFailed, QueryError
from klsa_search.search.applied_rules import NO_RULES, apply_rules
from klsa_search.search.budget import CANDIDATES, CountTokens, estimated_tokens, within_budget
from klsa_search.search.collectors import collect
from klsa_search.search.costs import RANKINGS_WITH_PASSAGES, QueryCounts
from klsa_search.search.embedders import embedded_query
from klsa_search.search.engine.mask import Mask
from klsa_search.search.engine.workspace import TopDocs
from klsa_search.search.excerpts import Excerpt, excerpt_of
from klsa_search.search.explain.explanation import Explanation
from klsa_search.search.filters.masks import Given as Filter
from klsa_search.search.hits import explanations_of, fetch_hits, hits_of, with_vector_part
from klsa_search.search.options import (
    GroupName,
    PrefixName,
    QueryPlan,
    SearchOptions,
    finite_score,
    names,
    whole_number,
)
from klsa_search.search.passage_hits import as_passages
from klsa_search.search.query.interpretation import QueryInterpretation
from klsa_search.search.query.parser import ParsedQuery
from klsa_search.search.query.rules import words_for_rules
from klsa_search.search.rankers import ranker_of
from klsa_search.search.ranking import Rank
from klsa_search.search.reranking import checked_rerank, rerank_hits
from klsa_search.search.results import Hit, SearchResults
from klsa_search.search.searcher import in_parallel, intersection
from klsa_search.search.snippets import LENGTH, checked_length
from klsa_search.search.state import State
from klsa_search.search.suggest.suggester import Suggestion
from klsa_search.search.vector_ranking import (
    GivenVector,
    checked_vector,
    vector_parts,
    with_vectors,
)
from klsa_search.search.writable_index import WritableIndex
from klsa_search.storage.manifest import SpaceEntry

_QUICK_HITS: Final = 20
_QUICK_QUERY: Final = 256
"""Hits and characters of a query that are quick: ten hits take 50 µs."""

_QUICK_BYTES: Final = 2**20
"""Total bytes of the k longest documents up to which a search is quick: 5 ms if all are hits."""


_ID: Final = re.compile(r"(?=\S*[^\W\d_])(?=\S*(?:\d|_|[^\w\s]))[^\s\ud800-\udfff]+")
"""Queries that may be the ID of a document: others are words or numbers, even if they are IDs."""


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
        state = self._opened()
        parsed, chosen, used = _parse_query(state, query, dimensions, parameters)
        return state.searcher.scores(parsed, chosen, used)

    def rank(
        self,
        query: str,
        k: int = 10,
        *,
        mask: DocumentMask | None = None,
        vector: GivenVector | None = None,
        dimensions: int | None = None,
        **parameters: Unpack[SearchParameters],
    ) -> tuple[DocIds, Scores]:
        """Return doc ids and scores of the k best documents, best first.

        mask    documents to rank, (max_doc,) bool, by default all; it does not change scores
        vector  of the query: see `search`
        Only documents with a score above 0 are returned; ties are ordered by doc id. See `scores`.
        EmbedderFailed if the embedder of the index does.
        """
        state = self._opened()
        k = whole_number("k", k)
        parsed, chosen, used = _parse_query(state, query, dimensions, parameters)
        allowed = self._checked_mask(mask)
        found = checked_vector(self._embedded(state, query, vector), state.snapshot.vectors)
        if found is None:
            (top,) = state.searcher.top([parsed], k, chosen, used, allowed)
        else:
            rank = _by_words(state, parsed._replace(mask=None), chosen, used)
            parts = vector_parts(state.snapshot, found, rank)
            top = with_vectors(rank, parts)(k, intersection(allowed, parsed.mask))
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

        With the ranker bm25, and by default with a sparse expansion, threads run in parallel, in
        code that releases the GIL.
        """
        state = self._opened()
        k = whole_number("k", k)
        reading, chosen = state.parameters.read(parameters)
        used = state.parameters.dimensions(dimensions, chosen)

        allowed = self._checked_mask(mask)

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
        mask: DocumentMask | None = None,
        explain: bool = False,
        highlight: bool = False,
        snippet_length: int = LENGTH,
        quality: bool = False,
        prefix: PrefixName | None = None,
        group: GroupName = "document",
        max_tokens: int | None = None,
        count_tokens: CountTokens = estimated_tokens,
        rerank: int | None = None,
        rules: bool = True,
        vector: GivenVector | None = None,
        dimensions: int | None = None,
        **parameters: Unpack[SearchParameters],
    ) -> SearchResults:
        """Return the k best documents with titles, snippets and metadata. See `rank`.

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
        quality   return how good a match each hit is, and whether any is good: about 2 ms, and a
                  second for the first such search of an index (`klsa_search.search.quality`)
        explain   explain the score of each hit: about 2 ms a hit
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
        opened = state = self._opened()
        k, first = whole_number("k", k), whole_number("offset", offset, 0)
        checked_mask = self._checked_mask(mask)
        if group not in get_args(GroupName):
            raise QueryError(
                f"group = {group!r} is unknown; use 'document' or 'passage'", field="group"
            )
        if group == "passage" and opened.passages is not None:
            state = opened.passages.state
            checked_mask = opened.passages.mask(checked_mask)
        if max_tokens is not None:
            whole_number("max_tokens", max_tokens)
            if group != "passage" or offset:
                raise QueryError(
                    "max_tokens: only the first passages can be limited in tokens; use "
                    "group = 'passage' without offset",
                    field="max_tokens",
                )
        reranker = None
        if rerank is not None:
            whole_number("rerank", rerank)
            reranker = checked_rerank(rerank, self._models.reranker, is_sorted=bool(sort))
        reading, chosen = state.parameters.read(parameters)
        if prefix not in (None, "last"):
            raise QueryError(f"prefix = {prefix!r} is unknown; use 'last' or None", field="prefix")
        named = _named_document(state, query) if group == "document" else None
        if named is not None:  # the rest of the ranking is by its words
            reading = reading.model_copy(update={"operators": False, "spelling": "off"})
        parsed = state.query_parser.parse(
            query, reading, correct_short=True, complete_last=prefix == "last" and named is None
        )
        interpretation = state.query_parser.interpretation(query, parsed)
        if named is not None:
            (id_,) = state.documents.ids([named])
            interpretation = replace(interpretation, id=id_, unknown=())
            if parsed.mask is not None:
                parsed = parsed._replace(mask=parsed.mask.with_document(named))
        used = state.parameters.dimensions(dimensions, chosen)
        own, sort = checked_mask, names("sort", sort)
        allowed = intersection(own, parsed.mask)
        applied = NO_RULES
        if rules and opened.rules and (query.strip() or filter is not None or sort or positive):
            words = words_for_rules(query, interpretation)
            matching = opened.rules.matching(words, filter)
            may_pin = not sort and group == "document"
            applied = apply_rules(opened, matching, named=named, may_pin=may_pin)
            if state is not opened and opened.passages is not None:
                applied = applied.of_passages(opened.passages)
        warnings: tuple[str, ...] = ()
        if vector is None and named is None and self._models.embedders:
            vector, warnings = embedded_query(self._models.embedders, opened, state, query)
        wanted = k if max_tokens is None else max(k, CANDIDATES)
        plan = QueryPlan(
            query=query,
            parsed=parsed._replace(mask=None),  # which is in `mask`
            interpretation=interpretation,
            named=named,
            parameters=chosen,
            dimensions=used,
            mask=allowed,
            pinnable=allowed if _has_operators(interpretation) else own,
            rules=applied,
            k=wanted if rerank is None else max(rerank, first + wanted),
            offset=first if rerank is None else 0,
            filter=filter,
            sort=sort,
            facets=names("facets", facets),
            max_facet_values=whole_number("max_facet_values", max_facet_values),
            distinct=distinct,
            min_score=finite_score(min_score),
            positive=names("positive", positive),
            negative=names("negative", negative),
            explain=explain,
            highlight=highlight,
            snippet_length=checked_length(snippet_length),
            quality=quality,
            group=group,
            vector=checked_vector(vector or None, state.snapshot.vectors),
        )
        top, facets_ = collect(state, plan)
        hits, best = fetch_hits(state, plan, top)
        if group == "passage":
            hits = as_passages(opened, hits, opened.passages)
        if rerank is not None and reranker is not None:
            fixed = [*applied.pins, *([] if named is None else [named])]
            hits, failed = rerank_hits(opened, hits, query, rerank, reranker, fixed)
            warnings += failed
            hits = hits[first : first + wanted]
            best = max((hit.quality for hit in hits if hit.quality is not None), default=best)
        tokens = truncated = None
        if max_tokens is not None:

            @cache  # documents are long, and passages of one are compared repeatedly
            def text_of(id_: str) -> str:
                return opened.documents.get(id_).text

            hits, tokens, truncated = within_budget(hits, k, max_tokens, count_tokens, text_of)
        return SearchResults(
            query=query,
            interpretation=plan.interpretation,
            hits=hits,
            total=top.total,
            ranker=chosen.ranker,
            parameters={
                name: used if name == "dimensions" else getattr(chosen, name)
                for name in (*ranker_of(chosen.ranker).parameters, *_of_passages(state))
            },
            offset=first,
            facets=facets_,
            quality=best,
            tokens=tokens,
            truncated=truncated,
            rules=applied.ids,
            warnings=warnings,
        )

    def explain(
        self,
        query: str,
        id: str,  # noqa: A002 - the field's own name
        *,
        vector: GivenVector | None = None,
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
        state = self._opened()
        parsed, chosen, used = _parse_query(state, query, dimensions, parameters)
        parsed = parsed._replace(mask=None)  # explain it even if the operators exclude it
        (doc_id,) = state.documents.doc_ids([id])
        only = np.zeros(len(state.snapshot), np.bool_)
        only[doc_id] = True
        (top,) = state.searcher.top([parsed], 1, chosen, used, Mask(only))
        score = float(top.scores[0]) if len(top.scores) else None
        doc_ids = np.array([doc_id], np.int64)
        (explanation,) = explanations_of(state, parsed, chosen, used, doc_ids, [score])
        if vector is None:
            vector = embedded_query(self._models.embedders, state, state, query).vector
        found = checked_vector(vector or None, state.snapshot.vectors)
        if found is None:
            return explanation
        rank = _by_words(state, parsed, chosen, used)
        parts = vector_parts(state.snapshot, found, rank)
        return with_vector_part(explanation, parts, doc_id)

    def _embedded(self, state: State, query: str, vector: GivenVector | None) -> GivenVector | None:
        """Return the vector of a query, by an embedder if none is given; EmbedderFailed."""
        if vector is not None:
            return vector or None
        embedded = embedded_query(self._models.embedders, state, state, query)
        if embedded.warnings:
            raise EmbedderFailed(embedded.warnings[0], field="embedder")
        return embedded.vector

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
        return excerpt_of(self._opened().documents, id, span, page)

    @property
    def passage_count(self) -> int | None:
        """Return the number of passages; None if documents are not divided into passages.

        >>> index.passage_count is None  # its documents are short
        True
        """
        passages = self._opened().passages
        return None if passages is None else passages.state.info.documents

    @property
    def embeds_queries(self) -> bool:
        """Return whether searches without a vector get one from an embedder.

        >>> index.embeds_queries  # it was opened without embedders
        False
        """
        return bool(self._models.embedders and self._opened().snapshot.vectors)

    @property
    def vector_spaces(self) -> tuple[SpaceEntry, ...]:
        """Return the spaces of vectors, with the numbers of live documents. Cost: O(max_doc).

        >>> written = index.patch("leak", {"_vectors": {"minilm": [0.1, -0.3, 0.2]}})
        >>> [(space.name, space.dimension, space.documents) for space in index.vector_spaces]
        [('minilm', 3, 1)]
        """
        snapshot = self._opened().snapshot
        live = snapshot.live_docs()
        built = {entry.name: entry.fingerprint for entry in self.manifest.vectors}
        return tuple(
            SpaceEntry(
                name=space.name,
                dimension=space.dimension,
                vectors=sum(int(np.count_nonzero(live[each.documents])) for each in space.parts),
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
        return hits_of(self._opened(), doc_ids, scores, terms, weights)

    def search_many(
        self,
        queries: Iterable[str],
        k: int = 10,
        *,
        threads: int = 1,
        **options: Unpack[SearchOptions],
    ) -> list[SearchResults]:
        """Return the result of `search` for each query, in order. See `rank_many`.

        options  other arguments of `search`, the same for all queries: `SearchOptions`
        """

        def work(batch: Sequence[str]) -> list[SearchResults]:
            return [self.search(query, k, **options) for query in batch]

        return in_parallel(work, queries, whole_number("threads", threads))

    def suggest(self, typed: str, k: int = 10) -> tuple[Suggestion, ...]:
        """Return at most k completions of the typed text: words, phrases and titles.

        Suggestions are words that begin with the last typed word, most frequent first; terms that
        follow the typed words in at least two documents; and titles that contain the text, those
        that begin with it first. If no word begins with the last one, it is corrected. A blank text
        has no suggestions. See `docs/guides/search.md`.

        >>> [(each.kind, each.text) for each in index.suggest("tyr")]
        [('word', 'tyres'), ('title', 'Tyres'), ('title', 'Tyres again')]
        """
        state = self._opened()
        if not isinstance(typed, str):
            raise QueryError(f"typed = {typed!r} is not a text; give a string", field="q")
        return tuple(state.suggester.suggestions(typed, whole_number("k", k)))

    def parameters(self, /, **given: Unpack[SearchParameters]) -> SearchSettings:
        """Return search parameters, completed by those of the index; QueryError if invalid."""
        return self._opened().parameters.read(given)[1]

    def is_quick(self, query: str, k: int = 10) -> bool:
        """Return whether a `search` with only these parameters takes at most 1 ms. Cost: 3 µs.

        For event loops: true for few hits of plain, known words with few postings, if documents are
        not divided into passages. It does not consider slow disks, nor whether the engine is
        compiled.

        >>> index.is_quick("leaking coolant"), index.is_quick("leaking -coolant")
        (True, False)
        """
        state = self._opened()
        if k > _QUICK_HITS or len(query) > _QUICK_QUERY or state.info.analyzer.tokenizes:
            return False
        if self.embeds_queries:
            return False
        terms = state.query_parser.known_terms_of(query)
        return (
            terms is not None
            and not (state.rules and state.rules.for_query(query))
            and state.searcher.is_quick(terms)
            and state.documents.size_of_longest(k) <= _QUICK_BYTES
        )

    def query_counts(
        self,
        query: str,
        *,
        operators: bool | None = None,
        spelling: SpellingName | None = None,
    ) -> QueryCounts:
        """Return counts of what makes a query expensive. Cost: 3 to 50 µs.

        operators, spelling  as of `search`

        >>> index.query_counts('"wet roads" tyres')
        QueryCounts(words=3, operators=1, ..., phrase_documents=3, boosts=0, rankings=1)
        """
        state = self._opened()
        reading, _ = state.parameters.read({"operators": operators, "spelling": spelling})
        counts = state.query_parser.counts(query, reading)
        rules = state.rules.for_query(query) if state.rules else ()
        boosts = sum(len(rule.then.boost) for rule in rules)
        rankings = 1 if state.passages is None else RANKINGS_WITH_PASSAGES
        return counts._replace(
            hit_bytes=state.documents.mean_size, boosts=boosts, rankings=rankings
        )

    def warm_up(self) -> None:
        """Compile what the first queries need: about 30 s, or 0.3 s from the cache."""
        for ranker in ("bm25", self._info.defaults.ranker):
            self.rank("", ranker=ranker)
            self.rank_many([""], ranker=ranker)
        live = self._opened().snapshot.live
        first = np.arange(self.max_doc)[slice(None) if live is None else live.allowed][:1]
        self.hits(first, np.zeros(len(first), np.float32), ())

    def _checked_mask(self, mask: DocumentMask | None) -> Mask | None:
        if mask is None:
            return None
        if not isinstance(mask, np.ndarray):
            fact = f"a {type(mask).__name__}"
        elif mask.dtype != np.bool_ or mask.shape != (self.max_doc,):
            fact = f"of shape {mask.shape} and type {mask.dtype}"
        else:
            return Mask(mask)
        raise QueryError(
            f"mask is {fact}; give a bool array of length max_doc = {self.max_doc}",
            field="mask",
        )


def _of_passages(state: State) -> tuple[str, ...]:
    """Return the parameters of passages, if documents are divided."""
    return () if state.passages is None else ("passage_weight",)


def _named_document(state: State, query: str) -> int | None:
    """Return the doc id of the document whose ID is the query, or None."""
    text = query.strip() if isinstance(query, str) else ""
    return state.documents.find_in_any_case(text) if _ID.fullmatch(text) else None


def _has_operators(said: QueryInterpretation) -> bool:
    """Return whether operators of the query restrict the documents."""
    return bool(said.phrases or said.required or said.excluded or said.fields)


def _by_words(state: State, query: ParsedQuery, parameters: SearchSettings, used: int) -> Rank:
    """Return the ranking of a query by its words."""

    def rank(k: int, mask: Mask | None) -> TopDocs:
        return state.searcher.top([query], k, parameters, used, mask, totals=True)[0]

    return rank


def _parse_query(
    state: State, query: str, dimensions: int | None, parameters: SearchParameters
) -> tuple[ParsedQuery, SearchSettings, int]:
    """Return the parsed query, its parameters and the number of eigenvectors."""
    reading, chosen = state.parameters.read(parameters)
    parsed = state.query_parser.parse(query, reading)
    return parsed, chosen, state.parameters.dimensions(dimensions, chosen)
