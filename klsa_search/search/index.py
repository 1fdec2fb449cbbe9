"""Open indexes; an open index reads, searches, writes, and changes settings of queries."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, Self, Unpack

from klsa_search.analysis.tokenizers import trust
from klsa_search.core.arguments import checked_argument, checked_items
from klsa_search.core.array_types import DocIds, DocumentMask, Scores
from klsa_search.core.build_settings import Tokenizer
from klsa_search.core.lazy import delegated, delegated_property
from klsa_search.core.parameters import SearchParameters
from klsa_search.core.wording import counted
from klsa_search.errors import SettingsError, StoreError
from klsa_search.search.configuration import Configuration
from klsa_search.search.engine.snapshot import IndexArrays
from klsa_search.search.explain.explanation import Explanation
from klsa_search.search.filters.masks import FilterLike
from klsa_search.search.models import Models, refuse_other_model
from klsa_search.search.pages.planning import Ranking
from klsa_search.search.pages.results import SearchResults
from klsa_search.search.parts.exports import export
from klsa_search.search.parts.merged_search import (
    explain_part,
    rank_parts,
    score_parts,
    search_parts,
)
from klsa_search.search.parts.open_parts import OpenParts, reopened
from klsa_search.search.parts.reader import Reader
from klsa_search.search.parts.suggestions import suggest
from klsa_search.search.query.query import Query, SearchOptions, VectorLike, as_query
from klsa_search.search.ranking.parameters import checked_integer
from klsa_search.search.ranking.searcher import in_parallel
from klsa_search.search.writer import Writer
from klsa_search.storage.aliases import followed
from klsa_search.storage.maintenance import indexes_in
from klsa_search.storage.names import index_directory

if TYPE_CHECKING:
    from klsa_search.embedding.model import Embedder, Reranker
    from klsa_search.embedding.opening import EmbeddingFunction


class Index(Writer, Configuration):
    """An open index with all writes; safe to share between threads.

    Arrays are memory-mapped, so opening costs little more than reading the vocabulary, once the
    checksums of all files have been verified: see `open_index`. Writes by other processes become
    visible when the index is opened, and by `refresh`. `ranker`, `alpha`, `z` and `dimensions` of
    each call default to the settings of the index. After `close`, every call but the length raises
    StoreError.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    path = delegated_property("_reader", Reader.path)
    name = delegated_property("_reader", Reader.name)
    generation = delegated_property("_reader", Reader.generation)
    manifest = delegated_property("_reader", Reader.manifest)
    generations = delegated_property("_reader", Reader.generations)
    settings = delegated_property("_reader", Reader.settings)
    analyzer = delegated_property("_reader", Reader.analyzer)
    last_write = delegated_property("_reader", Reader.last_write)
    drift = delegated_property("_reader", Reader.drift)
    max_doc = delegated_property("_reader", Reader.max_doc)
    segments = delegated_property("_reader", Reader.segments)
    type_mismatches = delegated_property("_reader", Reader.type_mismatches)
    fields = delegated_property("_reader", Reader.fields)
    passage_count = delegated_property("_reader", Reader.passage_count)
    vector_spaces = delegated_property("_reader", Reader.vector_spaces)
    partitions = delegated_property("_reader", Reader.partitions)
    synonyms = delegated_property("_reader", Reader.synonyms)

    @property
    def arrays(self) -> IndexArrays:
        """Return the arrays of the present state, for other packages; not public.

        Those of several partitions follow one another. Cost: see `PartSet.local`.
        """
        return self._reader.parts.local.arrays

    def __len__(self) -> int:
        """Return the number of live documents."""
        return len(self._reader)

    def __repr__(self) -> str:
        """Return name, generation and number of documents."""
        documents = counted(len(self), "document")
        divided = f" in {n} partitions" if (n := self._reader.count) > 1 else ""
        return f"<Index {self.name} generation {self.generation}: {documents}{divided}>"

    def __reduce__(self) -> tuple[Callable[..., Index], tuple[object, ...]]:
        """Pickle by path: unpickling opens the index at the same path.

        The result is the index at that time, or for a snapshot the same state of the same
        generation. IndexNotFound if that no longer exists.

        >>> import pickle
        >>> pickle.loads(pickle.dumps(index))
        <Index reports generation 000001: 6 documents>
        """
        reader, moment = self._reader, None
        parts = reader.parts
        if reader.is_read_only:
            facts = parts.facts
            if facts.terms is not None or parts.parts[0].info.restricted:
                raise StoreError(
                    "a restricted index, and a snapshot of several partitions, cannot be pickled; "
                    "pickle the index itself"
                )
            moment = facts.manifest, facts.last_write, facts.configuration
        return _reopened, (reader.path.absolute(), reader.settings.tokenizer, moment)

    def snapshot(self) -> Self:
        """Return a read-only view of the present state; it closes with this index.

        For several calls that must see the same state while others write.

        >>> before = index.snapshot()
        >>> index.delete(["copy"]), len(before), len(index)
        (1, 6, 5)
        """
        return type(self)(self._reader.view())

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
        return type(self)(self._reader.restricted(filter))

    def restriction_cost(self, filter: FilterLike) -> float:  # noqa: A002 - as in `search`
        """Return about how many milliseconds `restricted` takes; 0 if the view is cached.

        >>> index.restriction_cost('about = "tyres"') < 1
        True
        """
        return self._reader.parts.restriction_cost(filter)

    def __enter__(self) -> Self:
        """Return the index, to close it at the end of a block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the index."""
        self.close()

    document = delegated("_reader", Reader.document)
    documents_at = delegated("_reader", Reader.documents_at)
    ids = delegated("_reader", Reader.ids)
    doc_ids = delegated("_reader", Reader.doc_ids)
    live_doc_ids = delegated("_reader", Reader.live_doc_ids)
    live_documents = delegated("_reader", Reader.live_documents)
    hits = delegated("_reader", Reader.hits)
    excerpt = delegated("_reader", Reader.excerpt)
    suggest = delegated("_reader", suggest)
    export = delegated("_reader", export)
    parameters = delegated("_reader", Reader.parameters)
    search_cost = delegated("_reader", Reader.search_cost)
    warm_up = delegated("_reader", Reader.warm_up)
    refresh = delegated("_reader", Reader.refresh)
    close = delegated("_reader", Reader.close)

    rule_warnings = delegated("_reader", Reader.rule_warnings)

    def search(
        self, query: str | Query, k: int = 10, **options: Unpack[SearchOptions]
    ) -> SearchResults:
        """Return the k best documents with titles, snippets and metadata. See `rank`.

        query  a text, or a `Query`, which has its options already: then leave out all others
        Unlike `rank`, a search finds the document whose ID is the query first, if the ID has a
        letter, and a digit or sign; and it corrects short words if documents contain no word of the
        query.

        offset    number of hits to skip: k for the second page; pages of the same k do not overlap
        filter    condition on metadata, as text or JSON (docs/reference/filter-syntax.md); does
                  not change scores. With a filter or `sort` a blank query finds every document
        sort      metadata fields to sort by, as `field:asc` or `field:desc`, then by score
        facets    metadata fields of which to count the `max_facet_values` most frequent values;
                  those of `disjunctive_facets` as if `filter` had no conditions on them
        distinct  metadata field; only the best document for each of its values is returned
        min_score minimum score of matches; all of them are ranked then
        highlight return where the words of the query are in title, snippet and passages of other
                  searched fields; each is then the passage whose words contribute most to the score
        snippet_length
                  maximum length of a snippet in characters, at most 10,000
        quality   return how good a match each hit is, and whether any is good: about 20 µs a
                  hit, and 0.2 s for the first such search (docs/guides/search.md)
        explain   explain the score of each hit: about 0.3 ms a hit
        prefix    "last": the last word is still being typed, so its completions match as well
        group     "document", or "passage" for passages of long documents, each by its own score;
                  operators, totals and facets are then those of passages (`Hit`)
        max_tokens  with `group="passage"`: return the best passages that fit into this number of
                  tokens, without repetitions, passages that follow each other as one
        count_tokens  counts the tokens of a text; by default an estimate, a quarter of its bytes
        rerank    let the reranker of the index order the first `rerank` hits; their scores stay. If
                  it fails, `warnings` of the results list it
        rules     apply the rules of the index (`set_rules`), which are about documents: they do not
                  apply to passages
        vector    vector of the query, as `{space: numbers}`: documents near to it score more, and
                  match even without a word of the query. By default the embedder of the index makes
                  it, if it has one; `{}` for none
        positive, negative  IDs of relevant and irrelevant documents (relevance feedback). Without a
                  query the ranking depends on them alone. All documents are scored
        QueryError for invalid parameters and unknown fields; DocumentNotFound.

        >>> answer = index.search("coolant", filter="year >= 2020", sort=["year:desc"])
        >>> [(hit.id, hit.metadata["year"]) for hit in answer.hits]
        [('leak', 2024), ('heat', 2021)]
        >>> [hit.id for hit in index.search('"wet roads" -title:grip').hits]
        ['tyre', 'copy']
        """
        return search_parts(self._reader, as_query(query, k, options))

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

        >>> [results.total for results in index.search_many(["coolant", "nothing like it"])]
        [3, 0]
        """

        def work(batch: Sequence[str | Query]) -> list[SearchResults]:
            return [self.search(query, k, **options) for query in batch]

        texts = checked_items("queries", queries, str, Query)
        return in_parallel(work, texts, checked_integer("threads", threads))

    def rank(
        self,
        query: str,
        k: int = 10,
        *,
        mask: DocumentMask | DocIds | None = None,
        vector: VectorLike | None = None,
        **parameters: Unpack[SearchParameters],
    ) -> tuple[DocIds, Scores]:
        """Return doc ids and scores of the k best documents, best first.

        mask    documents to rank, by default all: their doc ids, or (max_doc,) bool; it does not
                change scores
        vector  of the query: see `search`
        Only documents with a score above 0 are returned; ties are ordered by doc id. See `scores`.
        EmbedderFailed if the embedder of the index does.

        >>> doc_ids, scores = index.rank("coolant", mask=index.fields["year"].between(2020))
        >>> index.ids(doc_ids), [document.title for document in index.documents_at(doc_ids)]
        (['leak', 'heat'], ['Leaks', 'Overheating'])
        """
        ranking = Ranking(checked_integer("k", k), mask, vector, parameters)
        text = checked_argument("query", query, str)
        return rank_parts(self._reader, [text], ranking)[0]

    def rank_many(
        self,
        queries: Iterable[str],
        k: int = 10,
        *,
        threads: int = 1,
        mask: DocumentMask | DocIds | None = None,
        **parameters: Unpack[SearchParameters],
    ) -> list[tuple[DocIds, Scores]]:
        """Return the result of `rank` for each query, in order, for any number of threads.

        By default, and with bm25, threads run in parallel, in code that releases the GIL.

        >>> [index.ids(doc_ids) for doc_ids, _ in index.rank_many(["coolant", "roads"], k=1)]
        [['leak'], ['tyre']]
        """
        reader = self._reader.view()
        ranking = Ranking(checked_integer("k", k), mask, None, parameters)

        def work(batch: Sequence[str]) -> list[tuple[DocIds, Scores]]:
            return rank_parts(reader, batch, ranking)

        texts = checked_items("queries", queries, str)
        return in_parallel(work, texts, checked_integer("threads", threads))

    def scores(self, query: str, **parameters: Unpack[SearchParameters]) -> Scores:
        """Return the scores of all documents, (max_doc,) float32, by doc id; 0 for deleted ones.

        Those of several partitions are one after the other.

        query       a text, with the operators of docs/guides/query-syntax.md unless `operators`
                    is off; words that no document contains are ignored
        parameters  `ranker`, `alpha`, `z`, `operators`, ...: `SearchParameters`
        QueryError for a parameter outside its limits; an empty query scores 0 everywhere.

        >>> scores = index.scores("leaking coolant", ranker="bm25")
        >>> scores.shape, index.doc_ids(["leak"]) == [scores.argmax()]
        ((6,), True)
        """
        return score_parts(self._reader, checked_argument("query", query, str), parameters)

    def explain(
        self,
        query: str,
        id: str,  # noqa: A002 - the field's own name
        *,
        vector: VectorLike | None = None,
        **parameters: Unpack[SearchParameters],
    ) -> Explanation:
        """Return an explanation of the score of one document, even if a search does not find it.

        The score is that of a search restricted to this document, which scores it exactly.
        DocumentNotFound; QueryError as in `search`.

        >>> found = index.explain("leaking coolant", "leak")
        >>> [term.term for term in found.lexical.terms]
        ['leak', 'coolant']
        """
        request = Query(query, 1, vector=vector, explain=True, **parameters)
        checked_argument("id", id, str)
        return explain_part(self._reader, request, id)

    def is_quick(self, query: str, k: int = 10, *, filter: FilterLike | None = None) -> bool:  # noqa: A002
        """Return whether a `search` with only these parameters takes at most 1 ms. Cost: 3 µs.

        For event loops: true for few hits of plain, known words with few postings, if documents are
        not divided into passages. It does not consider slow disks, and of a filter only whether
        values like its own are found at once.

        >>> index.is_quick("leaking coolant"), index.is_quick("leaking -coolant")
        (True, False)
        """
        checked_argument("query", query, str)
        return self._reader.is_quick(query, checked_integer("k", k), filter)


def _reopened(*facts: Any) -> Index:
    return Index(Reader(reopened(*facts)))


def open_index(
    path: str | Path,
    *,
    tokenizer: Tokenizer | str | None = None,
    embedders: Mapping[str, Embedder | EmbeddingFunction | str] | None = None,
    reranker: Reranker | str | None = None,
) -> Index:
    """Open the current generation of an index, by its folder, its name or an alias.

    path       a folder; or a name alone, which is looked up in `$KLSA_HOME` or `index` if there is
               no such folder, as `build` writes it there
    tokenizer  tokenizer that the index was built with, if any: the function, or `module:function`.
               It is code that runs in this process; passing it once trusts it until the process
               ends
    embedders  by space: a search without `vector` embeds its query by the first of them whose space
               the index has, and documents that are written without vectors get some. What
               `klsa_search.embedding.open_embedder` takes. They are not pickled with the index
    reranker   of `search(..., rerank=N)`: a function, or what `klsa_search.embedding.open_reranker`
               takes; not pickled either

    IndexNotFound, IndexDamaged or FormatUnsupported; SettingsError if the tokenizer of the index is
    not trusted, or another one is given, or vectors are by another model than the embedder. File
    sizes are checked each time; checksums the first time on this machine, and after any change:
    about a second a gigabyte, on all processors.

    >>> open_index("index/reports")
    <Index reports generation 000001: 6 documents>
    """
    name = None if tokenizer is None else trust(tokenizer)
    checked_argument("embedders", embedders, Mapping, NoneType)
    models = Models.opened(embedders or {}, reranker)
    folder = _located(Path(checked_argument("path", path, str, os.PathLike)))
    index = Index(Reader(OpenParts(folder), models=models))
    try:
        for entry in index.manifest.vectors:
            if entry.name in models.embedders:
                refuse_other_model(index.name, entry, models.embedders[entry.name])
    except SettingsError:
        index.close()
        raise
    built = index.settings.tokenizer
    if name not in (None, built):
        index.close()
        raise SettingsError(
            f"index `{index.name}` was built with {built or 'no tokenizer'}, not "
            f"with {name}; open it with its own tokenizer, or rebuild it",
            field="tokenizer",
        )
    return index


def _located(path: Path) -> Path:
    """Return the folder of an index by its path or its name in the index directory, or an alias."""
    folder = followed(path)
    if os.path.lexists(folder) or len(path.parts) != 1:
        return folder
    home = index_directory()
    return followed(home / path) if home.is_dir() else folder


def list_indexes(home: str | Path | None = None) -> list[str]:
    """Return the sorted names of the indexes of an index directory; none if it does not exist.

    home  by default `$KLSA_HOME` or `index`

    OSError if it cannot be read. Cost: that of listing each of its folders.

    >>> list_indexes()
    ['reports']
    """
    return [path.name for path in indexes_in(index_directory(home))]
