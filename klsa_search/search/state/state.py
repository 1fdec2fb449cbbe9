"""The state of an open index: a generation and its delta, also restricted by a filter.

A restricted state is as if the documents that do not match the filter were deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Concatenate, Final, NamedTuple, ParamSpec, TypeVar

import numpy as np

from klsa_search.analysis.analyzer import Analyzer
from klsa_search.core.array_types import DocumentMask
from klsa_search.core.config import QUERY_SETTINGS, Settings
from klsa_search.core.lazy import lazy_property
from klsa_search.core.parameters import ParsingSettings, RankingSettings
from klsa_search.kernels.query_kernel import DocumentCounts, QueryKernel
from klsa_search.search.engine.collection_statistics import CollectionStatistics, CountChanges
from klsa_search.search.engine.evidence import AnswerCache
from klsa_search.search.engine.mask import Mask
from klsa_search.search.engine.snapshot import Snapshot, open_snapshot
from klsa_search.search.explain.quality import Quality
from klsa_search.search.filters.masks import FilterCache, FilterLike
from klsa_search.search.query.parser import QueryParser
from klsa_search.search.query.rules import RuleSet
from klsa_search.search.query.synonyms import Synonyms
from klsa_search.search.ranking.parameters import Parameters
from klsa_search.search.ranking.searcher import Searcher
from klsa_search.search.snippets import StoredSnippets
from klsa_search.search.state.drift import Drift, drift_of
from klsa_search.search.state.passages import PassageIndex, PassageSearcher
from klsa_search.search.suggest.suggester import SuggestedTexts, Suggester
from klsa_search.storage.arrays import open_array
from klsa_search.storage.checksums import check_once, check_sizes
from klsa_search.storage.columns.columns import Fields, open_fields
from klsa_search.storage.columns.declared import forms_of
from klsa_search.storage.documents import DocumentReader
from klsa_search.storage.manifest import Manifest, read_manifest
from klsa_search.storage.names import PASSAGES, index_of
from klsa_search.storage.partitions import CollectionTerms
from klsa_search.storage.passages import PASSAGE_DOCUMENTS
from klsa_search.storage.rules import Rule
from klsa_search.storage.write_log import LogPosition

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class GenerationInfo:
    """Facts about an open index that do not need its files.

    path       of the generation
    settings   those of the build, with later changes of query settings
    defaults, parsing  of these settings, which writes do not change
    documents  number of live documents
    last       last write of the log that was applied
    drift      from the training
    trained    (N,) which documents have the words of one of the training; None as in the generation
    restricted whether documents are hidden: see `restricted_to`
    """

    path: Path
    manifest: Manifest
    settings: Settings
    defaults: RankingSettings
    parsing: ParsingSettings
    analyzer: Analyzer
    documents: int
    last: LogPosition
    drift: Drift
    trained: DocumentMask | None = field(default=None, compare=False)
    restricted: bool = False


@dataclass(frozen=True)
class State:
    """Immutable state that a call uses to its end, even if the index is refreshed or closed.

    Searcher, parser and suggester are created at first use, so writes do not pay for them.

    quality     of the build
    texts       titles and IDs of all documents, read at the first use
    """

    info: GenerationInfo
    snapshot: Snapshot
    documents: DocumentReader
    passages: PassageIndex | None
    fields: Fields
    filters: FilterCache
    quality: Quality
    texts: SuggestedTexts
    synonyms: Synonyms
    rules: RuleSet

    @lazy_property
    def searcher(self) -> Searcher:
        """What ranks the documents."""
        if self.passages is None:
            return Searcher(self.snapshot, self.info.defaults)
        return PassageSearcher(self.snapshot, self.info.defaults, self.passages)

    @lazy_property
    def query_parser(self) -> QueryParser:
        """What parses queries; declared keyword fields can be searched by name."""
        declared, fields = self.info.settings.declared(), self.fields
        columns = {name: fields[name] for name in declared if name in fields}
        keywords = {name: column for name, column in columns.items() if column.type == "keyword"}
        analyzer, documents_at = self.info.analyzer, self.documents.at
        id_ = self.info.manifest.reading.get("columns", {}).get("id") or "id"
        stored = (*fields, "id", id_)
        return QueryParser(
            self.snapshot, analyzer, keywords, documents_at, self.synonyms, stored,
            self.rules.queries,
        )  # fmt: skip

    @lazy_property
    def parameters(self) -> Parameters:
        """What checks the parameters of searches."""
        info = self.info
        return Parameters(index_of(info.path).name, info.defaults, info.parsing, self.snapshot)

    @lazy_property
    def snippets(self) -> StoredSnippets:
        """What selects passages of documents."""
        snapshot, analyzer = self.snapshot, self.info.analyzer
        return StoredSnippets(self.documents, snapshot.forward, analyzer, snapshot.vocabulary)

    @lazy_property
    def suggester(self) -> Suggester:
        """What completes typed text."""
        return Suggester(self.query_parser, self.documents, self.texts)

    def suggester_within(self, filter_: FilterLike | None) -> Suggester:
        """Return the suggester by the documents of a filter, or by all."""
        return (
            self.suggester if filter_ is None else self.suggester.within(self.filters.of(filter_))
        )

    def read(
        self, function: Callable[Concatenate[State, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Return the result of a function for the state."""
        return function(self, *args, **kwargs)

    def searched_by(self, group: str) -> State:
        """Return the state that a search with this `group` ranks: of documents, or passages."""
        if group == "passage" and self.passages is not None:
            return self.passages.state
        return self

    def with_searcher(self, searcher: Searcher) -> State:
        """Return the same state with another searcher, for one search."""
        _ = self.snippets, self.query_parser  # made once for all searches
        state = copy(self)
        vars(state)["searcher"] = searcher
        return state


def open_state(generation: Path, collection: CollectionTerms | None = None) -> State:
    """Open a generation as it was built. See `Index`.

    collection  terms of all partitions, if it is one of several; by default those that it stores
    """
    manifest = read_manifest(generation)
    check_sizes(generation, manifest)
    check_once(generation, manifest)
    return _open_checked(generation, manifest, collection)


def _open_checked(
    generation: Path, manifest: Manifest, collection: CollectionTerms | None
) -> State:
    settings = manifest.checked_settings()
    analyzer = Analyzer(settings)
    documents = DocumentReader.open(generation)
    snapshot = open_snapshot(generation, settings, manifest.vectors, collection)
    size = len(snapshot)
    passages = None
    if manifest.has_passages:
        folder = generation / PASSAGES
        of_passages = None if collection is None else collection.passages
        state = _open_checked(folder, read_manifest(folder), of_passages)
        passages = PassageIndex.of(state, open_array(folder, PASSAGE_DOCUMENTS), documents)
    forms, declared = forms_of(settings), settings.declared()
    fields = open_fields(generation, manifest.fields, size, forms, declared)
    return State(
        info=GenerationInfo(
            path=generation,
            manifest=manifest,
            settings=settings,
            defaults=RankingSettings.of(settings),
            parsing=ParsingSettings.of(settings),
            analyzer=analyzer,
            documents=size,
            last=LogPosition(),
            drift=drift_of(generation, manifest),
        ),
        snapshot=snapshot,
        documents=documents,
        passages=passages,
        fields=fields,
        filters=FilterCache(fields, size, documents.existing),
        quality=Quality(snapshot, settings.seed),
        texts=SuggestedTexts.of(analyzer),
        synonyms=Synonyms({}, analyzer),
        rules=RuleSet((), analyzer),
    )


class QueryConfiguration(NamedTuple):
    """What changes without a build and all partitions of an index have in common."""

    synonyms: Mapping[str, Sequence[str]]
    rules: Sequence[Rule]
    settings: Settings


def configured(state: State, settings: Settings, synonyms: Synonyms, rules: RuleSet) -> State:
    """Return a state whose queries, also those to passages, use these.

    settings  of which the query settings count
    """
    changes = {name: getattr(settings, name) for name in QUERY_SETTINGS}
    info, passages = state.info, state.passages
    settings = info.settings.model_copy(update=changes)
    ranking, parsing = RankingSettings.of(settings), ParsingSettings.of(settings)
    info = replace(info, settings=settings, defaults=ranking, parsing=parsing)
    if passages is not None:
        of_passages = configured(passages.state, settings, synonyms, rules)
        passages = replace(passages, state=of_passages)
    return replace(state, info=info, passages=passages, synonyms=synonyms, rules=rules)


_BYTES_OF_TERM: Final = 60
_BYTES_OF_DOCUMENT: Final = 2


def statistics_of(state: State) -> CollectionStatistics:
    """Return the statistics of the live documents of one of several partitions, and passages.

    Cost: O(V), and its terms of later writes.
    """
    snapshot, counts = state.snapshot, state.snapshot.query_kernel.local_counts
    built, passages = snapshot.query_kernel.postings.parts[0], state.passages
    lengths = snapshot.lengths[snapshot.live_docs()[: len(snapshot.lengths)]]
    assert snapshot.collection is not None
    return CollectionStatistics(
        documents=counts.documents,
        words=int(lengths.sum(dtype=np.int64)),
        changes=CountChanges.of(built, counts, snapshot.collection, snapshot.vocabulary.terms),
        dimensions={name: space.dimension for name, space in snapshot.vectors.items()},
        passages=None if passages is None else statistics_of(passages.state),
    )


def with_statistics(restricted: State, statistics: CollectionStatistics) -> State:
    """Return a restricted state of a partition that weighs words by the views of all partitions.

    statistics  sums of those of the restricted states of all partitions
    Cost: O(V).
    """
    snapshot = restricted.snapshot
    assert snapshot.collection is not None
    assert snapshot.live is not None
    words = snapshot.vocabulary.terms[len(snapshot.collection) :]
    counts = statistics.counts(snapshot.collection, words)
    local = snapshot.query_kernel.local_counts
    weighed = _weighed(restricted, snapshot.live, local, counts)
    weighed = replace(weighed, vectors=statistics.spaces(weighed.vectors))
    passages = restricted.passages
    if passages is not None and statistics.passages is not None:
        passages = replace(passages, state=with_statistics(passages.state, statistics.passages))
    return replace(restricted, snapshot=weighed, passages=passages)


def restricted_to(state: State, filter_: FilterLike) -> State:
    """Return a state in which only the documents of a filter, and their passages, are live.

    It differs from one after deletions in what is read from the generation alone: the mean length
    of saturations and the calibration of quality. Cost: see `Index.restricted`.
    """
    return _restricted_to(state, state.filters.of(filter_).allowed)


def _restricted_to(state: State, allowed: DocumentMask) -> State:
    live = allowed & state.snapshot.live_docs()
    snapshot = _weighed(state, Mask(live), _live_counts(state.snapshot, live))
    passages = state.passages
    if passages is not None:
        restricted_passages = _restricted_to(passages.state, live[passages.document_of])
        passages = replace(passages, state=restricted_passages)
    info = replace(
        state.info,
        documents=snapshot.query_kernel.local_counts.documents,
        drift=Drift(),
        restricted=True,
    )
    # Searches return live documents of a mask only, so all views share the masks of filters.
    documents = replace(state.documents, live=live)
    return replace(state, info=info, snapshot=snapshot, documents=documents, passages=passages)


def _weighed(
    state: State, live: Mask, local: DocumentCounts, counts: DocumentCounts | None = None
) -> Snapshot:
    """Return the snapshot of a state with these live documents.

    local   their statistics
    counts  of the live documents of all partitions; None if there are no others
    """
    snapshot = state.snapshot
    unrestricted = snapshot.unrestricted or snapshot
    before = snapshot.query_kernel
    kernel = QueryKernel.of(before.postings, local, before.weighting, counts)
    allowed = live.allowed
    return replace(
        snapshot,
        vocabulary=unrestricted.vocabulary.without(kernel.counts.frequencies == 0),
        query_kernel=kernel,
        live=live,
        vectors={
            name: space
            for name, space in snapshot.vectors.items()
            if (space.has(len(snapshot)) & allowed).any()
        },
        unrestricted=unrestricted,
        answers=AnswerCache().present(),
    )


def _live_counts(snapshot: Snapshot, live: DocumentMask) -> DocumentCounts:
    terms = len(snapshot.vocabulary)
    visible, hidden = np.flatnonzero(live), np.flatnonzero(snapshot.live_docs() & ~live)
    fewer = hidden if len(hidden) < len(visible) else visible
    counts = snapshot.counts_of(fewer)
    frequencies = np.bincount(counts.indices, minlength=terms)
    occurrences = np.bincount(counts.indices, counts.data, terms).astype(np.int64)
    if fewer is hidden:
        before = snapshot.query_kernel.local_counts
        frequencies = before.frequencies - frequencies
        occurrences = before.occurrences - occurrences
    return DocumentCounts(len(visible), frequencies, occurrences)


def bytes_of(state: State) -> int:
    """Return the approximate bytes of a restricted state, once all kinds of requests used it.

    Measured: `tests/search/test_restricted_views.py`. Buffers of threads, masks of filters and
    matrices of all documents are those of the unrestricted state.
    """
    snapshot = state.snapshot
    size = _BYTES_OF_DOCUMENT * len(snapshot) + _BYTES_OF_TERM * len(snapshot.vocabulary)
    return size if state.passages is None else size + bytes_of(state.passages.state)
