"""New documents: texts to counts, features and latent vectors, by the statistics of the build.

A term that the build does not know gets the next number at its first appearance; this number is
also its rank in the forward index.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.analysis.analyzer import Analyzer
from klsa_search.analysis.searched_text import analysed_texts
from klsa_search.analysis.workers import TermNumbering
from klsa_search.collection.model import Document
from klsa_search.core.array_types import GrowableArray, Integers, Numbers, SparseRows, starts_of
from klsa_search.delta.statistics import BuildStatistics
from klsa_search.kernels.counts import Block, BlockCounts
from klsa_search.kernels.document_kernel import scales_of
from klsa_search.lowrank.sparse_expansion import LATENT_LEVELS, pack_rows, scalars_of


class TermMap:
    """Maps terms to numbers, common terms included, and remembers new terms."""

    def __init__(self, statistics: BuildStatistics) -> None:
        self._of_build = statistics.vocabulary.numbers
        self._numbering = TermNumbering(Analyzer(statistics.settings))
        self._fields = statistics.settings.searched_fields
        self._language_field = statistics.settings.language_field
        self._numbers = GrowableArray(np.int32)  # term of each number of the numbering
        self._new: dict[str, int] = {}
        self._ranks = GrowableArray.of(statistics.forward.ranks)
        self._common = statistics.common
        self._content = GrowableArray.of(np.ones(len(self._ranks), np.bool_))
        common = [self._of_build[term] for term in statistics.common if term in self._of_build]
        self._content.rows[common] = False

    @property
    def ranks(self) -> npt.NDArray[np.int32]:
        """Return the rank of each known term in the forward index."""
        return self._ranks.rows

    @property
    def content(self) -> npt.NDArray[np.bool_]:
        """Return whether each known term is not one of the common terms."""
        return self._content.rows

    def add_terms(self, words: Sequence[str]) -> None:
        """Give new terms the next numbers."""
        first = len(self._ranks)
        numbers = range(first, first + len(words))
        self._new.update(zip(words, numbers, strict=True))
        self._ranks.extend(np.array(numbers, np.int32))
        self._content.extend(np.array([word not in self._common for word in words], np.bool_))

    def number(self, documents: Sequence[Document]) -> tuple[Block, list[str], Integers]:
        """Return the parts of documents as term numbers, the new terms, and for each document the
        number of those in the documents before: (n + 1,).
        """
        first = len(self._ranks)
        texts = self._numbering.numbered(
            analysed_texts(documents, self._fields, self._language_field)
        )
        words = [
            term for term in texts.terms if term not in self._of_build and term not in self._new
        ]
        self.add_terms(words)
        term_numbers = [
            self._of_build[t] if t in self._of_build else self._new[t] for t in texts.terms
        ]
        self._numbers.extend(np.array(term_numbers, np.int32))
        numbers = np.frombuffer(texts.numbers, np.int32)
        has_term = numbers >= 0
        numbered = numbers.copy()
        numbered[has_term] = self._numbers.rows[numbers[has_term]]
        lengths = np.frombuffer(texts.lengths, np.int32)
        parts = np.full(len(documents), len(self._fields.names), np.int32)
        ends = starts_of(lengths)[:: len(self._fields.names)]
        latest = np.maximum.accumulate(np.concatenate(([first - 1], numbered)))[ends]
        return Block(numbered, lengths, parts), words, latest + 1 - first


_ANY: Final = 2**31 - 1  # number of columns, which nothing reads
_Floats = npt.NDArray[np.float64]


class CandidateTerms(NamedTuple):
    """Terms of new documents that select candidates: starts, terms and weights, as in CSR."""

    starts: Numbers
    terms: npt.NDArray[np.int32]
    weights: npt.NDArray[np.float32]


class DocumentFeatures(NamedTuple):
    """Documents as arrays of D: see `SparseExpansion`.

    starts            (n + 1,) int64
    features          uint32
    document_vectors  (n, w) int8
    diagonals         (n,) float32, K(d, d)
    query_terms       the terms that select candidates, and their weights
    """

    starts: Numbers
    features: npt.NDArray[np.uint32]
    document_vectors: npt.NDArray[np.int8]
    diagonals: npt.NDArray[np.float32]
    query_terms: CandidateTerms


def document_features(
    statistics: BuildStatistics, counts: BlockCounts, content: npt.NDArray[np.bool_]
) -> DocumentFeatures:
    """Return the features of documents; unknown terms and pairs are ignored.

    counts   of all terms known so far; the first V are those of the build
    content  (V',) whether each of them is not a common term
    Cost: O(nnz), and O(m) a term. A document without features, or equal to the mean document, has
    no neighbours.
    """
    settings, n, terms = statistics.settings, len(counts.sizes), len(content)
    is_content = content[counts.columns]
    of_each = np.repeat(np.arange(n), counts.sizes)
    lengths = np.bincount(of_each[is_content], counts.counts[is_content], n)
    weighting, average = statistics.weighting, statistics.trained.mean_content_length

    is_known = (counts.columns < statistics.terms) & is_content
    columns = counts.columns[is_known]
    of_terms = weighting.local_weights(counts.counts, counts.sizes, lengths, average)[is_known]
    documents = of_each[is_known]
    numbers = statistics.feature_numbers.terms[columns]
    weights = statistics.weights(numbers)
    values = of_terms * weights
    pairs = statistics.feature_numbers.find(counts.keys, terms)
    is_feature = pairs >= 0
    of_pairs = weighting.local_weights(counts.key_counts, counts.key_sizes, lengths, average)
    of_pairs = of_pairs[is_feature] * settings.pairs
    features = _rows(
        n,
        (documents, np.repeat(np.arange(n), counts.key_sizes)[is_feature]),
        (numbers, pairs[is_feature]),
        (values, of_pairs * statistics.weights(pairs[is_feature])),
    )
    of_features = np.repeat(np.arange(n), np.diff(features.indptr))
    mean = statistics.expansion.mean[
        np.minimum(features.indices, len(statistics.expansion.mean) - 1)
    ]
    mean = np.where(features.indices < len(statistics.expansion.mean), mean, 0.0)
    towards = np.bincount(of_features, features.data * mean, n)
    squares = np.bincount(of_features, np.square(features.data), n)
    distances = squares - 2 * towards + statistics.expansion.mean_square
    scales = np.ones(n)
    if settings.normalised:
        scales = scales_of(distances, squares, statistics.expansion.mean_square)
    starts, packed, steps = pack_rows(features._replace(data=features.data * scales[of_features]))
    saturations = _rows(n, (documents,), (columns,), (of_terms,))
    vectors = np.zeros((n, statistics.expansion.document_vectors.shape[1]), np.int8)
    positions = statistics.latent_positions(saturations) - statistics.centre
    norms = np.sqrt(np.einsum("nm,nm->n", positions, positions))
    factors = np.divide(LATENT_LEVELS, norms, out=np.zeros_like(norms), where=norms > 0)
    factors[scales == 0] = 0  # documents without neighbours
    # Unit vectors in steps of 1/127.
    vectors[:, : statistics.dimensions] = np.rint(positions * factors[:, None])
    scalars_of(vectors)[:] = np.column_stack((steps, scales, scales * towards))
    diagonals = np.square(scales) * np.maximum(distances, 0.0)
    query_starts = starts_of(np.bincount(documents, minlength=n))
    query_weights = scales[documents] * values * weights
    query_terms = CandidateTerms(query_starts, columns, query_weights.astype(np.float32))
    return DocumentFeatures(starts, packed, vectors, diagonals.astype(np.float32), query_terms)


def _rows(
    n: int,
    documents: tuple[Numbers, ...],
    columns: tuple[npt.NDArray[np.int32], ...],
    values: tuple[_Floats, ...],
) -> SparseRows:
    """Return a sparse matrix of entries in document order; the sort is stable."""
    rows = np.concatenate(documents)
    order = np.argsort(rows, kind="stable")
    starts = starts_of(np.bincount(rows, minlength=n))
    indices, data = np.concatenate(columns)[order], np.concatenate(values)[order]
    return SparseRows(starts, indices.astype(np.int32), data, (n, _ANY))
