"""Near-duplicates: documents whose normalised kernel is close to 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klsa_search.core.progress import Progress
from klsa_search.kernels.document_kernel import DocumentKernel
from klsa_search.kernels.nearest_neighbours import nearest_rows
from klsa_search.kernels.sums import scaled_rows
from klsa_search.mining.clusters import title_of
from klsa_search.mining.similar import checked_share
from klsa_search.search.index import Index

THRESHOLD: Final = 0.9
_NEAREST: Final = 64
_ROUNDING: Final = 1e-5  # of float32, in a sum over the features of two documents


@dataclass(frozen=True, slots=True, kw_only=True)
class Duplicate:
    """Document of a group, and its similarity to the first of the group: 1 for a copy.

    `title` is the beginning of the text if the document has no title.
    """

    id: str
    title: str
    similarity: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplicateGroup:
    """Near-duplicate documents, by doc id."""

    documents: tuple[Duplicate, ...]


def duplicates(
    index: Index, threshold: float = THRESHOLD, *, progress: Progress | None = None
) -> tuple[DuplicateGroup, ...]:
    """Return groups of near-duplicate documents, by doc id.

    threshold  minimum normalised kernel K(d,e) / √(K(d,d) K(e,e)) between a document and the first
               of its group; K compares words, and adjacent words if the index has pairs
    progress   called with ("neighbours", documents done, all documents)

    A document joins the group of the first earlier document that is similar enough. Documents
    pair may be missed in a large group. Cost: linear in N, on all processors; memory for two
    copies of the features. Raise QueryError.

    >>> (group,) = duplicates(index)
    >>> group
    DuplicateGroup(documents=(Duplicate(id='tyre', ...), Duplicate(id='copy', ...)))
    """
    least = checked_share("threshold", threshold)
    near = nearest_rows(_normalised(index.arrays.kernel), _NEAREST, progress=progress)
    pairs = sparse.csr_array(near.maximum(near.T))
    pairs.data[~_both_count(index, pairs)] = 0
    leaders = _leaders(pairs, least - _ROUNDING)
    followers = np.flatnonzero(leaders >= 0)
    groups: dict[int, list[tuple[int, float]]] = {}
    for document, leader in zip(followers.tolist(), leaders[followers].tolist(), strict=True):
        similarity = min(float(pairs[leader, document]), 1.0)
        groups.setdefault(leader, [(leader, 1.0)]).append((document, similarity))
    means = _mean_documents(index)
    if len(means) > 1:
        groups[means[0]] = [(document, 1.0) for document in means]
    return tuple(_group(index, members) for _, members in sorted(groups.items()))


def _normalised(kernel: DocumentKernel) -> DocumentKernel:
    """Return the kernel with diagonal 1, or 0 for a document without similar ones."""
    lengths = np.sqrt(kernel.diagonal)
    factors = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    features = scaled_rows(kernel.features, factors, np.float32)
    return DocumentKernel(features, kernel.scales * factors, kernel.mean)


def _both_count(index: Index, pairs: sparse.csr_array) -> npt.NDArray[np.bool_]:
    """Return whether both documents of each pair are live."""
    live = index.arrays.live_docs()
    rows = np.repeat(np.arange(pairs.shape[0]), np.diff(pairs.indptr))
    return np.asarray(live[rows] & live[pairs.indices])


def _mean_documents(index: Index) -> list[int]:
    """Return documents with content terms but without K, because they equal the mean document."""
    snapshot = index.arrays
    alike = (snapshot.lengths > 0) & (snapshot.kernel.diagonal == 0) & snapshot.live_docs()
    means = np.flatnonzero(alike)
    has_content = np.diff(snapshot.content_counts_of(means).indptr) > 0
    return [int(document) for document in means[has_content]]


def _leaders(pairs: sparse.csr_array, least: float) -> npt.NDArray[np.int64]:
    """Return the first document of the group that each document joins, -1 for none: (N,)."""
    leaders = np.full(pairs.shape[0], -1, np.int64)
    near = pairs.data >= least
    rows = np.repeat(np.arange(pairs.shape[0]), np.diff(pairs.indptr))
    earlier = near & (pairs.indices < rows)
    for document, other in zip(
        rows[earlier].tolist(), pairs.indices[earlier].tolist(), strict=True
    ):
        if leaders[document] < 0 and leaders[other] < 0:
            leaders[document] = other
    return leaders


def _group(index: Index, members: list[tuple[int, float]]) -> DuplicateGroup:
    documents = index.documents([doc_id for doc_id, _ in members])
    return DuplicateGroup(
        documents=tuple(
            Duplicate(id=document.id, title=title_of(index, document), similarity=similarity)
            for document, (_, similarity) in zip(documents, members, strict=True)
        )
    )
