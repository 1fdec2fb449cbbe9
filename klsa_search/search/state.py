"""The state of an open index: a generation and its delta."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, TypeVar

from klsa_search.analysis.analyzer import Analyzer
from klsa_search.analysis.tokenizers import trust
from klsa_search.core.config import (
    PASSAGE_WORDS,
    LanguageSettings,
    SearchSettings,
    Settings,
)
from klsa_search.errors import IndexNotFound
from klsa_search.search.filters.masks import FilterCache
from klsa_search.search.options import Parameters
from klsa_search.search.passage_index import PassageIndex, PassageWrites
from klsa_search.search.passage_searcher import PassageSearcher
from klsa_search.search.quality import Quality
from klsa_search.search.query.parser import QueryParser
from klsa_search.search.query.rules import RuleSet
from klsa_search.search.query.synonyms import Synonyms
from klsa_search.search.searcher import Searcher
from klsa_search.search.snapshot import Snapshot, open_snapshot
from klsa_search.search.stored_snippets import StoredSnippets
from klsa_search.search.suggest.suggester import Suggester
from klsa_search.search.suggest.titles import Titles
from klsa_search.search.writing import Drift
from klsa_search.storage.arrays import open_array
from klsa_search.storage.checked_file import Stamp, stamp_of
from klsa_search.storage.checksums import check_once
from klsa_search.storage.columns.columns import Fields, open_fields
from klsa_search.storage.current import current_generation
from klsa_search.storage.directories import is_index
from klsa_search.storage.documents import DocumentReader
from klsa_search.storage.generations import check_sizes
from klsa_search.storage.log import LogPosition, Write, WriteLog
from klsa_search.storage.manifest import Manifest, read_manifest
from klsa_search.storage.names import PASSAGES, RULES, SYNONYMS
from klsa_search.storage.passages import PASSAGE_DOCUMENTS
from klsa_search.storage.rules import Rule, read_rules
from klsa_search.storage.synonyms import read_synonyms

Opened = TypeVar("Opened")


class PointInTime(NamedTuple):
    """What identifies a snapshot, besides its generation."""

    last: LogPosition
    synonyms: Mapping[str, Sequence[str]]
    rules: Sequence[Rule] = ()


def reopen(cls: Callable[[Path], Opened], folder: Path, tokenizer: str | None) -> Opened:
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
    return cls(current_generation(folder))


def reopen_snapshot(
    cls: Callable[[Path, PointInTime], Opened],
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
    return cls(generation, moment)


_BATCH = 2_000
"""Writes that are applied at once."""


@dataclass(frozen=True, slots=True)
class GenerationInfo:
    """Facts about an open index that do not need its files.

    path       of the generation
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
    """Immutable state that a call uses to its end, even if the index is refreshed or closed."""

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


def open_state(generation: Path) -> State:
    """Open a generation as it was built. See `Index`."""
    manifest = read_manifest(generation)
    check_sizes(generation, manifest)
    check_once(generation, manifest)
    return _open_checked(generation, manifest)


def _open_checked(generation: Path, manifest: Manifest) -> State:
    settings = manifest.checked_settings()
    analyzer = Analyzer(settings)
    defaults, reading = SearchSettings.of(settings), LanguageSettings.of(settings)
    documents = DocumentReader(generation)
    snapshot = open_snapshot(generation, settings)
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
    fields = open_fields(generation, manifest.fields, len(snapshot))
    quality = Quality(snapshot, settings.seed)
    passages = None
    if manifest.has_passages:
        folder = generation / PASSAGES
        state = _open_checked(folder, read_manifest(folder))
        passages = PassageIndex(state, open_array(folder, PASSAGE_DOCUMENTS))
    return state_of(info, snapshot, documents, fields, quality, Titles(analyzer), passages)


def state_of(
    info: GenerationInfo,
    snapshot: Snapshot,
    documents: DocumentReader,
    fields: Fields,
    quality: Quality,
    titles: Titles,
    passages: PassageIndex | None,
) -> State:
    """Return the state of a snapshot."""
    analyzer, vocabulary = info.analyzer, snapshot.vocabulary
    query_parser = _language(snapshot, analyzer, fields, documents, info.settings)
    return State(
        info=info,
        snapshot=snapshot,
        searcher=Searcher(snapshot, info.defaults)
        if passages is None
        else PassageSearcher(snapshot, info.defaults, passages),
        query_parser=query_parser,
        parameters=Parameters(info.path.parent.name, info.defaults, info.reading, snapshot),
        documents=documents,
        snippets=StoredSnippets(documents, snapshot.forward, analyzer, vocabulary),
        passages=passages,
        fields=fields,
        filters=FilterCache(fields, len(snapshot)),
        quality=quality,
        suggester=Suggester(snapshot, analyzer, query_parser, documents, titles),
        rules=RuleSet((), analyzer),
    )


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


def _with(state: State, synonyms: Synonyms, rules: RuleSet) -> State:
    """Return a state with other synonyms and rules."""
    return replace(with_synonyms(state, synonyms), rules=rules)


class LogTailer:
    """Applies the log of writes of a generation, synonyms and rules; for one thread at a time."""

    def __init__(self, built: State) -> None:
        self._built = built
        self.log = WriteLog(built.info.path)
        self._delta: _Delta | None = None
        self._applied = LogPosition()
        self._synonyms = Synonyms({}, built.info.analyzer)
        self._rules = RuleSet((), built.info.analyzer)
        self._stamps: tuple[Stamp | None, Stamp | None] = (None, None)

    def state(
        self, current: State, *, wait: bool = True, moment: PointInTime | None = None
    ) -> State:
        """Return the state after all writes, or `current` if nothing changed.

        moment  apply only what was written until then
        Cost: see `_written`; checking synonyms and rules takes 4 µs, new ones their analysis.
        """
        analyzer = self._built.info.analyzer
        if moment is not None:
            state = self._written(current, moment.last, wait=wait)
            synonyms = Synonyms(moment.synonyms, analyzer)
            return _with(state, synonyms, RuleSet(moment.rules, analyzer))
        state = self._written(current, self.log.last(), wait=wait)
        path = self._built.info.path.parent
        stamps = stamp_of(path / SYNONYMS), stamp_of(path / RULES)
        if stamps != self._stamps:
            self._synonyms = Synonyms(read_synonyms(path), analyzer)
            self._rules = RuleSet(read_rules(path), analyzer)
            self._stamps = stamps
        if (
            state.query_parser.synonyms is self._synonyms.given
            and state.rules.rules is self._rules.rules
        ):
            return state
        return _with(state, self._synonyms, self._rules)

    def _written(self, current: State, last: LogPosition, *, wait: bool) -> State:
        """Return the state after the writes up to `last`.

        wait  for code that is compiled in the background, which folding needs
        Cost: reading the log, and applying each new write: see `DeltaIndex`.
        """
        if last == current.info.last:
            return current
        if last.seq == 0:
            return replace(self._built, info=replace(self._built.info, last=last))
        delta, self._delta = self._delta, None  # start again after a failure
        truncated = (
            last.undos != self._applied.undos
            and self.log.valid_until(self._applied) < self._applied.seq
        )
        if delta is None or truncated:
            from klsa_search.search.engine.reverse_neighbours import ReverseNeighboursBuilder

            if wait:
                ReverseNeighboursBuilder.wait()  # compiled last of all that folding needs
            delta = _Delta(self._built)
            self._applied = LogPosition()
        for write in self.log.rows(self._applied.seq, last):
            delta.add(write)
        state = delta.state(last)
        self._delta, self._applied = delta, last
        return state

    def save(self) -> None:
        """Store what was folded in files of the generation: see `DeltaIndex.save`."""
        if self._delta is not None:
            self._delta.save()


def with_synonyms(state: State, synonyms: Synonyms) -> State:
    """Return a state whose queries, also those to passages, use synonyms."""
    passages = state.passages
    if passages is not None:
        passages = replace(passages, state=with_synonyms(passages.state, synonyms))
    parser = state.query_parser.with_synonyms(synonyms)
    return replace(state, query_parser=parser, passages=passages)


class _Delta:
    """The writes to a state as it was built, and to its passages."""

    def __init__(self, built: State) -> None:
        from klsa_search.search.delta_index import DeltaIndex  # not needed without writes

        self._built, self._delta = built, DeltaIndex(built)
        self._batch: list[Write] = []
        self._begin_batch()
        self._passages: _Delta | None = None
        if built.passages is not None:
            self._passages = _Delta(built.passages.state)
            words = built.info.settings.passage_words or PASSAGE_WORDS
            self._of_passages = PassageWrites(built.passages, built.documents, words)

    def add(self, write: Write) -> None:
        """Add the next write. Batches end where stored segments do."""
        self._batch.append(write)
        self._puts += write.document is not None
        if self._puts == self._size or (self._size is None and len(self._batch) == _BATCH):
            self._delta.apply(self._batch)
            self._begin_batch()
        if self._passages is not None:
            for each in self._of_passages.of(write):
                self._passages.add(each)

    def state(self, last: LogPosition) -> State:
        """Return the state after all writes, of which this is the last."""
        self._delta.apply(self._batch)
        self._begin_batch()
        self._delta.kept.end()
        passages = None
        if self._passages is not None:
            document_of = self._of_passages.document_of()
            passages = PassageIndex(self._passages.state(last), document_of)
        snapshot, documents, fields = self._delta.snapshot()
        count = snapshot.query_kernel.documents
        built = self._built
        info = replace(built.info, documents=count, last=last, drift=self._delta.drift())
        titles = self._delta.titles
        return state_of(info, snapshot, documents, fields, built.quality, titles, passages)

    def save(self) -> None:
        """Store what was folded: see `DeltaIndex.save`."""
        self._delta.save()
        if self._passages is not None:
            self._passages.save()

    def _begin_batch(self) -> None:
        self._batch, self._puts, self._size = [], 0, self._delta.kept.next_size
