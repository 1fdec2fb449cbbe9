"""What is read of one part of an index: functions of its state, which may be in another process."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from klsa_search.collection.model import Document
from klsa_search.core.array_types import DocIds
from klsa_search.core.build_settings import FieldType
from klsa_search.core.config import SearchSettings
from klsa_search.core.keywords import SearchParameters
from klsa_search.search.engine.evidence import Answers, Evidence
from klsa_search.search.engine.seeds import FIRST_LATER
from klsa_search.search.filters.masks import FilterLike
from klsa_search.search.pages.excerpts import Excerpt, excerpt_of
from klsa_search.search.pages.hits import hits_of
from klsa_search.search.pages.results import Hit
from klsa_search.search.state.state import GenerationInfo, State
from klsa_search.search.suggest.suggester import Candidate
from klsa_search.storage.manifest import SpaceEntry


def info(state: State) -> GenerationInfo:
    """Return the facts about a part."""
    return state.info


def field_types(state: State) -> dict[str, FieldType]:
    """Return the types of the metadata fields that are columns."""
    return {name: field.type for name, field in state.fields.items()}


def max_doc(state: State) -> int:
    """Return the number of doc ids."""
    return len(state.snapshot)


def segments(state: State) -> int:
    """Return the number of segments of the postings."""
    return len(state.snapshot.query_kernel.postings.parts)


def passage_count(state: State) -> int | None:
    """Return the number of passages; None if documents are not divided."""
    return None if state.passages is None else state.passages.state.info.documents


def misfits(state: State) -> dict[str, int]:
    """Return the numbers of documents whose value of a field does not fit, by field."""
    return {name: field.misfits for name, field in state.fields.items()}


def dimensions(state: State) -> dict[str, int]:
    """Return the dimensions of the spaces of vectors, by name."""
    return {name: space.dimension for name, space in state.snapshot.vectors.items()}


def space_entries(state: State) -> tuple[SpaceEntry, ...]:
    """Return the spaces of vectors, with the numbers of live documents."""
    return state.snapshot.space_entries(state.info.manifest.vectors)


def added_spaces(entries: Iterable[SpaceEntry]) -> tuple[SpaceEntry, ...]:
    """Return the spaces of vectors of all parts, with sums of their numbers."""
    spaces: dict[str, SpaceEntry] = {}
    for space in entries:
        if before := spaces.get(space.name):
            sums = {
                "vectors": before.vectors + space.vectors,
                "documents": before.documents + space.documents,
            }
            space = space.model_copy(update=sums)
        spaces[space.name] = space
    return tuple(spaces.values())


def live_doc_ids(state: State) -> tuple[DocIds, npt.NDArray[np.int64]]:
    """Return the doc ids of live documents, and the numbers that order them: (n,) each.

    Later documents of several partitions are in the order of these.
    """
    live = np.flatnonzero(state.snapshot.live_docs())
    return live, np.minimum(state.snapshot.ordinals_of(live), FIRST_LATER)


def document(state: State, id_: str) -> Document:
    """Return the document with an ID; DocumentNotFound."""
    return state.documents.get(id_)


def has_document(state: State, id_: str) -> bool:
    """Return whether there is a document with an ID."""
    return state.documents.find(id_) is not None


def documents_at(state: State, doc_ids: Sequence[int]) -> list[Document]:
    """Return documents by doc id, in order."""
    return state.documents.at(doc_ids)


def ids_at(state: State, doc_ids: Sequence[int]) -> list[str]:
    """Return the IDs of documents by doc id, in order."""
    return state.documents.ids(doc_ids)


def doc_ids_of(state: State, ids: Sequence[str]) -> list[int]:
    """Return the doc ids of documents by ID, in order; DocumentNotFound."""
    return state.documents.doc_ids(ids)


def hits(
    state: State,
    doc_ids: Sequence[int],
    terms: Collection[str],
    weights: Mapping[str, float] | None,
) -> tuple[Hit, ...]:
    """Return hits of documents without scores: see `Index.hits`."""
    documents = np.array(doc_ids, np.int64)
    scores = np.zeros(len(documents), np.float32)
    return hits_of(state, documents, scores, *state.snippets.numbered(terms, weights))


def excerpt(state: State, id_: str, span: tuple[int, int] | None, page: int | None) -> Excerpt:
    """Return a passage by its ID, or a part of a document: see `Index.excerpt`."""
    return excerpt_of(state.documents, id_, span, page)


def parameters(state: State, parameters_: SearchParameters) -> SearchSettings:
    """Return search parameters, completed by those of the index; QueryError if invalid."""
    return state.parameters.read(parameters_)[1]


def candidates(
    state: State, answers: Answers, typed: str, k: int, filter_: FilterLike | None
) -> tuple[list[list[Candidate]], Answers]:
    """Return completions by answers of all partitions, and the answers that those lack."""
    suggester, evidence = state.suggester_within(filter_), Evidence(answers)
    return list(map(list, suggester.candidates(typed, k, evidence))), evidence.local
