"""Reads one state of a generation: its documents, settings and statistics."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Unpack

import numpy as np

from klsa_search.analysis.analyzer import Analyzer
from klsa_search.collection.model import Document
from klsa_search.core.array_types import DocIds, Scores
from klsa_search.core.build_settings import FieldType
from klsa_search.core.config import SearchSettings, Settings
from klsa_search.core.keywords import SearchParameters
from klsa_search.core.parameters import SpellingName
from klsa_search.search.costs import QueryCounts
from klsa_search.search.filters.masks import FilterLike
from klsa_search.search.pages.applied_rules import rule_warnings
from klsa_search.search.pages.excerpts import Excerpt, excerpt_of
from klsa_search.search.pages.hits import hits_of
from klsa_search.search.pages.query_costs import counts_of, is_quick
from klsa_search.search.pages.results import Hit
from klsa_search.search.parts.part_search import warm_up
from klsa_search.search.query.evidence import Answers, Evidence
from klsa_search.search.state.state import GenerationInfo, State
from klsa_search.search.suggest.suggester import Candidate
from klsa_search.search.writing import Drift
from klsa_search.storage.columns.columns import Fields
from klsa_search.storage.documents import DocumentReader
from klsa_search.storage.log import LogPosition
from klsa_search.storage.manifest import Manifest, SpaceEntry
from klsa_search.storage.rules import Rule


class StateReader(ABC):
    """Reads the present state of a generation; `Index` has many of these methods."""

    @property
    @abstractmethod
    def info(self) -> GenerationInfo:
        """Return what is known of the present state, also once it is closed."""

    @abstractmethod
    def state(self, operation: str = "this") -> State:
        """Return the present state; StoreError once it is closed."""

    @property
    def path(self) -> Path:
        """Return the folder of the generation."""
        return self.info.path

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
        return self.info.manifest

    @property
    def generations(self) -> dict[Path, Manifest]:
        """Return the manifest of the generation by its folder."""
        return {self.path: self.manifest}

    @property
    def settings(self) -> Settings:
        """Return the settings of the index."""
        return self.info.settings

    @property
    def analyzer(self) -> Analyzer:
        """Return the analyser."""
        return self.info.analyzer

    @property
    def last_write(self) -> LogPosition:
        """Return the last write of the log in the present state."""
        return self.info.last

    @property
    def drift(self) -> Drift:
        """Return the drift from the build."""
        return self.info.drift

    @property
    def fields(self) -> Fields:
        """Return the metadata fields that are columns."""
        return self.state().fields

    @property
    def field_types(self) -> dict[str, FieldType]:
        """Return the types of the metadata fields that are columns."""
        return {name: field.type for name, field in self.fields.items()}

    @property
    def misfits(self) -> dict[str, int]:
        """Return the numbers of documents whose value of a field does not fit, by field."""
        return {name: field.misfits for name, field in self.fields.items()}

    @property
    def max_doc(self) -> int:
        """Return the number of doc ids."""
        return len(self.state().snapshot)

    @property
    def segments(self) -> int:
        """Return the number of segments of the postings."""
        return len(self.state().snapshot.query_kernel.postings.parts)

    @property
    def synonyms(self) -> Mapping[str, Sequence[str]]:
        """Return the synonyms of the index."""
        return self.state().query_parser.synonyms

    @property
    def passage_count(self) -> int | None:
        """Return the number of passages; None if documents are not divided."""
        passages = self.state().passages
        return None if passages is None else passages.state.info.documents

    @property
    def space_entries(self) -> tuple[SpaceEntry, ...]:
        """Return the spaces of vectors, with the numbers of live documents."""
        return self.state().snapshot.space_entries(self.manifest.vectors)

    @property
    def rules(self) -> Sequence[Rule]:
        """Return the rules of the index."""
        return self.state().rules.rules

    def rule_warnings(self) -> list[str]:
        """Return what the rules refer to and the index does not have, such as documents.

        >>> index.put_rule({"id": "soon", "then": {"pin": [{"id": "later", "position": 1}]}})
        >>> index.rule_warnings()
        ["rule 'soon': the index has no document 'later'"]
        """
        return rule_warnings(self.state())

    def __len__(self) -> int:
        """Return the number of live documents."""
        return self.info.documents

    @property
    def _documents(self) -> DocumentReader:
        return self.state().documents

    def document(self, id: str) -> Document:  # noqa: A002 - the field's own name
        """Return the document with this ID as it was indexed; DocumentNotFound."""
        return self._documents.get(id)

    def documents(self, doc_ids: Iterable[int]) -> list[Document]:
        """Return documents by doc id, in order, as they were indexed."""
        return self._documents.at(doc_ids)

    def doc_ids(self, ids: Iterable[str]) -> list[int]:
        """Return the doc ids of documents by ID, in order; DocumentNotFound."""
        return self._documents.doc_ids(ids)

    def live_documents(self) -> Iterator[Document]:
        """Yield all live documents as they were indexed, in order of their doc ids.

        >>> [document.id for document in index.live_documents()]
        ['heat', 'pump', 'leak', 'tyre', 'grip', 'copy']
        """
        return self._documents.live_documents()

    def ids(self, doc_ids: Iterable[int] | None = None) -> list[str]:
        """Return the IDs of documents by doc id, or of all live documents in order of doc ids."""
        documents = self._documents
        return documents.ids(documents.live_doc_ids() if doc_ids is None else doc_ids)

    def live_doc_ids(self) -> DocIds:
        """Return the doc ids of all live documents, in the order of `ids`: (n,).

        >>> index.ids(index.live_doc_ids()[:2]) == index.ids()[:2]
        True
        """
        return np.flatnonzero(self.state().snapshot.live_docs())

    def document_readers(self) -> list[DocumentReader]:
        """Return the reader of the present documents."""
        return [self._documents]

    @property
    def built_spaces(self) -> Sequence[SpaceEntry]:
        """Return the spaces of vectors of the build."""
        return self.manifest.vectors

    @property
    def dimensions(self) -> dict[str, int]:
        """Return the dimensions of the present spaces of vectors, by name."""
        return {name: space.dimension for name, space in self.state().snapshot.vectors.items()}

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
        return hits_of(self.state(), doc_ids, scores, terms, weights)

    def excerpt(
        self,
        id: str,  # noqa: A002 - as in `Index`
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
        return excerpt_of(self.state().documents, id, span, page)

    def candidates(
        self, typed: str, k: int, filter_: FilterLike | None = None
    ) -> Sequence[Iterator[Candidate]]:
        """Return completions of the typed text by kind: see `Suggester.candidates`."""
        return self.state().suggester_within(filter_).candidates(typed, k, Evidence())

    def candidates_by(
        self, answers: Answers, typed: str, k: int, filter_: FilterLike | None
    ) -> tuple[list[list[Candidate]], Answers]:
        """Return completions by answers of all partitions, and the answers that those lack."""
        suggester, evidence = self.state().suggester_within(filter_), Evidence(answers)
        return list(map(list, suggester.candidates(typed, k, evidence))), evidence.local

    def parameters(self, /, **parameters: Unpack[SearchParameters]) -> SearchSettings:
        """Return search parameters, completed by those of the index; QueryError if invalid."""
        return self.state().parameters.read(parameters)[1]

    def is_quick(self, query: str, k: int) -> bool:
        """Return whether a search by words takes at most 1 ms: see `Index.is_quick`."""
        return is_quick(self.state(), query, k)

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
        return counts_of(self.state(), query, options, filter)

    def warm_up(self) -> None:
        """Load what the first queries need, by running some: 3 ms with 100,000 documents."""
        warm_up(self.state())
