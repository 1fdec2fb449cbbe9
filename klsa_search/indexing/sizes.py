"""Size of a collection, what of its D is stored, and the memory and disk that a build needs.

Used by the check before a build and by `plan`. Figures are the arrays that exist at the same
time in a phase, buffers of libraries included; only `BASE`, `_WORKER` and the sizes of Python
objects are measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from klsa_search.analysis.languages import AUTO
from klsa_search.core import progress
from klsa_search.core.config import Settings
from klsa_search.kernels.counts import BLOCK, TermCounts
from klsa_search.kernels.document_kernel import EXACT
from klsa_search.kernels.postings import BLOCK_BITS, DEPTHS, ONE_BLOCK
from klsa_search.lowrank import block_lanczos
from klsa_search.lowrank.products import WIDTH
from klsa_search.lowrank.sparse_expansion import (
    ENTRIES,
    document_vector_width,
    is_multiple_of_kernel,
    term_width,
)
from klsa_search.search.rankers import needs_eigenvectors


@dataclass(frozen=True)
class Shape:
    """Size of a collection, counted or estimated.

    documents       N, number of documents
    stored          bytes of the stored documents and of the forward index
    tokens          number of terms in all documents, with repetitions
    terms           V, number of different terms
    non_zeros       number of document-term pairs
    pairs           P, number of adjacent term pairs that at least two documents contain
    pair_non_zeros  number of pairs of a document and an adjacent term pair
    words           number of words in all documents, stop words included
    columns         bytes of the filterable metadata fields
    texts           number of distinct texts of keyword fields
    """

    documents: int
    stored: int
    tokens: int
    terms: int
    non_zeros: int
    pairs: int
    pair_non_zeros: int
    words: int
    columns: int = 0
    texts: int = 0

    @classmethod
    def of(cls, counts: TermCounts, stored: int, *, columns: int = 0, texts: int = 0) -> Shape:
        """Return the shape of counted documents. Cost: O(non_zeros)."""
        return cls(
            documents=counts.matrix.shape[0],
            stored=stored,
            tokens=counts.tokens,
            terms=counts.matrix.shape[1],
            non_zeros=counts.matrix.nnz,
            pairs=counts.pairs.shape[1],
            pair_non_zeros=counts.pairs.nnz,
            words=counts.words,
            columns=columns,
            texts=texts,
        )

    @property
    def features(self) -> int:
        """Return the non-zeros of the features: terms and adjacent pairs."""
        return self.non_zeros + self.pair_non_zeros


def shape_of_first(counts: TermCounts, stored: int, documents: int) -> Shape:
    """Return the shape of the first n documents of a counted collection, as if these were all."""
    entries = int(counts.matrix.indptr[documents])
    holders = np.bincount(counts.pairs.indices[: int(counts.pairs.indptr[documents])])
    shared = holders[holders > 1]
    tokens = int(counts.matrix.data[:entries].sum())
    return Shape(
        documents=documents,
        stored=round(stored * documents / max(counts.matrix.shape[0], 1)),
        tokens=tokens,
        terms=len(np.unique(counts.matrix.indices[:entries])),
        non_zeros=entries,
        pairs=len(shared),
        pair_non_zeros=int(shared.sum()),
        words=round(counts.words * tokens / max(int(counts.matrix.data.sum()), 1)),
    )


def shape_of_size(documents: int, words: int) -> Shape:
    """Return the shape of N documents of so many words each, if they are like English news.

    Terms, pairs and tokens outside of shared pairs follow Heaps' law in tokens. Exponents and
    factors are those of documents generated from Reuters-21578, from 30,000 to a million of them;
    Reuters itself has a third more terms. Without metadata fields.
    """
    tokens_per_document = 0.6 * words  # tokens of a document: the others are stop words
    tokens = round(tokens_per_document * documents)
    unshared = min(tokens, 3.82 * tokens**0.835)
    return Shape(
        documents=documents,
        stored=round(7.4 * words * documents),
        tokens=tokens,
        terms=round(min(tokens, 0.514 * tokens**0.76)),
        non_zeros=round(documents * min(tokens_per_document, 1.68 * tokens_per_document**0.8)),
        pairs=round(min(tokens, 2.97 * tokens**0.77)),
        pair_non_zeros=round(tokens - unshared),
        words=words * documents,
    )


def extrapolate(few: Shape, many: Shape, documents: int) -> Shape:
    """Return the estimated shape of N documents from those of the first n/4 and the first n.

    Bytes, words, entries and values of fields are proportional to documents. Vocabulary and pairs
    follow Heaps' law, a · N^β with 0 <= β <= 1, through both shapes, and so do tokens that are not
    in a pair of two documents.
    """
    if documents <= many.documents or not many.tokens:
        return many
    scale = documents / many.documents
    tokens = round(many.tokens * scale)

    def extrapolated(of: Callable[[Shape], int]) -> int:
        return _heaps((few.documents, of(few)), (many.documents, of(many)), documents)

    return Shape(
        documents=documents,
        stored=round(many.stored * scale),
        tokens=tokens,
        terms=extrapolated(lambda shape: shape.terms),
        non_zeros=round(many.non_zeros * scale),
        pairs=extrapolated(lambda shape: shape.pairs),
        pair_non_zeros=tokens - extrapolated(lambda shape: shape.tokens - shape.pair_non_zeros),
        words=round(many.words * scale),
        columns=round(many.columns * scale),
        texts=round(many.texts * scale),
    )


def _heaps(one: tuple[int, int], other: tuple[int, int], documents: int) -> int:
    """Return a · N^β through two points (documents, amount)."""
    (first, few), (last, many) = one, other
    if not few or not many or first == last:
        return round(many * documents / last)
    slope = math.log(many / few) / math.log(last / first)
    return round(many * math.pow(documents / last, min(max(slope, 0.0), 1.0)))


def shape_of_part(shape: Shape, documents: int) -> Shape:
    """Return the shape of so many of the documents, with all terms and pairs of words."""
    if documents >= shape.documents:
        return shape
    share = documents / shape.documents
    names = ("stored", "tokens", "non_zeros", "pair_non_zeros", "words", "columns", "texts")
    parts = {name: round(getattr(shape, name) * share) for name in names}
    return replace(shape, documents=documents, **parts)


SMALL: Final = 2**13
"""Largest collection that stores its eigenvectors in any case, and complete rows of D."""

_SOLVED_PER_SECOND: Final = 10**8
"""Documents times the square of the eigenvectors that are computed in about a second."""


def stores_rows(documents: int, settings: Settings) -> bool:
    """Return whether the rows of D are stored completely: if it is not a multiple of K.

    In a larger collection D is computed from the eigenvectors at each search, in O(nnz + N · k).
    """
    is_multiple = is_multiple_of_kernel(settings.spectral, settings.gamma, settings.head)
    return documents <= SMALL and not is_multiple


def stores_eigenvectors(documents: int, settings: Settings) -> bool:
    """Return whether the eigenvectors are stored."""
    return documents <= SMALL or needs_eigenvectors(settings) is not None


def solved_dimensions(documents: int, settings: Settings) -> int:
    """Return the number of eigenvectors to compute: all requested if the ranking needs them.

    Otherwise the latent space needs some, and a small collection stores as many more as take about
    a second, so that spectral function and dimensions can be chosen with a query.
    """
    if needs_eigenvectors(settings):
        return settings.dimensions
    latent = min(settings.dimensions, settings.latent_dimensions)
    if not stores_eigenvectors(documents, settings):
        return latent
    affordable = math.isqrt(_SOLVED_PER_SECOND // max(documents, 1))
    return max(latent, min(settings.dimensions, affordable))


BASE = 190 * 2**20
"""An interpreter with NumPy and SciPy, 100 MiB of it in files."""

_LANGUAGES = 85 * 2**20  # the model that detects languages
_WORKER = 35 * 2**20  # a process that analyses
_TERM = 200  # bytes of a term in a dictionary: entry, string, number
_TEXT = 300  # bytes of a text of a keyword field: string, entry, and again while it is sorted
_ID = 130  # bytes of an ID in the set of those seen
_COUNTED = 28  # bytes of a word being counted: number, column, count, pair and frequency
_ENTRY = 8  # bytes of an entry of a sparse matrix: number and column
_WEIGHTED = 12  # the same if the number is float64
# Of an entry while counts become weights: the matrix in float64, and terms of a sum.
_SATURATED = 44
_STACKED = 36  # of an entry while two matrices are stacked: both, concatenated, interleaved

_PAIR = 3  # bytes of a stored pair
_RUNS = 8  # of a term, on average, if there are many blocks


def spool_limit(memory: int) -> int:
    """Return the bytes above which uncounted data of one kind is spooled to a file."""
    return memory // 32


def memory_needed(
    shape: Shape, settings: Settings, *, memory: int, processes: int
) -> dict[str, int]:
    """Return the peak memory of each phase in bytes, of all processes together.

    memory  the budget: the smaller it is, the more data is spooled to files
    """
    documents, terms, tokens = shape.documents, shape.terms, shape.tokens

    def waiting(*sizes: int) -> int:
        return sum(size for size in sizes if size <= spool_limit(memory))

    # Python's objects stay allocated to the end: strings of terms fragment the heap.
    always = BASE + _ID * documents + (processes + 1) * _TERM * terms
    fields = _TEXT * shape.texts
    workers = processes * (_WORKER + _TERM * terms) if processes > 1 else 0
    words = waiting(4 * shape.words)
    singles = waiting(4 * shape.non_zeros, 4 * shape.non_zeros)
    doubles = waiting(8 * tokens, 4 * tokens)  # at most one pair begins at each token
    numbered = _ENTRY * shape.pair_non_zeros
    counting = words + max(singles, _ENTRY * shape.non_zeros + numbered) + doubles
    under_way = min(shape.words, (processes + 1) * BLOCK)
    always_counted = always + _ENTRY * (shape.features + shape.pairs)  # entries, keys of pairs
    weighed = shape.features if settings.pairs else shape.non_zeros
    stacked = max(
        _WEIGHTED * shape.non_zeros + _SATURATED * shape.pair_non_zeros,
        _STACKED * shape.features,
    )
    precision = 8 if documents <= EXACT else 4
    kernel = always_counted + (4 + precision) * weighed + 8 * (4 * documents + terms + shape.pairs)
    vectors = precision * documents * solved_dimensions(documents, settings)
    return {
        progress.DOCUMENTS: always
        + _LANGUAGES * (settings.language == AUTO)
        + (words + workers + fields + waiting(shape.columns)),
        progress.COUNTS: always + counting + _COUNTED * under_way,
        progress.POSTINGS: always_counted
        + _ENTRY * shape.non_zeros * (settings.common_weight < 1)  # the content terms once more
        + max(_SATURATED * shape.non_zeros, stacked if settings.pairs else 0),
        progress.EIGENVECTORS: kernel + _solver(shape, settings, processes),
        **_expansion_memory(shape, settings, processes, kernel + vectors, weighed),
    }


def _solver(shape: Shape, settings: Settings, threads: int) -> int:
    """Return the memory of the solver in bytes, without the kernel."""
    wanted = solved_dimensions(shape.documents, settings) + 1
    documents, features = shape.documents, shape.terms + shape.pairs
    if documents <= EXACT:
        lanczos = 2 * min(documents, features) + 2 * documents  # on the smaller side
        residual = features + 3 * documents  # all eigenvectors times K
        return 8 * wanted * max(lanczos, residual)
    columns = block_lanczos.max_columns(wanted) + 2 * WIDTH + 2 * wanted + threads + 1
    return 4 * (columns * documents + WIDTH * features)


def _expansion_memory(
    shape: Shape, settings: Settings, threads: int, base: int, weighed: int
) -> dict[str, int]:
    """Return the memory of the phases of D; `base` is the kernel and its eigenvectors."""
    documents, features = shape.documents, shape.terms + shape.pairs
    m = min(settings.dimensions, settings.latent_dimensions)
    entries = max(ENTRIES, settings.neighbours)
    base += 4 * m * (documents + shape.terms)
    rows = _ENTRY * (entries + 1) * documents
    by_feature, in_float32 = (12, 4) if documents <= EXACT else (8, 0)
    # All postings first, with the arrays of features; then rows fill up.
    postings = (_ENTRY + in_float32) * weighed
    workspaces = threads * 4 * features
    packed = rows + sum(_expansion_disk(shape, settings).values()) + 4 * weighed
    lsi = _WEIGHTED * shape.non_zeros + 8 * settings.dimensions * documents
    return {
        progress.NEIGHBOURS: base + postings + max(by_feature * weighed, rows + workspaces),
        progress.EXPANSION: base + packed + lsi * (needs_eigenvectors(settings) is not None),
    }


def disk_needed(shape: Shape, settings: Settings) -> dict[str, int]:
    """Return the size of the index in bytes, by kind of content."""
    documents, terms = shape.documents, shape.terms
    of_terms = 8 + 8 + 8 + 2 * len(DEPTHS)  # starts, those of runs, occurrences, best saturations
    blocks = -(-documents >> BLOCK_BITS) if documents > ONE_BLOCK else 1
    runs = min(shape.non_zeros, terms * min(blocks, _RUNS))
    disk = {
        "documents": shape.stored,
        "fields": shape.columns,
        "vocabulary": (10 + of_terms) * terms,
        "lengths": 4 * documents,
        "runs": 6 * runs,
        "postings": 4 * shape.non_zeros,
    }
    return disk | _expansion_disk(shape, settings)


def _expansion_disk(shape: Shape, settings: Settings) -> dict[str, int]:
    """Return the size of D on disk, and of what it is computed from."""
    documents = shape.documents
    latent = min(settings.dimensions, settings.latent_dimensions)
    entries = max(ENTRIES, settings.neighbours)
    solved = min(solved_dimensions(documents, settings), max(documents - 1, 1))
    complete = 4 * documents**2 * stores_rows(documents, settings)
    lsi = 4 * (solved * documents + shape.non_zeros) * (needs_eigenvectors(settings) is not None)
    return {
        "eigenvectors": 4 * solved * documents * stores_eigenvectors(documents, settings) + lsi,
        "expansion": (4 * entries + 8) * documents + complete,
        "features": 4 * (shape.features + shape.terms + shape.pairs) + 8 * documents,
        "latent": document_vector_width(latent) * documents + term_width(latent) * shape.terms,
        "epoch": (shape.terms + _PAIR * shape.pairs) * bool(settings.pairs),
    }
