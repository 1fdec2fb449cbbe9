"""What an open index reads: its parts in a present state, or in the state of a view."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from itertools import chain
from pathlib import Path
from typing import Concatenate, Final, ParamSpec, TypeVar, Unpack

import numpy as np

from klsa_search.analysis.analyzer import Analyzer
from klsa_search.collection.model import Document
from klsa_search.core.arguments import checked_argument, checked_items
from klsa_search.core.array_types import DocIds, Scores
from klsa_search.core.config import Settings
from klsa_search.core.parameters import RankingSettings, SearchParameters
from klsa_search.errors import StoreError
from klsa_search.search.costs import is_quick, search_cost
from klsa_search.search.filters.masks import FilterLike
from klsa_search.search.models import NO_MODELS, Models
from klsa_search.search.pages.applied_rules import rule_warnings
from klsa_search.search.pages.excerpts import Excerpt, excerpt_of
from klsa_search.search.pages.results import Hit
from klsa_search.search.parts import reading
from klsa_search.search.parts.open_parts import OpenParts
from klsa_search.search.parts.part_set import IndexFacts, Part, PartSet
from klsa_search.search.parts.reading import global_doc_ids, local_doc_ids
from klsa_search.search.query.query import Query
from klsa_search.search.state.drift import Drift
from klsa_search.search.state.state import State
from klsa_search.storage.columns.columns import Fields
from klsa_search.storage.current import partitions_error
from klsa_search.storage.manifest import Manifest, SpaceEntry
from klsa_search.storage.partitions import partition_of, with_files
from klsa_search.storage.passages import PassageId
from klsa_search.storage.rules import Rule
from klsa_search.storage.write_log import LogPosition

T = TypeVar("T")
P = ParamSpec("P")

_BATCH: Final = 100
"""Documents that are read at once."""


class Reader:
    """The documents of an open index; `Index` has many of these methods.

    source  holds its present state
    view    the one state that is read, if this is a view
    models  by which searches and writes get vectors, and hits an order
    """

    def __init__(
        self, source: OpenParts, view: PartSet | None = None, models: Models = NO_MODELS
    ) -> None:
        self._source, self._view, self.models = source, view, models
        self._process = os.getpid()

    @property
    def _facts(self) -> IndexFacts:
        return (self._view or self._source.parts).facts

    @property
    def parts(self) -> PartSet:
        """Return the parts; StoreError once it is closed, and in a forked process."""
        if self._process != os.getpid():
            raise StoreError(
                f"index `{self.name}` was opened before this process was forked; open it again in "
                "this process with open_index, or start processes by spawn or forkserver"
            )
        return self._view or self._source.parts.require_open()

    def _read_all(
        self, function: Callable[Concatenate[State, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> list[T]:
        return [part.read(function, *args, **kwargs) for part in self.parts.parts]

    def _part_of(self, id_: str) -> Part:
        parts = self.parts.parts
        return parts[partition_of(id_, len(parts))]

    def _by_doc_id(
        self,
        doc_ids: Iterable[int],
        function: Callable[Concatenate[State, Sequence[int], P], Sequence[T]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> list[T]:
        """Return what a function reads of parts by their doc ids, in order."""
        parts = self.parts.parts
        every = reading.checked_doc_ids(doc_ids, self.name, len(parts))
        numbers, _ = local_doc_ids(every)
        values = [
            part.read(function, every[numbers == number].tolist(), *args, **kwargs)
            for number, part in enumerate(parts)
        ]
        return _merged(numbers.tolist(), values)

    @property
    def is_read_only(self) -> bool:
        """Return whether it cannot write, as it reads one state only."""
        return self._view is not None or self._source.is_pinned

    @property
    def name(self) -> str:
        """Return the name of the index."""
        return self.path.parent.name

    @property
    def path(self) -> Path:
        """Return the folder of the generation, or the file that names the partitions."""
        return self._facts.path

    @property
    def generation(self) -> str:
        """Return the name of the generation, or of the build of all partitions."""
        return self.path.name

    @property
    def manifest(self) -> Manifest:
        """Return the manifest of all documents of the build, with the files of all partitions."""
        manifest = self._facts.manifest
        if len(self.parts.parts) == 1:
            return manifest
        return with_files(self.path.parent, manifest, self.generations)

    @property
    def generations(self) -> dict[Path, Manifest]:
        """Return the manifests of the generations that are read, by their folders."""
        infos = [part.info for part in self.parts.parts]
        generations = {info.path: info.manifest for info in infos}
        if self._facts.terms is not None and len(infos) > 1:
            folder, manifest = self._facts.terms
            generations[folder] = manifest
        return generations

    @property
    def settings(self) -> Settings:
        """Return the settings of the index."""
        return self._facts.configuration.settings

    @property
    def analyzer(self) -> Analyzer:
        """Return the analyser, which turns texts into terms."""
        return self.parts.parts[0].info.analyzer

    @property
    def last_write(self) -> LogPosition:
        """Return the last write that searches see; the number of all writes in partitions."""
        return self._facts.last_write

    @property
    def drift(self) -> Drift:
        """Return the drift of all parts from their build."""
        drifts = [asdict(part.info.drift) for part in self.parts.parts]
        return Drift(**{name: sum(drift[name] for drift in drifts) for name in drifts[0]})

    @property
    def fields(self) -> Fields:
        """Metadata fields as columns, by name, to make a `mask` for searches.

        A field is a column if it was declared when the index was built, or if all its values are of
        one type; `fields.unfilterable` says why others are not. A detected column keeps its type:
        an added value that does not fit counts as missing, and its document in `type_mismatches`.
        The type of a field that first occurs in added documents is that of its first value.

        >>> sorted(index.fields)
        ['about', 'seen', 'year']
        >>> recent = index.fields["seen"].between("2024-03-01") & ~index.fields["year"].equal(2021)
        >>> [hit.id for hit in index.search("coolant", mask=recent).hits]
        ['leak', 'pump']
        """
        return self.parts.fields

    @property
    def type_mismatches(self) -> dict[str, int]:
        """Return the numbers of documents whose value of a field does not fit, by field.

        >>> index.type_mismatches["year"]
        0
        """
        counts: Counter[str] = Counter()
        for mismatches in self._read_all(reading.type_mismatches):
            counts.update(mismatches)
        return dict(counts)

    @property
    def max_doc(self) -> int:
        """Return the number of doc ids, including deleted documents: the length of masks."""
        return sum(self._read_all(reading.max_doc))

    @property
    def segments(self) -> int:
        """Return the number of segments of the postings: that of the build, and of later writes.

        >>> index.segments
        1
        """
        return sum(self._read_all(reading.segments))

    @property
    def synonyms(self) -> Mapping[str, Sequence[str]]:
        """Return the synonyms of words and sequences of words: see `set_synonyms`."""
        return self._facts.configuration.synonyms

    @property
    def rules(self) -> Sequence[Rule]:
        """Return the rules of the index."""
        return self._facts.configuration.rules

    def rule_warnings(self) -> list[str]:
        """Return what the rules refer to and the index does not have, such as documents.

        >>> index.put_rule({"id": "soon", "then": {"pin": [{"id": "later", "position": 1}]}})
        >>> index.rule_warnings()
        ["rule 'soon': the index has no document 'later'"]
        """
        first, *further = self._read_all(rule_warnings)
        return [warning for warning in first if all(warning in warnings for warnings in further)]

    @property
    def passage_count(self) -> int | None:
        """Return the number of passages; None if documents are not divided into passages.

        >>> index.passage_count is None  # its documents are short
        True
        """
        return sum(self._read_all(reading.passages)) if self._facts.manifest.has_passages else None

    @property
    def vector_spaces(self) -> tuple[SpaceEntry, ...]:
        """Return the spaces of vectors, with the numbers of live documents. Cost: O(max_doc).

        >>> written = index.patch("leak", {"_vectors": {"minilm": [0.1, -0.3, 0.2]}})
        >>> [(space.name, space.dimension, space.documents) for space in index.vector_spaces]
        [('minilm', 3, 1)]
        """
        return reading.added_spaces(chain.from_iterable(self._read_all(reading.space_entries)))

    def __len__(self) -> int:
        """Return the number of live documents."""
        return self._facts.documents

    def state(self) -> State:
        """Return the state of all documents, of which partitions have none.

        PartitionsUnsupported if the documents are in partitions; StoreError if it is closed.
        """
        parts = self.parts.parts
        if len(parts) > 1:
            raise partitions_error(self.name)
        return self.parts.local.parts[0]

    @property
    def count(self) -> int:
        """Return the number of parts; 0 once it is closed."""
        return len((self._view or self._source.parts).parts)

    @property
    def partitions(self) -> tuple[Reader, ...]:
        """Return a view of each partition, by number, in one state; one of an undivided index."""
        parts = self.parts
        return tuple(
            Reader(self._source, parts.of_part(number)) for number in range(len(parts.parts))
        )

    def view(self) -> Reader:
        """Return a reader of the present state, which closes with this one."""
        return Reader(self._source, self.parts, self.models)

    def restricted(self, filter_: FilterLike) -> Reader:
        """Return a view of the documents that match a filter: see `Index.restricted`."""
        return Reader(self._source, self.parts.restricted(filter_), self.models)

    def require_writer(self) -> OpenParts:
        """Return the parts to write to; StoreError if this is a view, or closed."""
        self.parts.require_open()
        if self.is_read_only:
            raise StoreError("a snapshot is read-only; write to the index itself")
        return self._source

    @property
    def dimensions(self) -> Mapping[str, int]:
        """Return the dimensions of the present spaces of vectors, by name."""
        return self.parts.parts[0].read(reading.dimensions)

    def is_quick(self, query: str, k: int, filter_: FilterLike | None) -> bool:
        """Return whether a search by words takes at most 1 ms: see `Index.is_quick`."""
        state = self.parts.only_state
        return state is not None and not self.embeds_queries and is_quick(state, query, k, filter_)

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
        self.parts.require_open()
        return self._view is None and self._source.refresh()

    def close(self) -> None:
        """Release all files and memory; later calls raise StoreError.

        Running calls of other threads keep their arrays until they end; a running `refresh` raises
        StoreError.
        """
        if self._view is None:
            self._source.close()

    def document(self, id: str) -> Document:  # noqa: A002 - the field's own name
        """Return the document with this ID as it was indexed; DocumentNotFound."""
        return self._part_of(checked_argument("id", id, str)).read(reading.document, id)

    def ids(self, doc_ids: Iterable[int] | None = None) -> list[str]:
        """Return the IDs of documents by doc id, or of all live documents in order of doc ids."""
        return self._by_doc_id(self.live_doc_ids() if doc_ids is None else doc_ids, reading.ids_at)

    def doc_ids(self, ids: Iterable[str]) -> list[int]:
        """Return the doc ids of documents by ID, in order; DocumentNotFound."""
        parts, ids = self.parts.parts, checked_items("ids", ids, str)
        numbers = [partition_of(id_, len(parts)) for id_ in ids]
        doc_ids: list[list[int]] = []
        for number, part in enumerate(parts):
            of_part = [id_ for id_, at in zip(ids, numbers, strict=True) if at == number]
            local = np.array(part.read(reading.doc_ids_of, of_part), np.int64)
            doc_ids.append(global_doc_ids(number, local).tolist())
        return _merged(numbers, doc_ids)

    def documents_at(self, doc_ids: Iterable[int]) -> list[Document]:
        """Return documents by doc id, in order, as they were indexed."""
        return self._by_doc_id(doc_ids, reading.documents_at)

    def live_doc_ids(self) -> DocIds:
        """Return the doc ids of all live documents, in the order of `ids`: (n,).

        >>> index.ids(index.live_doc_ids()[:2]) == index.ids()[:2]
        True
        """
        live = self._read_all(reading.live_doc_ids)
        doc_ids = [global_doc_ids(number, doc_ids) for number, (doc_ids, _) in enumerate(live)]
        order = np.argsort(np.concatenate([ordinals for _, ordinals in live]), kind="stable")
        every: DocIds = np.concatenate(doc_ids)[order]
        return every

    def live_documents(self) -> Iterator[Document]:
        """Yield all live documents as they were indexed, in order of their doc ids.

        >>> [document.id for document in index.live_documents()]
        ['heat', 'pump', 'leak', 'tyre', 'grip', 'copy']
        """
        view = self.view()
        doc_ids = view.live_doc_ids()
        for begin in range(0, len(doc_ids), _BATCH):
            yield from view.documents_at(doc_ids[begin : begin + _BATCH])

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
        checked_scores = checked_items("scores", scores, float)
        words = checked_items("terms", terms, str)
        hits = self._by_doc_id(doc_ids, reading.hits, words, weights)
        return tuple(
            replace(hit, rank=rank, score=score)
            for rank, (hit, score) in enumerate(zip(hits, checked_scores, strict=True), start=1)
        )

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
        part = self._part_of(checked_argument("id", id, str))
        if not part.read(reading.has_document, id):
            with suppress(ValueError):  # the ID of no passage
                part = self._part_of(PassageId.of(id).document_id)
        return part.read(excerpt_of, id, span, page)

    def parameters(self, /, **parameters: Unpack[SearchParameters]) -> RankingSettings:
        """Return search parameters, completed by those of the index; QueryError if invalid."""
        return self.parts.parts[0].read(reading.parameters, parameters)

    @property
    def embeds_queries(self) -> bool:
        """Return whether searches without a vector get one from an embedder."""
        return bool(self.models.embedders) and bool(self.dimensions)

    def search_cost(self, query: Query) -> float:
        """Return about how many milliseconds a search takes. Cost: 3 to 50 µs.

        Only ratios matter: on a larger index all searches take longer. PluginFailed.

        >>> query = klsa.Query("wet tyres")
        >>> index.search_cost(query) < index.search_cost(query.model_copy(update={"explain": True}))
        True
        """
        costs = self._read_all(search_cost, query, embeds=self.embeds_queries)
        return sum(cost.of_part for cost in costs) + max(cost.of_all for cost in costs)

    def warm_up(self) -> None:
        """Load what the first queries need, by running some: 3 ms with 100,000 documents."""
        self._read_all(reading.warm_up)


def _merged(numbers: Sequence[int], values: Sequence[Iterable[T]]) -> list[T]:
    """Return values of parts in order, each the next one of a part by its number."""
    iterators = list(map(iter, values))
    return [next(iterators[number]) for number in numbers]
