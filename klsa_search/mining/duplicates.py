"""Near-duplicates: documents whose normalised kernel, or cosine of vectors, is close to 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from klsa_search.core.array_types import Numbers
from klsa_search.core.progress import NEIGHBOURS, Progress
from klsa_search.kernels.document_kernel import DocumentKernel, scaled_rows
from klsa_search.kernels.nearest_neighbours import nearest_rows
from klsa_search.kernels.vector_space import VectorSpace, dot_products
from klsa_search.mining.clusters import title_of
from klsa_search.mining.similar import DOCUMENT, checked_share, vectors_of_kernel
from klsa_search.search.index import Index

if TYPE_CHECKING:
    from scipy import sparse

THRESHOLD: Final = 0.9
_NEAREST: Final = 64
_ROUNDING: Final = 1e-5  # of float32, in a sum over the features of two documents
BLOCK: Final = 1024
_PAIRS: Final = 16_384


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
    """Near-duplicate documents, in the order of `Index.ids`."""

    documents: tuple[Duplicate, ...]


def duplicates(
    index: Index,
    threshold: float = THRESHOLD,
    *,
    kernel: str = DOCUMENT,
    progress: Progress | None = None,
) -> tuple[DuplicateGroup, ...]:
    """Return groups of near-duplicate documents, in the order of `Index.ids`.

    threshold  minimum normalised kernel K(d,e) / √(K(d,d) K(e,e)) between a document and the first
               of its group; K compares words, and adjacent words if the index has pairs
    kernel     "document", "vectors:SPACE", the cosine of vectors, or "sum:SPACE", the sum of both,
               normalised, of documents that share words
    progress   called with ("neighbours", documents done, all documents)

    A document joins the group of the first earlier document that is similar enough. Except by
    vectors, a pair may be missed in a large group. Cost: linear in N, on all processors; memory for
    two copies of the features. By vectors O(N² · m), 10 s for 20,000 vectors of m = 384 values.
    QueryError.

    >>> (group,) = duplicates(index)
    >>> group
    DuplicateGroup(documents=(Duplicate(id='tyre', ...), Duplicate(id='copy', ...)))
    """
    least = checked_share("threshold", threshold)
    vectors = vectors_of_kernel(index, kernel, (DOCUMENT,))
    if vectors is not None and not vectors.and_words:
        pairs = _near_vectors(index, vectors.space, least - _ROUNDING, progress)
    else:
        near = nearest_rows(normalised(index.arrays.kernel), _NEAREST, progress=progress)
        pairs = near.maximum(near.T).tocsr()
        live = index.arrays.live_docs()
        rows = np.repeat(np.arange(pairs.shape[0]), np.diff(pairs.indptr))
        pairs.data[~(live[rows] & live[pairs.indices])] = 0
        if vectors is not None:
            _add_vectors(pairs, vectors.space, least - _ROUNDING)
    ordinals = index.arrays.ordinals_of(np.arange(pairs.shape[0]))
    leaders = leaders_of(pairs, least - _ROUNDING, ordinals)
    followers = np.flatnonzero(leaders >= 0)
    groups: dict[int, list[tuple[int, float]]] = {}
    for document, leader in zip(followers.tolist(), leaders[followers].tolist(), strict=True):
        similarity = min(float(pairs[leader, document]), 1.0)
        groups.setdefault(leader, [(leader, 1.0)]).append((document, similarity))
    means = _mean_documents(index) if vectors is None else []
    if len(means) > 1:
        groups[means[0]] = [(document, 1.0) for document in means]
    firsts = sorted(groups, key=ordinals.__getitem__)
    return tuple(_group(index, groups[first], ordinals) for first in firsts)


def normalised(kernel: DocumentKernel) -> DocumentKernel:
    """Return the kernel with diagonal 1, or 0 for a document without similar ones."""
    lengths = np.sqrt(kernel.diagonal)
    factors = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    features = scaled_rows(kernel.features, factors, np.float32)
    return DocumentKernel(features, kernel.scales * factors, kernel.mean)


def _near_vectors(
    index: Index, space: VectorSpace, least: float, progress: Progress | None
) -> sparse.csr_array:
    """Return the cosine of each document to the first of its group: (N, N) symmetric."""
    merged = space.merged()
    live = np.flatnonzero(index.arrays.live_docs()[merged.documents])
    live = live[np.argsort(index.arrays.ordinals_of(merged.documents[live]), kind="stable")]
    documents, rows, scales = merged.documents[live], merged.rows[live], merged.scales[live]
    leaders, cosines = np.full(len(rows), -1), np.zeros(len(rows), np.float32)
    for begin in range(0, len(rows), BLOCK):
        block = slice(begin, begin + BLOCK)
        for other in range(0, begin + 1, BLOCK):
            columns = slice(other, other + BLOCK)
            similarities = (
                dot_products(rows[block], rows[columns]) * scales[block, None] * scales[columns]
            )
            near = np.tril(similarities >= least, begin - other - 1)
            for at in np.flatnonzero(near.any(axis=1)).tolist():
                first = near[at] & (leaders[columns] < 0)
                if leaders[begin + at] < 0 and first.any():
                    leaders[begin + at] = other + int(first.argmax())
                    cosines[begin + at] = similarities[at, first.argmax()]
        if progress is not None:
            progress(NEIGHBOURS, min(begin + BLOCK, len(rows)), len(rows))
    from scipy import sparse

    followers = np.flatnonzero(leaders >= 0)
    indices = (documents[followers], documents[leaders[followers]])
    size = len(index.arrays)
    pairs = sparse.csr_array((cosines[followers], indices), shape=(size, size))
    return sparse.csr_array(pairs + pairs.T)


def _add_vectors(pairs: sparse.csr_array, space: VectorSpace, least: float) -> None:
    """Add the cosines of vectors to normalised entries of K, where the sum can reach `least`."""
    size = pairs.shape[0]
    has = space.has(size)
    left, right = np.repeat(np.arange(size), np.diff(pairs.indptr)), pairs.indices
    both = has[left] & has[right]
    lengths = np.sqrt((1.0 + has[left]) * (1.0 + has[right]))
    pairs.data[(pairs.data + both) / lengths < least] = 0
    coordinates = space.coordinates(size)
    counted = np.flatnonzero(both & (pairs.data > 0))
    for begin in range(0, len(counted), _PAIRS):
        at = counted[begin : begin + _PAIRS]
        pairs.data[at] += np.einsum("nm,nm->n", coordinates[left[at]], coordinates[right[at]])
    pairs.data /= lengths


def _mean_documents(index: Index) -> list[int]:
    """Return documents with content terms but without K, because they equal the mean document."""
    snapshot = index.arrays
    alike = (snapshot.lengths > 0) & (snapshot.kernel.diagonal == 0) & snapshot.live_docs()
    means = snapshot.in_order(alike)
    has_content = np.diff(snapshot.content_counts_of(means).indptr) > 0
    return [int(document) for document in means[has_content]]


def leaders_of(pairs: sparse.csr_array, least: float, ordinals: Numbers) -> Numbers:
    """Return the first document of the group that each document joins, -1 for none: (N,).

    ordinals  (N,) by which documents are ordered
    """
    leaders = np.full(pairs.shape[0], -1, np.int64)
    rows = np.repeat(np.arange(pairs.shape[0]), np.diff(pairs.indptr))
    earlier = (pairs.data >= least) & (ordinals[pairs.indices] < ordinals[rows])
    rows, columns = rows[earlier], pairs.indices[earlier]
    order = np.lexsort((ordinals[columns], ordinals[rows]))
    for document, other in zip(rows[order].tolist(), columns[order].tolist(), strict=True):
        if leaders[document] < 0 and leaders[other] < 0:
            leaders[document] = other
    return leaders


def _group(index: Index, members: list[tuple[int, float]], ordinals: Numbers) -> DuplicateGroup:
    members = sorted(members, key=lambda member: int(ordinals[member[0]]))
    rows = np.array([row for row, _ in members])
    documents = index.documents_at(index.arrays.doc_ids_at(rows))
    return DuplicateGroup(
        documents=tuple(
            Duplicate(id=document.id, title=title_of(index, document), similarity=similarity)
            for document, (_, similarity) in zip(documents, members, strict=True)
        )
    )
