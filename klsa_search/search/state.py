"""What an open index holds: one generation, and what was written to it since."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from klsa_search.analysis import Analyzer
from klsa_search.config import LanguageSettings, SearchSettings, Settings
from klsa_search.search.drift import Drift
from klsa_search.search.filters import Masks
from klsa_search.search.language import Language, Synonyms
from klsa_search.search.parameters import Parameters
from klsa_search.search.passages import Passages
from klsa_search.search.pickling import Moment
from klsa_search.search.quality import Quality
from klsa_search.search.ranking import Ranking
from klsa_search.search.snapshot import Snapshot, open_snapshot
from klsa_search.search.suggest import Suggesting, Titles
from klsa_search.store.checked import check_once
from klsa_search.store.documents import DocumentReader
from klsa_search.store.fields.columns import Fields, open_fields
from klsa_search.store.generations import check_sizes
from klsa_search.store.log import WriteLog
from klsa_search.store.log_format import Last
from klsa_search.store.manifest import Manifest, read_manifest
from klsa_search.store.synonyms import Stamp, read_synonyms, stamp_of

if TYPE_CHECKING:
    from klsa_search.search.grown import Grown

_TOGETHER = 2_000
"""Writes that are taken up at a time."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of an index without its files.

    path       of the generation
    documents  how many there are
    last       how far the log of writes was taken up
    since      how far it is from what was built
    """

    path: Path
    manifest: Manifest
    settings: Settings
    defaults: SearchSettings
    reading: LanguageSettings
    analyzer: Analyzer
    documents: int
    last: Last
    drift: Drift


@dataclass(frozen=True, slots=True)
class State:
    """State that a call uses to its end, even if the index is refreshed or closed meanwhile."""

    facts: Facts
    snapshot: Snapshot
    ranking: Ranking
    language: Language
    parameters: Parameters
    documents: DocumentReader
    passages: Passages
    fields: Fields
    masks: Masks
    quality: Quality
    suggesting: Suggesting


def open_state(generation: Path) -> State:
    """Open a generation as it was built. See `Index`."""
    manifest = read_manifest(generation)
    check_sizes(generation, manifest)
    check_once(generation, manifest)
    settings = manifest.checked_settings()
    analyzer = Analyzer(settings)
    defaults, reading = SearchSettings.of(settings), LanguageSettings.of(settings)
    documents = DocumentReader(generation)
    snapshot = open_snapshot(generation, settings)
    facts = Facts(
        path=generation,
        manifest=manifest,
        settings=settings,
        defaults=defaults,
        reading=reading,
        analyzer=analyzer,
        documents=len(snapshot),
        last=Last(),
        drift=Drift(),
    )
    fields = open_fields(generation, manifest.fields, len(snapshot))
    quality = Quality(snapshot, settings.seed)
    return _state(facts, snapshot, documents, fields, quality, Titles(analyzer))


def _state(
    facts: Facts,
    snapshot: Snapshot,
    documents: DocumentReader,
    fields: Fields,
    quality: Quality,
    titles: Titles,
) -> State:
    """Return what searches a snapshot."""
    analyzer, vocabulary = facts.analyzer, snapshot.vocabulary
    language = _language(snapshot, analyzer, fields, documents, facts.settings)
    return State(
        facts=facts,
        snapshot=snapshot,
        ranking=Ranking(snapshot, facts.defaults),
        language=language,
        parameters=Parameters(facts.path.parent.name, facts.defaults, facts.reading, snapshot),
        documents=documents,
        passages=Passages(documents, snapshot.forward, analyzer, vocabulary),
        fields=fields,
        masks=Masks(fields, len(snapshot)),
        quality=quality,
        suggesting=Suggesting(snapshot, analyzer, language, documents, titles),
    )


def _language(
    snapshot: Snapshot,
    analyzer: Analyzer,
    fields: Fields,
    documents: DocumentReader,
    settings: Settings,
) -> Language:
    """Make what reads queries; keyword fields that were declared can be asked for by name."""
    declared = settings.declared()
    columns = {name: fields[name] for name in declared if name in fields}
    keywords = {name: column for name, column in columns.items() if column.type == "keyword"}
    return Language(snapshot, analyzer, keywords, documents.at)


class LogTailer:
    """Applies the log of writes of a generation, and its synonyms; for one thread at a time."""

    def __init__(self, built: State) -> None:
        self._built = built
        self.log = WriteLog(built.facts.path)
        self._grown: Grown | None = None
        self._taken = Last()
        self._synonyms = Synonyms({}, built.facts.analyzer)
        self._stamp: Stamp | None = None

    def state(self, before: State, *, wait: bool = True, moment: Moment | None = None) -> State:
        """Return the state of all that was written; `before` itself where that is the same.

        moment  what was there then, and none of what came later
        See `_written`; a look at the synonyms costs 2 µs, and new ones their analysis.
        """
        if moment is not None:
            state = self._written(before, moment.last, wait=wait)
            synonyms = Synonyms(moment.synonyms, state.facts.analyzer)
            return replace(state, language=state.language.with_synonyms(synonyms))
        state = self._written(before, self.log.last(), wait=wait)
        path = self._built.facts.path.parent
        stamp = stamp_of(path)
        if stamp != self._stamp:
            self._synonyms = Synonyms(read_synonyms(path), self._built.facts.analyzer)
            self._stamp = stamp
        if state.language.synonyms is self._synonyms.given:
            return state
        return replace(state, language=state.language.with_synonyms(self._synonyms))

    def _written(self, before: State, last: Last, *, wait: bool) -> State:
        """Return the state of what the log says up to there.

        wait  for the code that is being compiled in the background: folding has no slower way
        Cost: a look at the log, and what `Grown` takes for each write since.
        """
        if last == before.facts.last:
            return before
        if last.seq == 0:
            return replace(self._built, facts=replace(self._built.facts, last=last))
        grown, self._grown = self._grown, None  # after a failure, start again
        undone = last.turns != self._taken.turns and self.log.kept(self._taken) < self._taken.seq
        if grown is None or undone:
            from klsa_search.search.engine.reverse import Reversing
            from klsa_search.search.grown import Grown  # which an index as built does without

            if wait:
                Reversing.wait()  # what is compiled last of all that folding needs
            grown = Grown(self._built)
            self._taken = Last()
        some, documents, size = [], 0, grown.kept.next_size
        for write in self.log.rows(self._taken.seq, last):
            some.append(write)
            documents += write.document is not None
            if documents == size or (size is None and len(some) == _TOGETHER):
                grown.take(some)
                some, documents, size = [], 0, grown.kept.next_size
        grown.take(some)
        grown.kept.end()
        joined = self._joined(grown, last)
        self._grown, self._taken = grown, last
        return joined

    def save(self) -> None:
        """Keep what was folded in files of the generation: see `Grown.save`."""
        if self._grown is not None:
            self._grown.save()

    def _joined(self, grown: Grown, last: Last) -> State:
        snapshot, documents, fields = grown.snapshot()
        count = snapshot.bm25.documents
        facts = replace(self._built.facts, documents=count, last=last, drift=grown.drift())
        return _state(facts, snapshot, documents, fields, self._built.quality, grown.titles)
