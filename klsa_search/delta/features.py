"""New documents: texts to counts, features and latent coordinates, by the statistics of the build.

A term that the epoch does not know gets the next number when it first appears, and its number is
its rank in the forward index too.

place(epoch, counts, base) -> Placed
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klsa_search.analysis.analyzer import Analyzer
from klsa_search.analysis.workers import NO_TERM, TermNumbering
from klsa_search.collection.model import Document
from klsa_search.core.array_types import narrow_indptr
from klsa_search.core.selection import GrowableArray
from klsa_search.delta.neighbours import Asked
from klsa_search.delta.statistics import BuildStatistics
from klsa_search.kernels import bm25
from klsa_search.kernels.counts import Block, BlockCounts
from klsa_search.kernels.document_kernel import scales_of
from klsa_search.lowrank.sparse_expansion import LATENT_LEVELS, pack_rows


class Reader:
    """Numbers the terms of documents; remembers those that the epoch does not know.

    Common terms are numbered as all others.
    """

    def __init__(self, epoch: BuildStatistics) -> None:
        self._known = epoch.vocabulary.numbers
        self._numbering = TermNumbering(Analyzer(epoch.settings))
        self._numbers = GrowableArray(np.int32)  # among all terms, of each term of the numbering
        self._new: dict[str, int] = {}
        self._ranks = GrowableArray(np.int32)
        self._ranks.extend(epoch.ranks)
        self._common = epoch.common
        self._content = GrowableArray(np.bool_)
        self._content.extend(np.ones(len(epoch.ranks), np.bool_))
        common = [self._known[term] for term in epoch.common if term in self._known]
        self._content.rows[common] = False

    @property
    def ranks(self) -> npt.NDArray[np.int32]:
        """The rank of each term known so far in the forward index."""
        return self._ranks.rows

    @property
    def content(self) -> npt.NDArray[np.bool_]:
        """Whether each term known so far is none of the common ones."""
        return self._content.rows

    def learn(self, words: Sequence[str]) -> None:
        """Give terms that are new the next numbers."""
        first = len(self._ranks)
        numbers = range(first, first + len(words))
        self._new.update(zip(words, numbers, strict=True))
        self._ranks.extend(np.array(numbers, np.int32))
        self._content.extend(np.array([word not in self._common for word in words], np.bool_))

    def read(self, documents: Sequence[Document]) -> tuple[Block, list[str]]:
        """Return documents of two parts in numbers of terms, and the terms that are new."""
        texts = self._numbering.numbered(
            [part for document in documents for part in (document.title, document.text)]
        )
        words = [term for term in texts.terms if term not in self._known and term not in self._new]
        self.learn(words)
        met = [self._known[t] if t in self._known else self._new[t] for t in texts.terms]
        self._numbers.extend(np.array(met, np.int32))
        numbers = np.frombuffer(texts.numbers, np.int32)
        held = numbers >= 0
        numbered = np.full(len(numbers), NO_TERM, np.int32)
        numbered[held] = self._numbers.rows[numbers[held]]
        lengths = np.frombuffer(texts.lengths, np.int32)
        return Block(numbered, lengths, np.full(len(documents), 2, np.int32)), words


_ANY: Final = 2**31 - 1  # columns: whatever the epoch's are
_Floats = npt.NDArray[np.float64]


class Placed(NamedTuple):
    """Documents as the arrays of a cut D have them: see `SparseExpansion`.

    starts     (n + 1,) int64
    features   uint32
    cards      (n, w) int8
    diagonals  (n,) float32, K(d, d)
    asked      the terms that ask for a pool, and how much each counts
    """

    starts: npt.NDArray[np.int64]
    features: npt.NDArray[np.uint32]
    cards: npt.NDArray[np.int8]
    diagonals: npt.NDArray[np.float32]
    asked: Asked


def place(epoch: BuildStatistics, counts: BlockCounts, content: npt.NDArray[np.bool_]) -> Placed:
    """Weigh and place documents; terms and pairs that the epoch does not know count for nothing.

    counts   of all terms known so far; the first V are the epoch's
    content  (V',) of each of those, whether it is none of the common terms
    Cost O(nnz) and O(m) a term. What has no features, or is the mean document, is like nothing.
    """
    settings, n, terms = epoch.settings, len(counts.sizes), len(content)
    apart = content[counts.columns]
    of_each = np.repeat(np.arange(n), counts.sizes)
    lengths = np.bincount(of_each[apart], counts.counts[apart], n)
    norms = bm25.norms(lengths, epoch.content, k1=settings.kernel_k1, b=settings.b)

    known = (counts.columns < epoch.terms) & apart
    held = counts.columns[known]
    of_terms = bm25.saturate(counts.counts, counts.sizes, norms, settings.kernel_k1)[known]
    documents = of_each[known]
    numbers = epoch.pairs.terms[held]
    weights = epoch.weights(numbers)
    values = of_terms * weights
    found = epoch.pairs.find(counts.keys, terms)
    paired = found >= 0
    of_pairs = bm25.saturate(counts.key_counts, counts.key_sizes, norms, settings.kernel_k1)
    of_pairs = of_pairs[paired] * settings.pairs
    features = _rows(
        n,
        (documents, np.repeat(np.arange(n), counts.key_sizes)[paired]),
        (numbers, found[paired]),
        (values, of_pairs * epoch.weights(found[paired])),
    )
    of_features = np.repeat(np.arange(n), np.diff(features.indptr))
    mean = epoch.cut.mean[np.minimum(features.indices, len(epoch.cut.mean) - 1)]
    mean = np.where(features.indices < len(epoch.cut.mean), mean, 0.0)
    towards = np.bincount(of_features, features.data * mean, n)
    squares = np.bincount(of_features, np.square(features.data), n)
    distances = squares - 2 * towards + epoch.mean_square
    scales = np.ones(n)
    if settings.normalised:
        scales = scales_of(distances, squares, epoch.mean_square)
    features.data *= scales[of_features]
    starts, packed, steps = pack_rows(features)
    saturations = _rows(n, (documents,), (held,), (of_terms,))
    cards = np.zeros((n, epoch.cut.document_vectors.shape[1]), np.int8)
    cards[:, : epoch.dimensions] = _levels(epoch.places(saturations) - epoch.centre, scales)
    facts = cards.view(np.float32)
    facts[:, -3], facts[:, -2], facts[:, -1] = steps, scales, scales * towards
    diagonals = np.square(scales) * np.maximum(distances, 0.0)
    sizes = np.bincount(documents, minlength=n)
    asking = scales[documents] * values * weights
    asked = Asked(np.concatenate(([0], np.cumsum(sizes))), held, asking.astype(np.float32))
    return Placed(starts, packed, cards, diagonals.astype(np.float32), asked)


def _rows(
    n: int,
    documents: tuple[npt.NDArray[np.int64], ...],
    columns: tuple[npt.NDArray[np.int32], ...],
    values: tuple[_Floats, ...],
) -> sparse.csr_array:
    """Make a sparse matrix of entries in document order; of a document the first come first."""
    rows = np.concatenate(documents)
    order = np.argsort(rows, kind="stable")
    starts = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=n))))
    indices, data = np.concatenate(columns)[order], np.concatenate(values)[order]
    matrix = (data, indices.astype(np.int32), narrow_indptr(starts))
    return sparse.csr_array(matrix, shape=(n, _ANY))


def _levels(places: _Floats, scales: _Floats) -> npt.NDArray[np.int8]:
    """Coordinates of length 1 in steps of 1/127; 0 for what is like nothing."""
    lengths = np.sqrt(np.einsum("nm,nm->n", places, places))
    factors = np.divide(LATENT_LEVELS, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    factors[scales == 0] = 0
    return np.asarray(np.rint(places * factors[:, None]), np.int8)
