"""Similarity of documents, and the model of an index as matrices.

Clusters, maps and classes compare documents by their words, by their vectors, or by the sum of
both:

    latent         cosine in the latent space, the default
    vectors:SPACE  cosine of the vectors of a space; of the mean direction of several vectors
    sum:SPACE      cosine in both, side by side: the sum of the two kernels

Each is the inner product of coordinates of length 1. The latent kernel and that of vectors have
diagonal 1, so both count equally in the sum. A document with only one of them has only that part.
`similar` also compares by the document kernel K, and by D of a function of the spectrum.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np

from klsa_search.analysis.searched_text import language_stated, searched_texts
from klsa_search.core.array_types import Basis, DocIds, Eigenvalues, Matrix, Scores
from klsa_search.core.plugins import find_plugin
from klsa_search.errors import QueryError
from klsa_search.kernels.counts import without_columns
from klsa_search.kernels.vector_space import VectorSpace
from klsa_search.kernels.weighting import feature_weighting
from klsa_search.lowrank.expansion_matrix import SPECTRAL_FUNCTIONS, largest_entries
from klsa_search.search.engine.query_terms import counts_of_texts
from klsa_search.search.index import Index
from klsa_search.search.pages.results import Hit
from klsa_search.search.ranking.parameters import checked_integer

LATENT: Final = "latent"
VECTORS: Final = "vectors:"
SUM: Final = "sum:"


class Vectors(NamedTuple):
    """The vectors that a kernel uses.

    space      with one vector a document
    and_words  whether words count too
    """

    space: VectorSpace
    and_words: bool


def vectors_of_kernel(
    index: Index, kernel: str, word_kernels: tuple[str, ...] = (LATENT,)
) -> Vectors | None:
    """Return the vectors that a kernel uses; None for one of `word_kernels`, which uses only words.

    QueryError for an unknown kernel or space. Cost: see `VectorSpace.one_per_document`.
    """
    if kernel in word_kernels:
        return None
    spaces = index.arrays.vectors
    for form in (VECTORS, SUM):
        if isinstance(kernel, str) and kernel.startswith(form):
            space = spaces.get(kernel.removeprefix(form))
            if space is not None:
                return Vectors(space.one_per_document(), form == SUM)
    choices = ", ".join(
        (*word_kernels, *(form + name for name in sorted(spaces) for form in (VECTORS, SUM)))
    )
    raise QueryError(
        f"kernel = {str(kernel)[:80]!r} is unknown; the kernels are: {choices}", field="kernel"
    )


def document_coordinates(index: Index, kernel: str) -> Matrix:
    """Return coordinates of all documents: (N, m) float32, rows of length 1, or 0 without any.

    kernel  "latent", "vectors:SPACE" or "sum:SPACE"
    Cost: memory 4 N · m bytes for vectors of m values. QueryError.
    """
    vectors = vectors_of_kernel(index, kernel)
    if vectors is None:
        return np.asarray(index.arrays.latent.documents)
    coordinates = vectors.space.coordinates(len(index.arrays))
    if not vectors.and_words:
        return coordinates
    words = np.asarray(index.arrays.latent.documents)
    both = np.hstack((words, coordinates))
    has_both = words.any(axis=1) & coordinates.any(axis=1)
    both[has_both] *= np.float32(0.5**0.5)
    return both


class Spectrum(NamedTuple):
    """Eigenvalues and eigenvectors of the document kernel K, as far as they were computed.

    eigenvalues   (k,) descending
    eigenvectors  U: (N, k); (N, 0) if they are not stored

    >>> isinstance(spectrum(index), Spectrum)
    True
    """

    eigenvalues: Eigenvalues
    eigenvectors: Basis


def spectrum(index: Index) -> Spectrum:
    """Return the spectrum of the document kernel K, as of the build. Cost: reading it.

    It does not include documents added since the build.

    >>> values, vectors = spectrum(index)
    >>> bool(values[0] >= values[1] > 0), vectors.shape == (len(vectors), len(values))
    (True, True)
    """
    arrays = index.arrays
    return Spectrum(np.array(arrays.eigenvalues), np.array(arrays.eigenvectors))


def kernel_rows(index: Index, ids: Iterable[str] | None = None) -> Matrix:
    """Return rows of the document kernel K: (n, N) float64, columns as of `Index.scores`.

    ids  documents whose rows are returned, in this order; all by default
    An index stores features in 8 bits, so K is approximate, within about 1%.
    Cost: the features of all documents, O(nnz), and 8 n N bytes of memory. DocumentNotFound.

    >>> row = kernel_rows(index, ["tyre"])[0]
    >>> sorted(index.ids(row.argsort()[::-1][:2]))
    ['copy', 'tyre']
    """
    return index.arrays.kernel.rows(_rows_of(index, ids))


def expansion_rows(index: Index, ids: Iterable[str] | None = None) -> Matrix:
    """Return rows of the expansion matrix D of an index: (n, N) float32.

    ids  documents whose rows are returned, in this order; all by default
    D is K divided by its largest eigenvalue, unless `spectral` is set otherwise. Rows are complete,
    even if the index stores only the strongest entries. Cost: that of `kernel_rows`, or of reading
    the stored rows of D. DocumentNotFound.

    >>> expansion_rows(index, ["tyre", "copy"]).shape == (2, index.max_doc)
    True
    """
    arrays, numbers = index.arrays, _rows_of(index, ids)
    expansion = arrays.expansion_of(index.parameters())
    rows = np.zeros((len(numbers), len(arrays)), np.float32)
    for row, number in zip(rows, numbers, strict=True):
        row[:] = expansion.expand(np.array([number]), np.ones(1, np.float32))
    return rows


def _rows_of(index: Index, ids: Iterable[str] | None) -> DocIds:
    return index.arrays.rows_of(index.live_doc_ids() if ids is None else index.doc_ids(ids))


def checked_share(name: str, value: object) -> float:
    """Return a number above 0 and up to 1; QueryError for any other."""
    if isinstance(value, float | int | np.floating) and not isinstance(value, bool):
        number = float(value)
        if 0 < number <= 1:
            return number
    raise QueryError(f"{name} = {value!r}: give a number above 0 and up to 1", field=name)


def text_coordinates(index: Index, texts: Sequence[str]) -> Matrix:
    """Return coordinates of texts: (n, m) float64, of length 1, or 0 without a known term.

    φ(x) V, with the term features of the document kernel, for BM25 w(t)^p · sat(t,x). Unlike
    for documents, pairs of words and the distance from the mean are not included. Cost: analysing
    the texts, and O(m) a term.
    """
    terms = index.arrays.latent.terms
    settings, snapshot = index.settings, index.arrays
    common = index.analyzer.common() if len(snapshot.common) else frozenset()
    counts = counts_of_texts(([text] for text in texts), index.analyzer, snapshot.vocabulary)
    counts = without_columns(counts, snapshot.common)
    words = [
        [term for term in index.analyzer.for_document([text]).terms(text) if term not in common]
        for text in texts
    ]
    lengths = np.array([len(terms) for terms in words])
    counts.data = feature_weighting(settings).local_weights(
        counts.data.astype(np.float64), np.diff(counts.indptr), lengths, snapshot.average_content
    )
    points = np.asarray(counts @ terms.astype(np.float64))
    sizes = np.sqrt(np.einsum("nm,nm->n", points, points))[:, None]
    return np.asarray(np.divide(points, sizes, out=points, where=sizes > 0))


DOCUMENT: Final = "document"
KERNELS: Final = (LATENT, DOCUMENT, *SPECTRAL_FUNCTIONS)
"""Cosine in the latent space, K itself, or D of a function of the spectrum."""


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
            of the spectrum, such as "squashing" or a plug-in, lies between both and needs stored
            eigenvectors; "vectors:SPACE" is the cosine of vectors, and "sum:SPACE" adds it to
            "latent"
    gamma   parameter of that function; by default that of the index

    The score is D(d,e) / D(d,d), or a cosine: 1 for a copy. Only documents with a score above 0 are
    returned; ties are ordered by doc id. Snippets show the common words.

    Cost: O(N · m) in the latent space, and for vectors of m values; O(nnz) for K; O(N · k) + O(nnz)
    for D if it is not stored. Without stored eigenvectors, K costs the stored row of the document,
    for any N, and k is at most its length.
    DocumentNotFound; QueryError.

    >>> [hit.id for hit in similar(index, "tyre", 2)]
    ['copy', 'grip']
    >>> KERNELS[:2]
    ('latent', 'document')
    """
    k = checked_integer("k", k)
    (document,) = index.arrays.rows_of(index.doc_ids([id])).tolist()
    plugin = isinstance(kernel, str) and find_plugin("spectral", kernel) is not None
    vectors = None if plugin else vectors_of_kernel(index, kernel, KERNELS)
    if vectors is not None:
        row, itself = _row_with_vectors(index, document, vectors)
    else:
        _refuse_unsupported(index, k, kernel)
        row, itself = _row(index, document, kernel, gamma)
    row[document] = 0
    nearest, values = largest_entries(row * index.arrays.live_docs(), k)
    doc_ids = index.arrays.doc_ids_at(nearest)
    return _hits(index, id, doc_ids, values / itself if itself else values)


def _refuse_unsupported(index: Index, k: int, kernel: str) -> None:
    """Raise QueryError for a kernel or k that needs eigenvectors, if they are not stored."""
    if kernel == LATENT or index.arrays.has_spectrum:
        return
    if kernel not in (DOCUMENT, "gvsm"):
        undivided = "one partition and " if len(index.partitions) > 1 else ""
        raise QueryError(
            f"kernel = {kernel} is not available: index `{index.name}` does not have the "
            f"eigenvectors of all its documents; use {DOCUMENT}, {LATENT} or gvsm, or rebuild it "
            f"with {undivided}--spectral {kernel}",
            field="kernel",
        )
    entries = index.arrays.sparse_expansion.entries
    if k > entries:
        raise QueryError(
            f"k = {k} is more than the {entries} nearest documents that index "
            f"`{index.name}` keeps of each; use fewer",
            field="k",
        )


def _row_with_vectors(index: Index, document: int, vectors: Vectors) -> tuple[Scores, float]:
    """Return a row of the kernel of vectors, or of the sum of it and the latent kernel."""
    size = len(index.arrays)
    has = vectors.space.has(size)
    vector = vectors.space.vector(document)
    row = np.zeros(size, np.float32)
    if vector is not None:
        row[has] = vectors.space.cosines(vector, size)[has]
    if vectors.and_words:
        words = np.asarray(index.arrays.latent.documents)
        row += np.einsum("nm,m->n", words, words[document])
        parts = has.astype(np.float32) + words.any(axis=1)
        row /= np.sqrt(np.maximum(parts, 1))
    return row, float(row[document])


def _row(index: Index, document: int, kernel: str, gamma: float | None) -> tuple[Scores, float]:
    """Return a row of the kernel, and its entry for the document itself."""
    snapshot = index.arrays
    one, itself = np.array([document]), np.ones(1, np.float32)
    if kernel == LATENT:
        documents = np.asarray(snapshot.latent.documents)
        row = np.einsum("nm,m->n", documents, documents[document])
        return row, float(row[document])
    if kernel != DOCUMENT:
        parameters = index.parameters(ranker="klsa", spectral=kernel, gamma=gamma, head=0)
        if snapshot.has_spectrum:
            row = snapshot.expansion_of(parameters).expand(one, itself)
            return row, float(row[document])
    row = np.zeros(len(snapshot))
    if not snapshot.has_spectrum:
        neighbours = snapshot.nearest(document)
        near = snapshot.sparse_expansion.kernel_of(np.append(document, neighbours))
        row[neighbours] = near.between(0, np.arange(1, len(near)))
        return row, float(near.diagonal[0])
    row[document] = 1
    row = snapshot.kernel.apply(row)
    return row, float(row[document])


def _hits(index: Index, id_: str, doc_ids: DocIds, values: Scores) -> tuple[Hit, ...]:
    document = index.document(id_)
    numbers = index.arrays.vocabulary.numbers
    texts = searched_texts(document, index.settings.searched_fields)
    stated = language_stated(document, index.settings.language_field)
    analyzer = index.analyzer.for_document(texts, stated)
    terms = {term for text in texts for term in analyzer.terms(text)}
    terms_here = [term for term in terms if term in numbers]
    term_weights = index.arrays.query_kernel.term_weights([numbers[term] for term in terms_here])
    weights = dict(zip(terms_here, term_weights.tolist(), strict=True))
    return index.hits(doc_ids, values, terms, weights)
