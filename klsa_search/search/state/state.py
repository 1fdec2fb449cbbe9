"""The state of an open index: a generation and its delta."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from klsa_search.analysis.analyzer import Analyzer
from klsa_search.core.config import QUERY_SETTINGS, LanguageSettings, SearchSettings, Settings
from klsa_search.kernels.vocabulary import Vocabulary
from klsa_search.search.engine.snapshot import Snapshot, open_snapshot
from klsa_search.search.explain.quality import Quality
from klsa_search.search.filters.masks import FilterCache, FilterLike
from klsa_search.search.query.parser import QueryParser
from klsa_search.search.query.rules import RuleSet
from klsa_search.search.query.synonyms import Synonyms
from klsa_search.search.ranking.parameters import Parameters
from klsa_search.search.ranking.searcher import Searcher
from klsa_search.search.snippets.stored_snippets import StoredSnippets
from klsa_search.search.state.passage_index import PassageIndex
from klsa_search.search.state.passage_searcher import PassageSearcher
from klsa_search.search.state.restricted_states import RestrictedStates
from klsa_search.search.suggest.suggester import SuggestedTexts, Suggester
from klsa_search.search.writing import Drift
from klsa_search.storage.arrays import open_array
from klsa_search.storage.checksums import check_once
from klsa_search.storage.columns.columns import Fields, open_fields
from klsa_search.storage.columns.declared import forms_of
from klsa_search.storage.documents import DocumentReader
from klsa_search.storage.generations import check_sizes
from klsa_search.storage.log import LogPosition
from klsa_search.storage.manifest import Manifest, read_manifest
from klsa_search.storage.names import PASSAGES, index_of
from klsa_search.storage.passages import PASSAGE_DOCUMENTS


@dataclass(frozen=True, slots=True)
class GenerationInfo:
    """Facts about an open index that do not need its files.

    path       of the generation
    settings   those of the build, with later changes of query settings
    documents  number of live documents
    last       last write of the log that was applied
    drift      from the build
    restricted whether documents are hidden: see `restricted_state`
    """

    path: Path
    manifest: Manifest
    settings: Settings
    defaults: SearchSettings
    reading: LanguageSettings
    analyzer: Analyzer
    documents: int
    last: LogPosition
    drift: Drift
    restricted: bool = False


@dataclass(frozen=True, slots=True)
class State:
    """Immutable state that a call uses to its end, even if the index is refreshed or closed.

    restricted  views of it: see `restricted_state`
    """

    info: GenerationInfo
    snapshot: Snapshot
    searcher: Searcher
    query_parser: QueryParser
    parameters: Parameters
    documents: DocumentReader
    snippets: StoredSnippets
    passages: PassageIndex | None
    fields: Fields
    filters: FilterCache
    quality: Quality
    suggester: Suggester
    rules: RuleSet
    restricted: RestrictedStates[State] = field(init=False, default_factory=RestrictedStates)

    def suggester_within(self, filter_: FilterLike | None) -> Suggester:
        """Return the suggester by the documents of a filter, or by all."""
        return (
            self.suggester if filter_ is None else self.suggester.within(self.filters.of(filter_))
        )

    def close(self) -> None:
        """Close the tables of IDs, of documents and passages; lookups raise StoreError then."""
        self.documents.close()
        if self.passages is not None:
            self.passages.state.close()


def open_state(generation: Path, vocabulary: Vocabulary | None = None) -> State:
    """Open a generation as it was built. See `Index`.

    vocabulary  its terms, by default those that it stores
    """
    manifest = read_manifest(generation)
    check_sizes(generation, manifest)
    check_once(generation, manifest)
    return _open_checked(generation, manifest, vocabulary)


def _open_checked(
    generation: Path, manifest: Manifest, vocabulary: Vocabulary | None = None
) -> State:
    settings = manifest.checked_settings()
    analyzer = Analyzer(settings)
    defaults, reading = SearchSettings.of(settings), LanguageSettings.of(settings)
    documents = DocumentReader(generation)
    snapshot = open_snapshot(generation, settings, manifest.vectors, vocabulary)
    info = GenerationInfo(
        path=generation,
        manifest=manifest,
        settings=settings,
        defaults=defaults,
        reading=reading,
        analyzer=analyzer,
        documents=len(snapshot),
        last=LogPosition(),
        drift=Drift(),
    )
    fields = open_fields(generation, manifest.fields, len(snapshot), forms_of(settings))
    quality = Quality(snapshot, settings.seed)
    passages = None
    if manifest.has_passages:
        folder = generation / PASSAGES
        state = _open_checked(folder, read_manifest(folder))
        passages = PassageIndex(state, open_array(folder, PASSAGE_DOCUMENTS))
    filters = FilterCache(fields, len(snapshot), documents.existing)
    texts = SuggestedTexts.of(analyzer)
    return state_of(info, snapshot, documents, fields, quality, texts, filters, passages)


def state_of(
    info: GenerationInfo,
    snapshot: Snapshot,
    documents: DocumentReader,
    fields: Fields,
    quality: Quality,
    texts: SuggestedTexts,
    filters: FilterCache,
    passages: PassageIndex | None,
) -> State:
    """Return the state of a snapshot."""
    analyzer, vocabulary = info.analyzer, snapshot.vocabulary
    query_parser = _language(snapshot, analyzer, fields, documents, info.settings)
    find = documents.existing
    if passages is not None:  # whose filters name documents
        rows_of, state = passages.rows_of, passages.state
        of_passages = state.filters.finding(lambda ids: rows_of(find(ids)))
        passages = replace(passages, state=replace(state, filters=of_passages))
    return State(
        info=info,
        snapshot=snapshot,
        searcher=_searcher(info, snapshot, passages),
        query_parser=query_parser,
        parameters=_parameters(info, snapshot),
        documents=documents,
        snippets=StoredSnippets(documents, snapshot.forward, analyzer, vocabulary),
        passages=passages,
        fields=fields,
        filters=filters,
        quality=quality,
        suggester=Suggester(snapshot, analyzer, query_parser, documents, texts),
        rules=RuleSet((), analyzer),
    )


def _searcher(info: GenerationInfo, snapshot: Snapshot, passages: PassageIndex | None) -> Searcher:
    if passages is None:
        return Searcher(snapshot, info.defaults)
    return PassageSearcher(snapshot, info.defaults, passages)


def _parameters(info: GenerationInfo, snapshot: Snapshot) -> Parameters:
    return Parameters(index_of(info.path).name, info.defaults, info.reading, snapshot)


def _language(
    snapshot: Snapshot,
    analyzer: Analyzer,
    fields: Fields,
    documents: DocumentReader,
    settings: Settings,
) -> QueryParser:
    """Return the query parser; declared keyword fields can be searched by name."""
    declared = settings.declared()
    columns = {name: fields[name] for name in declared if name in fields}
    keywords = {name: column for name, column in columns.items() if column.type == "keyword"}
    return QueryParser(snapshot, analyzer, keywords, documents.at)


def with_settings(state: State, settings: Settings) -> State:
    """Return a state whose queries, also those to passages, use other query settings."""
    changes = {name: getattr(settings, name) for name in QUERY_SETTINGS}
    chosen = state.info.settings.model_copy(update=changes)
    if chosen == state.info.settings:
        return state
    passages = state.passages
    if passages is not None:
        passages = replace(passages, state=with_settings(passages.state, settings))
    info = replace(
        state.info,
        settings=chosen,
        defaults=SearchSettings.of(chosen),
        reading=LanguageSettings.of(chosen),
    )
    return replace(
        state,
        info=info,
        searcher=_searcher(info, state.snapshot, passages),
        parameters=_parameters(info, state.snapshot),
        passages=passages,
    )


def with_synonyms(state: State, synonyms: Synonyms) -> State:
    """Return a state whose queries, also those to passages, use synonyms."""
    passages = state.passages
    if passages is not None:
        passages = replace(passages, state=with_synonyms(passages.state, synonyms))
    parser = state.query_parser.with_synonyms(synonyms)
    return replace(state, query_parser=parser, passages=passages)
