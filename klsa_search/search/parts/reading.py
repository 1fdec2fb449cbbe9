"""What is read of the parts of an index: functions of the state of one, and doc ids of all.

A state may be in another process. In partitions a doc id of an index has the number of the
partition, then the doc id in it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from klsa_search.collection.model import Document
from klsa_search.core.arguments import checked_items
from klsa_search.core.array_types import DocIds, DocumentMask, Numbers
from klsa_search.core.build_settings import FieldType
from klsa_search.core.parameters import RankingSettings, SearchParameters
from klsa_search.errors import ArgumentError
from klsa_search.search.engine.evidence import Answers, Evidence
from klsa_search.search.engine.snapshot import FIRST_LATER
from klsa_search.search.engine.top_docs import TopDocs
from klsa_search.search.filters.masks import FilterLike
from klsa_search.search.pages.hits import hits_of
from klsa_search.search.pages.planning import Ranking
from klsa_search.search.pages.results import Hit
from klsa_search.search.ranking.parameters import checked_mask
from klsa_search.search.ranking.searcher import TopRequest
from klsa_search.search.state.state import GenerationInfo, State
from klsa_search.search.suggest.suggester import Candidate
from klsa_search.storage.manifest import SpaceEntry
from klsa_search.storage.names import index_of

_BITS: Final = 24
"""Bits of a doc id in a partition."""


def global_doc_ids(partition: int | DocIds, doc_ids: DocIds) -> Numbers:
    """Return doc ids of the index for those of a partition, or of a partition each.

    >>> global_doc_ids(1, np.array([5], dtype=np.int32)).tolist()
    [16777221]
    """
    return doc_ids.astype(np.int64) + (partition << _BITS)


def local_doc_ids(doc_ids: DocIds) -> tuple[DocIds, DocIds]:
    """Return the partition of each doc id, and the doc id in it: (n,) each.

    >>> local_doc_ids(np.array([16777221]))
    (array([1]), array([5]))
    """
    return doc_ids >> _BITS, doc_ids & (1 << _BITS) - 1


def masks_of(mask: object, sizes: Sequence[int]) -> list[DocumentMask]:
    """Return the mask of each partition for one of an index: see `checked_mask`; QueryError.

    sizes  numbers of doc ids of the partitions, in whose order masks of all doc ids are
    """
    every: object = mask
    if isinstance(mask, np.ndarray) and mask.ndim == 1 and np.issubdtype(mask.dtype, np.integer):
        partitions, local = local_doc_ids(mask)
        exists = (mask >= 0) & (partitions < len(sizes))
        exists[exists] = local[exists] < np.array(sizes)[partitions[exists]]
        every = positions_of(mask, sizes) if exists.all() else np.array([-1])
    allowed = checked_mask(every, sum(sizes))
    assert allowed is not None
    return np.split(allowed.allowed, np.cumsum(sizes)[:-1])


def positions_of(doc_ids: DocIds, sizes: Sequence[int]) -> Numbers:
    """Return the positions of doc ids in arrays of all doc ids, partition by partition: (n,).

    sizes  numbers of doc ids of the partitions
    """
    starts = np.cumsum([0, *sizes], dtype=np.int64)[:-1]
    partitions, local = local_doc_ids(doc_ids)
    positions: Numbers = starts[partitions] + local
    return positions


def ids_of(live: DocIds, ids: Sequence[str]) -> Callable[[DocIds], npt.NDArray[Any]]:
    """Return a function that returns the IDs of live documents by doc id: (n,) of str.

    live, ids  of an index, in the same order: it is for many rankings
    """
    names, order = np.array(ids, dtype=object), np.argsort(live)
    return lambda doc_ids: names[order[np.searchsorted(live, doc_ids, sorter=order)]]


def info(state: State) -> GenerationInfo:
    """Return the facts about a part."""
    return state.info


def field_types(state: State) -> tuple[dict[str, FieldType], dict[str, str]]:
    """Return the types of the metadata fields that are columns, and why others are not."""
    types = {name: field.type for name, field in state.fields.items()}
    return types, dict(state.fields.unfilterable)


def max_doc(state: State) -> int:
    """Return the number of doc ids."""
    return len(state.snapshot)


def segments(state: State) -> int:
    """Return the number of segments of the postings."""
    return len(state.snapshot.query_kernel.postings.parts)


def passages(state: State) -> int:
    """Return the number of passages."""
    return 0 if state.passages is None else state.passages.state.info.documents


def type_mismatches(state: State) -> dict[str, int]:
    """Return the numbers of documents whose value of a field does not fit, by field."""
    return {name: field.type_mismatches for name, field in state.fields.items()}


def dimensions(state: State) -> dict[str, int]:
    """Return the dimensions of the spaces of vectors, by name."""
    return {name: space.dimension for name, space in state.snapshot.vectors.items()}


def space_entries(state: State) -> tuple[SpaceEntry, ...]:
    """Return the spaces of vectors, with the numbers of live documents."""
    live = state.snapshot.live_docs()
    fingerprints = {entry.name: entry.fingerprint for entry in state.info.manifest.vectors}
    return tuple(
        SpaceEntry(
            name=space.name,
            dimension=space.dimension,
            vectors=sum(int(np.count_nonzero(live[part.documents])) for part in space.parts),
            documents=int(np.count_nonzero(live & space.has(len(live)))),
            fingerprint=fingerprints.get(space.name),
        )
        for space in state.snapshot.vectors.values()
    )


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


def live_doc_ids(state: State) -> tuple[DocIds, Numbers]:
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


def unused_doc_id(name: str, doc_id: int) -> ArgumentError:
    """Return the error of a doc id that no document of an index has."""
    return ArgumentError(
        f"doc_ids: {doc_id} is not a doc id of index `{name}`; give those that `live_doc_ids`, "
        "`doc_ids` and `rank` return",
        field="doc_ids",
    )


def checked_doc_ids(doc_ids: Iterable[int], name: str, partitions: int) -> DocIds:
    """Return doc ids, each in one of the partitions of an index with a name; ArgumentError."""
    checked = checked_items("doc_ids", doc_ids, int)
    for doc_id in checked:
        if not 0 <= doc_id < partitions << _BITS:
            raise unused_doc_id(name, doc_id)
    return np.array(checked, np.int64)


def _used(state: State, doc_ids: Sequence[int]) -> Sequence[int]:
    """Return the doc ids in a partition of doc ids of an index; ArgumentError for an unused one."""
    _, local = local_doc_ids(np.array(doc_ids, np.int64))
    if (unused := local >= len(state.snapshot)).any():
        name = index_of(state.info.path).name
        raise unused_doc_id(name, doc_ids[int(np.argmax(unused))])
    local_ids: list[int] = local.tolist()
    return local_ids


def documents_at(state: State, doc_ids: Sequence[int]) -> list[Document]:
    """Return documents by doc id, in order."""
    return state.documents.at(_used(state, doc_ids))


def ids_at(state: State, doc_ids: Sequence[int]) -> list[str]:
    """Return the IDs of documents by doc id, in order."""
    return state.documents.ids(_used(state, doc_ids))


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
    local, scores = _used(state, doc_ids), np.zeros(len(doc_ids), np.float32)
    snippets = state.snippets.of(local, *state.snippets.numbered(terms, weights))
    return hits_of(state, local, scores, snippets)


def parameters(state: State, parameters_: SearchParameters) -> RankingSettings:
    """Return search parameters, completed by those of the index; QueryError if invalid."""
    return state.parameters.read(parameters_)[1]


def candidates(
    state: State, answers: Answers, typed: str, k: int, filter_: FilterLike | None
) -> tuple[list[list[Candidate]], Answers]:
    """Return completions by answers of all partitions, and the answers that those lack."""
    suggester, evidence = state.suggester_within(filter_), Evidence(answers)
    return list(map(list, suggester.candidates(typed, k, evidence))), evidence.local


def rank_queries(state: State, queries: Sequence[str], ranking: Ranking) -> list[TopDocs]:
    """Return the best documents of queries by words, by one call of the engine."""
    parsing, chosen = state.parameters.read(ranking.parameters)
    allowed = None if ranking.mask is None else checked_mask(ranking.mask, len(state.snapshot))
    parsed = [state.query_parser.parse(query, parsing) for query in queries]
    return state.searcher.top(parsed, chosen, TopRequest(ranking.k, allowed))


def warm_up(state: State) -> None:
    """Load what the first queries need, by ranking and returning a document."""
    for ranker in ("bm25", state.info.defaults.ranker):
        rank_queries(state, [""], Ranking(10, None, None, {"ranker": ranker}))
    first = np.flatnonzero(state.snapshot.live_docs())[:1]
    hits(state, first.tolist(), (), None)
    state.fields.alike("")
