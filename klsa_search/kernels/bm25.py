"""Counts → BM25: the features Φ of the document kernel, and what saturates the query kernel.

    K_d      = k1 · ((1 - b) + b · dl(d) / dl_avg)
    sat(t,d) = (k1 + 1) · f(t,d) / (K_d + f(t,d))
    w(t)     = log(1 + (N - n_t + 0.5) / (n_t + 0.5)), in queries another where that is asked for

[KLSA eq. 3-4], with the 1 + inside the logarithm: the classic w is negative for n_t > N/2, and the
document kernel would no longer be positive semi-definite.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.core.config import IdfName
from klsa_search.kernels.counts import TermCounts

if TYPE_CHECKING:
    from scipy import sparse

_LEAST: Final = 2.0**-16
_STEP: Final = 2.0 ** (1 / 64)


def norms(
    lengths: npt.NDArray[np.number], average: float, *, k1: float, b: float
) -> npt.NDArray[np.float64]:
    """K_d: (N,), of lengths dl(d) and the collection's mean length."""
    return np.asarray(k1 * ((1 - b) + b * lengths / average))


def document_features(
    counts: TermCounts, *, k1: float, b: float, idf_power: float = 0.5, pairs: float = 0.0
) -> sparse.csr_array:
    """Φ: (N, V) sparse float64 with φ(d)_t = w(t)^p · sat(t,d), and K = ΦΦᵀ.

    idf_power  p; the published kernel has 0.5 [KLSA eq. 4]
    pairs      weight of the adjacent pairs of terms: above 0 they follow the V terms as further
               columns, saturated and weighted by their own document frequency
    """
    lengths = counts.lengths
    weighing = FeatureWeighting(k1, b, average_length(lengths))
    terms = weighing.features(counts.matrix, lengths, idf(counts.matrix) ** idf_power)
    if pairs == 0:
        return terms
    return weighing.side_by_side(
        terms, counts.pairs, lengths, pairs * idf(counts.pairs) ** idf_power
    )


class FeatureWeighting(NamedTuple):
    """From counts of some documents to their features, by what is known of all.

    average  dl_avg of the collection
    """

    k1: float
    b: float
    average: float

    def features(
        self,
        matrix: sparse.csr_array,
        lengths: npt.NDArray[np.number],
        weights: npt.NDArray[np.float64],
    ) -> sparse.csr_array:
        """sat(t, d) times the weight of each column: (n, V), (n,), (V,) → (n, V). Cost O(nnz)."""
        weighted = saturated(matrix, lengths, self.average, self.k1, self.b)
        weighted.data *= weights[weighted.indices]
        return weighted

    def side_by_side(
        self,
        terms: sparse.csr_array,
        pairs: sparse.csr_array,
        lengths: npt.NDArray[np.number],
        weights: npt.NDArray[np.float64],
    ) -> sparse.csr_array:
        """Put the features of pairs behind those of terms: (n, V), (n, P), (P,) → (n, V + P)."""
        from scipy import sparse

        both = terms, self.features(pairs, lengths, weights)
        return sparse.csr_array(sparse.hstack(both, format="csr"))


def idf(matrix: sparse.csr_array) -> npt.NDArray[np.float64]:
    """w(t) of counts (N, V) without stored zeros: (V,). Cost O(nnz)."""
    documents, columns = matrix.shape
    return idf_of(np.bincount(matrix.indices, minlength=columns), documents)


def idf_of(
    frequencies: npt.NDArray[np.number], documents: int, variant: IdfName = "lucene"
) -> npt.NDArray[np.float64]:
    """w(t) of terms that n_t of N documents hold: (V,), above 0, so that what matches is found.

    lucene     ln(1 + (N - n + .5) / (n + .5)), the published one [KLSA eq. 3]
    robertson  ln((N - n + .5) / (n + .5)) [Robertson et al. 1994]; next to nothing where more than
               half of the documents hold the term
    atire      ln(N / n) [Trotman, Jia, Crane 2012]; a term of no document weighs as one of one
    Compared in [Kamphuis et al. 2020].
    """
    if variant == "atire":
        ratio = max(documents, 1) / np.maximum(frequencies, 1)
        return np.asarray(np.maximum(np.log(ratio), _LEAST))
    odds = (documents - frequencies + 0.5) / (frequencies + 0.5)
    if variant == "robertson":
        return np.asarray(np.maximum(np.log(odds), _LEAST))
    return np.asarray(np.log1p(odds))


def average_length(lengths: npt.NDArray[np.number]) -> float:
    """Return dl_avg of lengths (N,); see `mean_length`."""
    return mean_length(lengths.sum(), len(lengths))


def mean_length(tokens: float, documents: int) -> float:
    """Return dl_avg of documents that have so many tokens together; 1 if all are empty."""
    return float(tokens / documents) if tokens else 1.0


def quantised_length(average: float) -> float:
    """dl_avg on a grid of 1/64 octave, about 1 %: the nearest of 2^(i/64).

    A build saturates by it. It is a function of the documents alone, not of their history.
    """
    return float(2.0 ** (np.rint(np.log2(average) * 64) / 64))


def length_step(standing: float) -> int:
    """Return i of a length 2^(i/64) of the grid."""
    return int(np.rint(np.log2(standing) * 64))


def next_quantised_length(standing: float, averages: npt.NDArray[np.float64]) -> float:
    """Return the length of the grid after writes that gave the mean length these values in turn.

    standing  the length before them
    averages  (n,) the mean after each write, NaN if no document has a term
    It moves, to the nearest step, when the mean is more than one whole step away from it. So a mean
    that goes to and fro between two steps moves it once, what is saturated by it mostly stays as it
    is, and it follows from the build and the writes in their order, however they are divided.
    """
    place = 0
    while True:
        rest = averages[place:]
        away = np.flatnonzero((rest > standing * _STEP) | (rest < standing / _STEP))
        if not len(away):
            return standing
        place += int(away[0])
        standing = quantised_length(float(averages[place]))


def saturated(
    matrix: sparse.csr_array, lengths: npt.NDArray[np.number], average: float, k1: float, b: float
) -> sparse.csr_array:
    """sat(t, d) of counts (N, V), lengths (N,) and the collection's average length."""
    saturated = matrix.astype(np.float64)
    of_documents = norms(lengths, average, k1=k1, b=b)
    saturated.data = saturate(saturated.data, np.diff(saturated.indptr), of_documents, k1)
    return saturated


def saturate(
    counts: npt.NDArray[np.number],
    sizes: npt.NDArray[np.integer],
    norms: npt.NDArray[np.float64],
    k1: float,
) -> npt.NDArray[np.float64]:
    """sat(t, d) of the counts of documents one after the other, `sizes` of each: (nnz,).

    norms  (N,) K_d
    """
    return np.asarray((k1 + 1) * counts / (np.repeat(norms, sizes) + counts))
