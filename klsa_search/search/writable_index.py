"""The part of an open index that writes, and that replaces its state: `Index` adds searches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Self, Unpack, cast

from klsa_search.analysis.analyzer import Analyzer
from klsa_search.collection.mappings import merged
from klsa_search.collection.model import Collection, Document, Problems, Source, batches
from klsa_search.collection.opened_collection import warn_of_skipped
from klsa_search.collection.opening import Reading, open_collection
from klsa_search.collection.searched_text import all_texts
from klsa_search.collection.vectors import VECTORS, set_vectors, vectors_of
from klsa_search.core.config import Settings
from klsa_search.core.forks import lock_free_in_children
from klsa_search.core.keywords import IndexSettings
from klsa_search.core.progress import DOCUMENTS, Progress, open_progress
from klsa_search.errors import BadDocument, CollectionError, KlsaError, StoreError
from klsa_search.search.applied_rules import rule_warnings
from klsa_search.search.embedders import embed_documents, has_same_text, without_outdated
from klsa_search.search.filters.masks import Given as Filter
from klsa_search.search.log_tailer import LogTailer, PointInTime
from klsa_search.search.models import NO_MODELS, Models
from klsa_search.search.pickling import reopen, reopen_snapshot
from klsa_search.search.query.rules import Given as GivenRules
from klsa_search.search.query.rules import checked_rules
from klsa_search.search.query_settings import change_settings
from klsa_search.search.restricted_state import RestrictedStates
from klsa_search.search.snapshot import Snapshot
from klsa_search.search.state import GenerationInfo, State, open_state
from klsa_search.search.sync import (
    Comparison,
    SyncResult,
    max_deletions,
    refuse_deletions,
    write_differences,
)
from klsa_search.search.writing import (
    BATCH_CHARACTERS,
    BATCH_DOCUMENTS,
    Added,
    Drift,
    WriteResult,
    check_writable,
    checked_vectors,
    declared_of,
    documents_of,
    of_spaces,
)
from klsa_search.storage.columns.columns import Fields
from klsa_search.storage.columns.declared import FieldWarning, field_warnings, fitting
from klsa_search.storage.current import current_generation
from klsa_search.storage.generations import writing
from klsa_search.storage.judgements import Judgements
from klsa_search.storage.log import LogPosition, checked_id, document_as_json
from klsa_search.storage.log_writer import LogWriter
from klsa_search.storage.manifest import Manifest
from klsa_search.storage.rules import Rule, change_rule, write_rules
from klsa_search.storage.synonyms import Given, checked_synonyms, write_synonyms


class _Current(NamedTuple):
    """Everything about an index that changes, replaced as a whole.

    state   None once the index is closed
    tailer  None once the index is closed, and for a snapshot
    """

    info: GenerationInfo
    state: State | None
    tailer: LogTailer | None


class WritableIndex:
    """The state of an open index, and its writes; `Index` adds searches.

    The state is one immutable value, which `refresh` and `close` replace in one step.
    """

    def __init__(
        self,
        generation: Path,
        moment: PointInTime | None = None,
        *,
        models: Models = NO_MODELS,
    ) -> None:
        base = open_state(generation)
        self._models = models
        tailer = LogTailer(base)
        self._owns = True  # the open documents; snapshots borrow them
        self._restricted_states = RestrictedStates()
        self._refresh_lock = lock_free_in_children(compiles=True)  # held during a refresh
        self._swap_lock = lock_free_in_children()  # held briefly; guards writes of _current
        try:
            # No search has run here yet: compile in this process.
            state = self._wrap(tailer.state(base, wait=False, moment=moment))
        except BaseException:
            base.close()
            raise
        self._current = _Current(state.info, state, tailer if moment is None else None)

    def _wrap(self, state: State) -> State:
        """Return a state as this kind of index searches it."""
        return state

    @property
    def _info(self) -> GenerationInfo:
        return self._current.info

    @property
    def path(self) -> Path:
        """Return the folder of the generation."""
        return self._info.path

    @property
    def name(self) -> str:
        """Return the name of the index."""
        return self.path.parent.name

    @property
    def generation(self) -> str:
        """Return the name of the generation."""
        return self.path.name

    @property
    def manifest(self) -> Manifest:
        """Return the manifest of the generation."""
        return self._info.manifest

    @property
    def settings(self) -> Settings:
        """Return the settings of the index."""
        return self._info.settings

    @property
    def analyzer(self) -> Analyzer:
        """Return the analyser, which turns texts into terms."""
        return self._info.analyzer

    @property
    def last_write(self) -> LogPosition:
        """Return the last write of the log that is visible to searches."""
        return self._info.last

    @property
    def drift(self) -> Drift:
        """Return the drift of the index from its build."""
        return self._info.drift

    @property
    def max_doc(self) -> int:
        """Return the number of doc ids, including deleted documents: the length of masks.

        Equal to the number of documents until one is deleted or replaced.
        """
        return len(self._opened().snapshot)

    def __len__(self) -> int:
        """Return the number of live documents."""
        return self._info.documents

    def __repr__(self) -> str:
        """Return name, generation and number of documents."""
        return f"<Index {self.name} generation {self.generation}: {len(self)} documents>"

    def __reduce__(self) -> tuple[Callable[..., Self], tuple[object, ...]]:
        """Pickle by path: unpickling opens the index at the same path.

        The result is the index at that time, or for a snapshot the same state of the same
        generation. IndexNotFound if that no longer exists.

        >>> import pickle
        >>> pickle.loads(pickle.dumps(index))
        <Index reports generation 000001: 6 documents>
        """
        state, generation = self._opened(), self.path.absolute()
        trusted = self.settings.tokenizer
        if state.info.restricted:
            raise StoreError("a restricted index cannot be pickled; pickle the index itself")
        if self._current.tailer is not None:
            return reopen, (type(self), generation.parent, trusted)
        moment = PointInTime(
            state.info.last,
            dict(state.query_parser.synonyms),
            state.rules.rules,
            state.info.settings,
        )
        return reopen_snapshot, (type(self), generation, moment, trusted)

    def refresh(self) -> bool:
        """Make writes and new generations of other processes visible; return if any were.

        Searches continue meanwhile; running ones see the state at their start. StoreError if the
        index is or gets closed. Cost: 0.5 ms if nothing changed, else see `add`.

        >>> other = open_index("index/reports")
        >>> other.delete(["tyre", "copy"])
        2
        >>> len(index), index.refresh(), len(index)
        (6, True, 4)
        """
        with self._refresh_lock:
            tailer, before = self._current.tailer, self._opened()
            if tailer is None:
                return False
            generation = current_generation(self.path.parent)
            if generation == self.path:
                state = tailer.state(before)
                if state is before:
                    return False
                self._swap(self._wrap(state), tailer)
                return True
            base = open_state(generation)
            try:
                tailer = LogTailer(base)
                # Running calls keep the previous state, whose files close with the last of them.
                self._swap(self._wrap(tailer.state(base)), tailer)
            except BaseException:
                base.close()
                raise
            return True

    def _swap(self, state: State, tailer: LogTailer) -> None:
        """Replace the current state; StoreError if the index was closed."""
        with self._swap_lock:
            self._opened()
            self._current = _Current(state.info, state, tailer)
        self._restricted_states.clear()

    def add(
        self, source: Source, *, progress: Progress | bool | None = None, **reading: Unpack[Reading]
    ) -> Added:
        """Add documents and return their number. They are durable and searchable on return.

        source    as for `build`: a file or folder, or an iterable of Documents or mappings with id,
                  title, text and metadata. A document replaces the one with the same ID.
        progress  called with ("documents", number added so far, None) after each batch, or True for
                  a progress bar
        reading   `format`, `on_error`, `columns` and so on, as in `build` (`Reading`); documents
                  without IDs, which a build numbers, are refused
        Written in atomic batches of 1,000; if one fails, those before it are kept. BadDocument for
        an invalid document, or one with a value that does not fit a declared field; IndexBusy
        during a build; WritingRefused if the index is read-only or full; StoreError if the disk is.
        A value of the wrong type for a detected field is kept and counts as missing; the `warnings`
        of the result have their number and the first ones.
        Cost: about 1 ms a document, and 10 ms.

        >>> index.add([{"id": "fan", "title": "Fans", "text": "A fan that stands overheats."}])
        1
        >>> [hit.id for hit in index.search("fans").hits][:1]
        ['fan']
        """
        count, warnings = 0, Problems()
        with open_progress(progress) as report:
            documents = documents_of(source, declared_of(self.settings, self.fields), **reading)
            for puts in batches(documents, size=BATCH_DOCUMENTS, characters=BATCH_CHARACTERS):
                written = self.write(puts)
                count += written.written
                for warning in written.warnings:
                    warnings.add(warning.message, kind=warning.field)
                report(DOCUMENTS, count, None)
        return Added(count, warnings)

    def delete(self, ids: Iterable[str]) -> int:
        """Delete documents by ID and return how many there were.

        Unknown IDs are ignored. The deletion is durable and visible on return. Errors: see `add`.

        >>> index.delete(["tyre", "copy", "never there"])
        2
        """
        if isinstance(ids, str):  # its letters would be IDs
            raise CollectionError(f"ids = {ids!r} is a text; give a list of IDs", field="ids")
        return self.write((), list(ids)).deleted

    def sync(
        self,
        source: Source,
        *,
        max_delete: str | int | None = None,
        dry_run: bool = False,
        progress: Progress | bool | None = None,
        **reading: Unpack[Reading],
    ) -> SyncResult:
        """Make the index contain exactly the documents of a source, and return what differed.

        source      as for `build`: all documents, not only those that changed
        max_delete  most documents to delete, as a number or a share such as "20%"; by default 20%,
                    but at least 10. A source that would delete more, or an empty one, is refused
        dry_run     compare only
        progress    called with ("documents", number compared, None), then with ("writes", number
                    written, total), or True for a progress bar
        reading     `format`, `on_error`, `columns` and so on, as in `build`; by default those with
                    which the index was built. An opened `Collection` keeps its own

        A document whose title, text and metadata are equal is neither written nor counted as drift;
        others are replaced, and those that the source does not have are deleted. The source is read
        completely before anything is written. Differences of up to 20,000 documents are one batch,
        which `rollback` undoes; more are several, and if the call is interrupted, another one
        completes it. Documents that others write meanwhile stay as they wrote them unless they
        differ from the source at the start; another sync finds them.

        CollectionError if the source cannot be read, has a bad record, or has too few documents;
        SettingsError for an invalid `max_delete`; other errors as for `add`. Cost: reading the
        source, 10 µs a document, and `add` of those that differ.

        >>> reports = list(open_collection("reports.jsonl").documents())
        >>> fan = {"id": "fan", "text": "A fan that stands overheats."}
        >>> result = index.sync([*reports[1:], fan])
        >>> result.added, result.changed, result.deleted, result.unchanged
        (('fan',), (), ('heat',), 5)
        """
        self._check_writable()
        self.refresh()
        state = self._opened()
        max_deletions(max_delete, 0)
        check_writable(self.name, state.snapshot, self.manifest.counts.documents, 0)
        opened = None
        if isinstance(source, Collection):
            collection = source
        else:
            options = cast(Reading, {**self.manifest.reading, **reading})
            collection = opened = open_collection(source, **options)
        with open_progress(progress) as report, Comparison(state.documents) as compared:
            documents = fitting(collection, declared_of(self.settings, state.fields))
            compared.read(of_spaces(documents, state.snapshot.vectors), report)
            if opened is not None:
                warn_of_skipped(opened)
            deleted = compared.deleted()
            refuse_deletions(self.name, compared, len(deleted), max_delete, collection.problems)
            count, warnings = 0, Problems()
            if not dry_run:
                puts = len(compared.added) + len(compared.changed)
                check_writable(self.name, state.snapshot, self.manifest.counts.documents, puts)
                count, warnings = write_differences(self.write, compared, deleted, report)
        return SyncResult(
            added=tuple(compared.added),
            changed=tuple(compared.changed),
            deleted=tuple(deleted),
            unchanged=compared.unchanged,
            batches=count,
            skipped=collection.problems,
            warnings=warnings,
            removed_fields=tuple(compared.removed_fields()),
        )

    def write(self, puts: Sequence[Document] = (), deletes: Sequence[str] = ()) -> WriteResult:
        """Write one atomic batch, deletions before documents, and return its WriteResult.

        Of several documents with one ID the last is kept. Durable and searchable on return. Errors:
        see `add`; memory is that of the batch as JSON.
        """
        self._check_writable()
        checked = [checked_id(id_) for id_ in deletes]
        puts, warnings = self._with_vectors(puts)
        result = self._write(lambda _: (puts, checked))
        return replace(result, warnings=(*result.warnings, *warnings))

    def _with_vectors(
        self, puts: Sequence[Document]
    ) -> tuple[Sequence[Document], Sequence[FieldWarning]]:
        """Return documents with vectors by the embedders of the index, and which have none."""
        if not self._models.embedders or not puts:
            return puts, ()
        return embed_documents(
            self._models.embedders, self._opened(), list(map(checked_vectors, puts))
        )

    def patch(self, id: str, changes: Mapping[str, Any]) -> WriteResult:  # noqa: A002 - the field's own name
        """Merge changes into one document, and return the WriteResult.

        changes  new values of `title`, `text` and metadata fields; None removes a field, mappings
                 are merged, other values are replaced (JSON Merge Patch, RFC 7396). `metadata` may
                 also be a mapping of its own, as documents have it
        Concurrent patches do not lose each other's changes. A patch that changes nothing is not
        written. DocumentNotFound; BadDocument if the result cannot be stored; other errors and cost
        as for `add`.

        >>> index.patch("heat", {"title": "Overheating engines", "year": None}).written
        1
        >>> index.document("heat").title, "year" in index.document("heat").metadata
        ('Overheating engines', False)
        """
        self._check_writable()

        def patched(state: State) -> Document:
            stored = state.documents.get(id)
            document = checked_vectors(merged(stored, changes))
            document_as_json(document)  # raises before it is compared
            return document if VECTORS in changes else without_outdated(document, stored, state)

        ahead: Document | None = None
        warnings: Sequence[FieldWarning] = ()
        if self._models.embedders:
            self.refresh()
            (ahead,), warnings = self._with_vectors([patched(self._opened())])

        def batch(state: State) -> tuple[Sequence[Document], Sequence[str]]:
            document = patched(state)
            (doc_id,) = state.documents.doc_ids([id])
            if state.documents.equals(doc_id, document):
                return [], ()
            if ahead is not None and has_same_text(ahead, document):
                document = set_vectors(document, {**vectors_of(ahead), **vectors_of(document)})
            return [document], ()

        result = self._write(batch)
        return replace(result, warnings=(*result.warnings, *warnings)) if result.written else result

    def _write(
        self, batch: Callable[[State], tuple[Sequence[Document], Sequence[str]]]
    ) -> WriteResult:
        """Write the documents and deletions that a function returns for the present state.

        No other process writes between that state and the batch.
        """
        with writing(self.path.parent):
            self.refresh()
            state = self._opened()
            puts, deletes = batch(state)
            check_writable(self.name, state.snapshot, self.manifest.counts.documents, len(puts))
            declared = declared_of(self.settings, self.fields)
            puts = list(of_spaces(map(declared.divided, puts), state.snapshot.vectors))
            for put in puts:
                if fault := declared.fault(put.metadata):
                    raise BadDocument(f"document {put.id!r}: {fault}; correct it and write again")
            if self.analyzer.tokenizes:  # a document that it refuses would block the log
                for text in all_texts(puts, self.settings.searched_fields):
                    self.analyzer.terms(text)
            existing = [id_ for id_ in set(deletes) if state.documents.find(id_) is not None]
            if self._current.tailer is not None:
                self._current.tailer.saves = True
            with LogWriter(state.info.path) as writer:
                last = writer.append(puts, deletes)
        try:
            self.refresh()
        except (KlsaError, OSError, MemoryError) as error:
            reason = str(error) or "there is not enough memory"
            raise StoreError(
                f"the batch was written to index `{self.name}`, but is not searchable yet: {reason}"
            ) from error
        with self._refresh_lock:
            tailer = self._current.tailer
            if tailer is not None:
                tailer.save()
        warnings = tuple(field_warnings(puts, self.fields, declared.types))
        return WriteResult(state.info.path.name, last.seq, len(puts), len(existing), warnings)

    def update_settings(self, **changes: Unpack[IndexSettings]) -> None:
        """Change settings that only queries use: the defaults of searches, and `page_title`.

        They take effect on return, without a rebuild, and survive later ones. SettingsError for an
        invalid setting, and for one that needs `refit`: another form of the expansion matrix D
        (`spectral`, `gamma`, `head`, a ranker of LSI), or `coverage` or `latent` that were 0 at the
        build. IndexBusy, StoreError.

        >>> index.update_settings(alpha=0.5, page_title="Reports")
        >>> index.settings.alpha, index.search("coolant").parameters["alpha"]
        (0.5, 0.5)
        """
        self._check_writable()
        change_settings(self.path.parent, changes)
        self.refresh()

    @property
    def synonyms(self) -> Mapping[str, Sequence[str]]:
        """Return the synonyms of words and sequences of words: see `set_synonyms`."""
        return self._opened().query_parser.synonyms

    def set_synonyms(self, synonyms: Given) -> None:
        """Replace the synonyms of the index.

        synonyms  synonyms by word, or rules: `tv, television` for words that stand for each other,
                  `phone => iphone, galaxy` for what *phone* finds too; at most 10,000 words with
                  100 synonyms each. `{}` removes all
        Words may be sequences of words. Synonyms apply to all generations; `synonyms=False` turns
        them off for a query. See docs/guides/query-syntax.md. SettingsError for invalid synonyms;
        IndexBusy, StoreError.

        >>> index.set_synonyms(["automobile, engine", "chilled => coolant"])
        >>> index.synonyms["chilled"]
        ('coolant',)
        >>> [hit.id for hit in index.search("chilled").hits]
        ['leak', 'heat', 'pump']
        >>> index.set_synonyms({})
        """
        self._check_writable()
        write_synonyms(self.path.parent, checked_synonyms(synonyms))
        self.refresh()

    @property
    def rules(self) -> list[dict[str, Any]]:
        """Return the rules of searches, in order: see `set_rules`."""
        return [rule.as_json() for rule in self._opened().rules.rules]

    def set_rules(self, rules: GivenRules) -> None:
        """Replace the rules of the index, which pin, hide and boost documents.

        rules  mappings: an `id`; `when`, the conditions under which the rule applies, `query_is`,
               `query_contains`, `filter`, `from` and `until`; and `then`, what it changes, `pin`,
               `hide` and `boost`; at most 1,000. `[]` removes all
        Rules apply to `search` in all generations, the first rules first; `rules=False` turns them
        off. `rank` and evaluation ignore them. See docs/guides/rules.md. SettingsError names an
        invalid rule; IndexBusy, StoreError.

        >>> pin = {"pin": [{"id": "grip", "position": 1}]}
        >>> index.set_rules([{"id": "grip-first", "when": {"query_is": "coolants"}, "then": pin}])
        >>> results = index.search("coolant", k=2)
        >>> [hit.id for hit in results], results.rules
        (['grip', 'leak'], ('grip-first',))
        >>> index.set_rules([])
        """
        self._check_writable()
        write_rules(self.path.parent, checked_rules(rules))
        self.refresh()

    def put_rule(self, rule: Mapping[str, Any] | Rule) -> None:
        """Replace the rule of the same ID in its place, or add it as the last: see `set_rules`.

        >>> index.put_rule({"id": "no-copies", "then": {"hide": ["copy"]}})
        >>> [rule["id"] for rule in index.rules]
        ['no-copies']
        """
        self._check_writable()
        (checked,) = checked_rules([rule])
        change_rule(self.path.parent, checked.id, checked)
        self.refresh()

    def delete_rule(self, id: str) -> None:  # noqa: A002 - the field's own name
        """Delete a rule; RuleNotFound.

        >>> index.set_rules([{"id": "no-copies", "then": {"hide": ["copy"]}}])
        >>> index.delete_rule("no-copies")
        >>> index.rules
        []
        """
        self._check_writable()
        change_rule(self.path.parent, id, None)
        self.refresh()

    def rule_warnings(self) -> list[str]:
        """Return what the rules refer to and the index does not have, such as documents.

        >>> index.put_rule({"id": "soon", "then": {"pin": [{"id": "later", "position": 1}]}})
        >>> index.rule_warnings()
        ["rule 'soon': the index has no document 'later'"]
        """
        return rule_warnings(self._opened())

    @property
    def judgements(self) -> Judgements:
        """Return the relevance judgements of the index, which all generations share."""
        return Judgements(self.path.parent)

    def judge(self, query: str, id: str, grade: int) -> None:  # noqa: A002 - the field's own name
        """Judge how relevant a document is to a query; above 0 is relevant.

        Replaces an earlier grade. Durable on return, and kept if the document is deleted. Does not
        change rankings: `klsa-eval judgements` measures them. DocumentNotFound, QueryError. Cost:
        some ms.

        >>> index.judge("leaking coolant", "leak", 1)
        >>> index.judge("leaking coolant", "tyre", 0)
        >>> [(judged.text, judged.grades) for judged in index.judgements.queries()]
        [('leaking coolant', {'leak': 1, 'tyre': 0})]
        """
        self.doc_ids([id])
        self.judgements.put(query, id, grade)

    def snapshot(self) -> Self:
        """Return a read-only view of the present state; it closes with this index.

        For several calls that must see the same state while others write.

        >>> before = index.snapshot()
        >>> index.delete(["copy"]), len(before), len(index)
        (1, 6, 5)
        """
        return self._view(self._opened())

    def restricted(self, filter: Filter) -> Self:  # noqa: A002 - as in `search`
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
        return self._view(self._restricted_states.of(self._opened(), filter))

    def _view(self, state: State) -> Self:
        """Return a read-only index of a state, which closes with this index."""
        view = object.__new__(type(self))  # three times as fast as `copy`
        view.__dict__.update(self.__dict__, _current=_Current(state.info, state, None), _owns=False)
        return view

    def document(self, id: str) -> Document:  # noqa: A002 - the field's own name
        """Return the document with this ID as it was indexed; DocumentNotFound."""
        return self._opened().documents.get(id)

    def ids(self, doc_ids: Iterable[int] | None = None) -> list[str]:
        """Return the IDs of documents by doc id, or of all live documents in order of doc ids."""
        documents = self._opened().documents
        return documents.ids(documents.live_doc_ids() if doc_ids is None else doc_ids)

    @property
    def fields(self) -> Fields:
        """Metadata fields as columns, by name, to make a `mask` for searches.

        A field is a column if it was declared when the index was built, or if all its values are of
        one type; `fields.others` says why others are not. A detected column keeps its type: an
        added value that does not fit counts as missing, and its document as one of its `misfits`.
        The type of a field that first occurs in added documents is that of its first value.

        >>> sorted(index.fields)
        ['about', 'seen', 'year']
        >>> recent = index.fields["seen"].between("2024-03-01") & ~index.fields["year"].equal(2021)
        >>> [hit.id for hit in index.search("coolant", mask=recent).hits]
        ['leak', 'pump']
        """
        return self._opened().fields

    @property
    def arrays(self) -> Snapshot:
        """Return the arrays of the present state, for other packages; not public."""
        return self._opened().snapshot

    def doc_ids(self, ids: Iterable[str]) -> list[int]:
        """Return the doc ids of documents by ID, in order; DocumentNotFound."""
        return self._opened().documents.doc_ids(ids)

    def documents(self, doc_ids: Iterable[int]) -> list[Document]:
        """Return documents by doc id, in order, as they were indexed."""
        return self._opened().documents.at(doc_ids)

    def live_documents(self) -> Iterator[Document]:
        """Yield all live documents as they were indexed, in order of their doc ids.

        >>> [document.id for document in index.live_documents()]
        ['heat', 'pump', 'leak', 'tyre', 'grip', 'copy']
        """
        return self._opened().documents.live_documents()

    def close(self) -> None:
        """Release all files and memory; later calls raise StoreError.

        Running calls of other threads keep their arrays until they end, but raise StoreError if
        they look up an ID after this, as does a running `refresh`.
        """
        with self._swap_lock:
            state = self._current.state
            self._current = _Current(self._info, None, None)
        if state is not None and self._owns:
            self._restricted_states.clear()
            state.close()

    def __enter__(self) -> Self:
        """Return the index, to close it at the end of a block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the index."""
        self.close()

    def _check_writable(self) -> None:
        """Raise StoreError if the index is a snapshot, or closed."""
        tailer = self._current.tailer
        self._opened()
        if tailer is None:
            raise StoreError("a snapshot is read-only; write to the index itself")

    def _opened(self) -> State:
        state = self._current.state
        if state is None:
            raise StoreError(
                f"index `{self.name}` is closed; open it again with "
                f"open_index({str(self.path.parent)!r})"
            )
        return state
