"""The size of a collection, how its D is stored, and the memory and disk that a build needs.

Used by the check before a build and by `estimate`. Figures follow from the
arrays that are alive together in a phase, scratch memory of the libraries among them; only `BASE`,
`_WORKER` and the sizes of Python's own objects are measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from klsa_search.core import progress
from klsa_search.core.config import Settings
from klsa_search.errors import SettingsError
from klsa_search.kernels.counts import BLOCK, TermCounts
from klsa_search.kernels.document_kernel import EXACT
from klsa_search.kernels.postings import BLOCK_BITS, DEPTHS, ONE_BLOCK
from klsa_search.lowrank import block_lanczos, sparse_expansion
from klsa_search.lowrank.products import WIDTH
from klsa_search.lowrank.sparse_expansion import (
    ENTRIES,
    document_vector_width,
    is_multiple_of_kernel,
    term_width,
)


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
    """Shape of the first n documents of a counted collection, as if there were no more."""
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


def extrapolate(few: Shape, many: Shape, documents: int) -> Shape:
    """Foretell the shape of N documents from those of the first n/4 and of the first n.

    What each document brings of its own (bytes, words, entries, values of fields) is taken to go on
    as it was.
    Vocabulary and pairs follow Heaps' law, a · N^β with 0 <= β <= 1, through both shapes. So do
    the tokens that make no pair which a second document holds; the others do.
    """
    if documents <= many.documents or not many.tokens:
        return many
    scale = documents / many.documents
    tokens = round(many.tokens * scale)

    def grown(of: Callable[[Shape], int]) -> int:
        return _heaps((few.documents, of(few)), (many.documents, of(many)), documents)

    return Shape(
        documents=documents,
        stored=round(many.stored * scale),
        tokens=tokens,
        terms=grown(lambda shape: shape.terms),
        non_zeros=round(many.non_zeros * scale),
        pairs=grown(lambda shape: shape.pairs),
        pair_non_zeros=tokens - grown(lambda shape: shape.tokens - shape.pair_non_zeros),
        words=round(many.words * scale),
        columns=round(many.columns * scale),
        texts=round(many.texts * scale),
    )


def _heaps(one: tuple[int, int], other: tuple[int, int], documents: int) -> int:
    """Prolong a · N^β through two points (documents, amount)."""
    (first, few), (last, many) = one, other
    if not few or not many or first == last:
        return round(many * documents / last)
    slope = math.log(many / few) / math.log(last / first)
    return round(many * math.pow(documents / last, min(max(slope, 0.0), 1.0)))


Layout = Literal["dense", "factored", "sparse"]

WHOLE: Final = 2**28
"""Bytes up to which a D that cannot be cut is kept whole: 8,192 documents."""

SMALL: Final = 2**13
"""Documents up to which a collection keeps its eigenvectors, however D is kept."""

_SECOND: Final = 10**8
"""Documents times the square of the eigenvectors that are found in about a second."""


def layout(documents: int, settings: Settings) -> Layout:
    """Choose for so many documents.

    sparse    where D is a multiple of K and the ranker needs no more
    dense     (N, N), else, while it is small
    factored  beyond: all spectral functions and rankers work; a query costs O(nnz + N · k)
    SettingsError if `sparse` is requested and cannot be used, and if `auto` would choose it but for
    the number of documents: other layouts are read-only, so the user has to choose them.
    """
    if settings.expansion == "sparse" and not _can_cut(settings):
        raise SettingsError(
            f"expansion = 'sparse': only a D that is a multiple of K can be sparse, and with "
            f"spectral = {settings.spectral!r} and head = {settings.head} it is not; use "
            "expansion = 'factored', or spectral = 'gvsm' and head = 0",
            field="expansion",
        )
    cut = settings.expansion == "sparse" or (
        settings.expansion == "auto"
        and _can_cut(settings)
        and not settings.ranker.startswith("lsi")
    )
    if cut and documents > sparse_expansion.MAX_DOCUMENTS:
        raise SettingsError(
            f"expansion = {settings.expansion!r}: {documents:,} documents are more than the "
            f"{sparse_expansion.MAX_DOCUMENTS:,} that a writable index can number; divide them among "
            "several indexes, or set expansion = 'factored', which makes the index read-only",
            field="expansion",
        )
    if cut:
        return "sparse"
    if settings.expansion != "auto":
        return settings.expansion
    return "dense" if 4 * documents**2 <= WHOLE else "factored"


def keeps_spectrum(documents: int, settings: Settings) -> bool:
    """Whether the eigenvectors are kept: where D is cut, in small collections only."""
    return layout(documents, settings) != "sparse" or documents <= SMALL


def solved_dimensions(documents: int, settings: Settings) -> int:
    """Eigenvectors that are computed: all that are asked for, or where D is cut fewer.

    There the latent space needs some, and a small collection keeps as many more as take about
    a second, so that function of the spectrum and dimensions can be chosen with a query.
    """
    if layout(documents, settings) != "sparse":
        return settings.dimensions
    latent = min(settings.dimensions, settings.latent_dimensions)
    if not keeps_spectrum(documents, settings):
        return latent
    return max(latent, min(settings.dimensions, math.isqrt(_SECOND // max(documents, 1))))


def _can_cut(settings: Settings) -> bool:
    return is_multiple_of_kernel(settings.spectral, settings.gamma, settings.head)


BASE = 190 * 2**20
"""An interpreter with NumPy, SciPy and compiled code, 100 MiB of it in files."""

_WORKER = 35 * 2**20  # one that analyses
_TERM = 200  # bytes of a term in a dictionary: entry, string, number
_TEXT = 300  # bytes of a text of a keyword field: string, entry, and again while it is sorted
_ID = 130  # bytes of an id in the set of those seen
_COUNTED = 28  # bytes of a word being counted: number, column, count, pair and how often
_ENTRY = 8  # bytes of an entry of a sparse matrix: number and column
_WEIGHTED = 12  # the same where the number is float64
# Of an entry while counts become weights: the matrix in float64, and terms of a sum.
_SATURATED = 44
_STACKED = 36  # of an entry while two matrices are put side by side: both, end to end, interleaved

_PAIR = 3  # bytes of a pair as the epoch keeps it
_RUNS = 8  # of a term, on average, where there are many blocks
_GRAPH = 2**22  # entries of K that the graph of neighbours looks at, at a time


def spool_room(memory: int) -> int:
    """Bytes of what waits to be counted, above which it waits in a file, of each kind."""
    return memory // 32


def memory_needed(
    shape: Shape, settings: Settings, *, memory: int, processes: int
) -> dict[str, int]:
    """Bytes at the peak of each phase, all processes together.

    memory  the budget: where it is smaller, more of what is counted waits in files
    """
    documents, terms, tokens = shape.documents, shape.terms, shape.tokens

    def waiting(*sizes: int) -> int:
        return sum(size for size in sizes if size <= spool_room(memory))

    # Python's objects stay to the end: between those that are let go lie the strings of terms.
    always = BASE + _ID * documents + (processes + 1) * _TERM * terms
    fields = _TEXT * shape.texts
    workers = processes * (_WORKER + _TERM * terms) if processes > 1 else 0
    words = waiting(4 * shape.words)
    singles = waiting(4 * shape.non_zeros, 4 * shape.non_zeros)
    doubles = waiting(8 * tokens, 4 * tokens)  # a pair begins at most at each token
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
        progress.DOCUMENTS: always + words + workers + fields + waiting(shape.columns),
        progress.COUNTS: always + counting + _COUNTED * under_way,
        progress.POSTINGS: always_counted
        + _ENTRY * shape.non_zeros * (settings.common_weight < 1)  # the content terms once more
        + max(_SATURATED * shape.non_zeros, stacked if settings.pairs else 0),
        progress.EIGENVECTORS: kernel + _solver(shape, settings, processes),
    } | (
        _cut(shape, settings, processes, kernel + vectors, weighed)
        if layout(documents, settings) == "sparse"
        else _uncut(shape, settings, kernel + vectors)
    )


def _solver(shape: Shape, settings: Settings, threads: int) -> int:
    """Bytes of the solver besides the kernel."""
    wanted = solved_dimensions(shape.documents, settings) + 1
    documents, features = shape.documents, shape.terms + shape.pairs
    if documents <= EXACT:
        lanczos = 2 * min(documents, features) + 2 * documents  # on the smaller side
        residual = features + 3 * documents  # all eigenvectors times K
        return 8 * wanted * max(lanczos, residual)
    columns = block_lanczos.max_columns(wanted) + 2 * WIDTH + 2 * wanted + threads + 1
    return 4 * (columns * documents + WIDTH * features)


def _cut(shape: Shape, settings: Settings, threads: int, held: int, weighed: int) -> dict[str, int]:
    """Of the phases that make a cut D; `held` is the kernel and its eigenvectors."""
    documents, features = shape.documents, shape.terms + shape.pairs
    m = min(settings.dimensions, settings.latent_dimensions)
    entries = max(ENTRIES, settings.neighbours)
    held += 4 * m * (documents + shape.terms)
    rows = _ENTRY * (entries + 1) * documents
    by_feature, in_float32 = (12, 4) if documents <= EXACT else (8, 0)
    # All postings first, with what is kept of each feature; then rows fill up.
    postings = (_ENTRY + in_float32) * weighed
    scratch = threads * 4 * (documents + features)
    kept = sum(_cut_disk(shape, settings).values())
    return {
        progress.NEIGHBOURS: held + postings + max(by_feature * weighed, rows + scratch),
        progress.EXPANSION: held + rows + kept + 4 * weighed,
    }


def _uncut(shape: Shape, settings: Settings, held: int) -> dict[str, int]:
    """Of the phases that make D whole or in its factors."""
    whole = layout(shape.documents, settings) == "dense"
    lsi = _WEIGHTED * shape.non_zeros + 8 * settings.dimensions * shape.documents
    expansion = 4 * shape.documents**2 if whole else 0
    block = min(shape.documents**2, max(_GRAPH, shape.documents)) if settings.coverage else 0
    return {progress.EXPANSION: held + lsi + expansion + 40 * block}


def disk_needed(shape: Shape, settings: Settings) -> dict[str, int]:
    """Bytes of the index that results, by what they hold."""
    documents, terms = shape.documents, shape.terms
    k = min(settings.dimensions, max(documents - 1, 1))
    latent = min(settings.latent_dimensions, k)
    kept = layout(documents, settings)
    of_terms = 8 + 8 + 8 + 2 * len(DEPTHS)  # starts, those of runs, occurrences, best saturations
    blocks = -(-documents >> BLOCK_BITS) if documents > ONE_BLOCK else 1
    runs = min(shape.non_zeros, terms * min(blocks, _RUNS))
    disk = {
        "documents": shape.stored,
        "fields": shape.columns,
        "vocabulary": (10 + of_terms) * terms,
        "lengths": 4 * documents,
        "runs": 6 * runs,
    }
    if kept == "sparse":
        return disk | {"postings": 4 * shape.non_zeros} | _cut_disk(shape, settings)
    return disk | {
        "postings": 8 * shape.non_zeros,
        "features": _ENTRY * shape.features,
        "eigenvectors": 2 * 4 * k * documents,
        "expansion": 4 * documents * documents if kept == "dense" else 0,
        "neighbours": _ENTRY * settings.neighbours * documents * bool(settings.coverage),
        "latent": 4 * latent * (documents + terms) * bool(settings.latent),
    }


def _cut_disk(shape: Shape, settings: Settings) -> dict[str, int]:
    """Bytes of a cut D."""
    latent = min(settings.dimensions, settings.latent_dimensions)
    entries = max(ENTRIES, settings.neighbours)
    solved = min(solved_dimensions(shape.documents, settings), max(shape.documents - 1, 1))
    return {
        "eigenvectors": 4 * solved * shape.documents * keeps_spectrum(shape.documents, settings),
        "expansion": (4 * entries + 8) * shape.documents,
        "features": 4 * (shape.features + shape.terms + shape.pairs) + 8 * shape.documents,
        "latent": document_vector_width(latent) * shape.documents
        + term_width(latent) * shape.terms,
        "epoch": (shape.terms + _PAIR * shape.pairs) * bool(settings.pairs),
    }
