"""More like this: the documents nearest to one, by a kernel of the index."""

from __future__ import annotations

from typing import Final, cast

import numpy as np

from klsa_search.arrays import Positions, Scores
from klsa_search.config import SpectralName
from klsa_search.errors import QueryError
from klsa_search.expansion.threshold import top_z
from klsa_search.mining.asking import latent_space
from klsa_search.mining.entries import kernel_diagonal, kernel_entries
from klsa_search.search.index import Index
from klsa_search.search.parameters import whole_number
from klsa_search.search.results import Hit
from klsa_search.spectrum.functions import SPECTRAL_FUNCTIONS

DOCUMENT: Final = "document"
LATENT: Final = "latent"
KERNELS: Final = (LATENT, DOCUMENT, *SPECTRAL_FUNCTIONS)
"""The cosine in the latent space, K itself, or D of a function of the spectrum."""


def similar(
    index: Index,
    id: str,  # noqa: A002 - the field's own name
    k: int = 10,
    *,
    kernel: str = LATENT,
    gamma: float | None = None,
) -> tuple[Hit, ...]:
    """Return the k documents most similar to one, best first, without the document itself.

    kernel  "latent", the cosine on the first eigenvectors, finds documents on the same subject;
            "document", the kernel K of the index, finds documents with the same words; a function
            of the spectrum, such as "squashing", lies between both and needs a dense or factored D
    gamma   parameter of that function; by default that of the index

    The score is D(d,e) / D(d,d): 1 for a copy. Only documents with a score above 0 are returned;
    ties are ordered by doc id. Snippets show the common words.

    Cost: O(N · m) in the latent space; O(nnz) for K; O(N · k) + O(nnz) for D if it is not stored.
    With a sparse D, K costs the stored row of the document, for any N, and k is at most its length.
    DocumentNotFound; QueryError.

    >>> [hit.id for hit in similar(index, "tyre", 2)]
    ['copy', 'grip']
    >>> KERNELS[:2]
    ('latent', 'document')
    """
    k = whole_number("k", k)
    (position,) = index.doc_ids([id])
    if kernel not in KERNELS:
        raise QueryError(
            f"kernel = {kernel!r} is unknown; the kernels are: {', '.join(KERNELS)}",
            field="kernel",
        )
    _refuse_beyond_cut(index, k, kernel)
    row, own = _row(index, position, kernel, gamma)
    row[position] = 0
    positions, values = top_z(row * index.arrays.counting(), k)
    return _hits(index, position, positions, values / own if own else values)


def _refuse_beyond_cut(index: Index, k: int, kernel: str) -> None:
    """Refuse what a cut D cannot answer."""
    cut = index.arrays.cut
    if cut is None or kernel == LATENT or index.arrays.has_spectrum:
        return
    instead = "or rebuild it with --expansion factored"
    if kernel not in (DOCUMENT, "gvsm"):
        raise QueryError(
            f"kernel = {kernel} is not available: index `{index.name}` has a "
            f"sparse expansion, which supports only {DOCUMENT}, {LATENT} and gvsm; "
            f"use one of these, {instead}",
            field="kernel",
        )
    kept = cut.rows.shape[1]
    if k > kept:
        raise QueryError(
            f"k = {k} is more than the {kept} nearest documents that index "
            f"`{index.name}` keeps of each; use fewer, {instead}",
            field="k",
        )


def _row(index: Index, position: int, kernel: str, gamma: float | None) -> tuple[Scores, float]:
    """Row of the kernel, and its entry for the document itself."""
    snapshot = index.arrays
    one, itself = np.array([position]), np.ones(1, np.float32)
    if kernel == LATENT:
        space = latent_space(index, field="kernel", otherwise=f"use {DOCUMENT}, or ")
        documents = np.asarray(space.documents)
        row = np.einsum("nm,m->n", documents, documents[position])
        return row, float(row[position])
    if kernel != DOCUMENT:
        function = cast(SpectralName, kernel)
        parameters = index.parameters(ranker="klsa", spectral=function, gamma=gamma, head=0)
        if snapshot.has_spectrum:
            dimensions = snapshot.eigenvectors.shape[1]
            row = snapshot.expansion_of(parameters, dimensions).expand(one, itself)
            return row, float(row[position])
    row = np.zeros(len(snapshot))
    if snapshot.cut is not None and not snapshot.has_spectrum:
        others = snapshot.nearest(position)
        row[others] = kernel_entries(snapshot, np.repeat(one, len(others)), others)
        return row, float(kernel_diagonal(snapshot)[position])
    row[position] = 1
    row = snapshot.kernel.apply(row)
    return row, float(row[position])


def _hits(index: Index, position: int, positions: Positions, values: Scores) -> tuple[Hit, ...]:
    (document,) = index.documents([position])
    numbers, worth = index.arrays.vocabulary.numbers, index.arrays.bm25.worth
    terms = {*index.analyzer.terms(document.title), *index.analyzer.terms(document.text)}
    weights = {term: float(worth[numbers[term]]) for term in terms if term in numbers}
    return index.hits(positions, values, terms, weights)
