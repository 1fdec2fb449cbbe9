"""BM25 weights of counts: the features Φ of the document kernel, idf and saturation.

    K_d      = k1 · ((1 - b) + b · dl(d) / dl_avg)
    sat(t,d) = (k1 + 1) · f(t,d) / (K_d + f(t,d))
    w(t)     = log(1 + (N - n_t + 0.5) / (n_t + 0.5)), or another variant in queries

[KLSA eq. 3-4], with the 1 + inside the logarithm: the classic w is negative for n_t > N/2, so the
document kernel would not be positive semi-definite.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.core.config import IdfName
from klsa_search.kernels.counts import TermCounts

if TYPE_CHECKING:
    from scipy import sparse

_MIN_IDF: Final = 2.0**-16
_STEP: Final = 2.0 ** (1 / 64)


def norms(
    lengths: npt.NDArray[np.number], average: float, *, k1: float, b: float
) -> npt.NDArray[np.float64]:
    """Return K_d: (N,), of lengths dl(d) and the mean length of the collection."""
    return np.asarray(k1 * ((1 - b) + b * lengths / average))


def document_features(
    counts: TermCounts, *, k1: float, b: float, idf_power: float = 0.5, pairs: float = 0.0
) -> sparse.csr_array:
    """Return Φ: (N, V) sparse float64 with φ(d)_t = w(t)^p · sat(t,d), and K = ΦΦᵀ.

    idf_power  p; 0.5 in the published kernel [KLSA eq. 4]
    pairs      weight of adjacent pairs of terms; above 0 they follow the V terms as columns,
               saturated and weighted by their own document frequency
    """
    lengths = counts.lengths
    weighting = FeatureWeighting(k1, b, average_length(lengths))
    terms = weighting.features(counts.matrix, lengths, idf(counts.matrix) ** idf_power)
    if pairs == 0:
        return terms
    return weighting.append_pairs(
        terms, counts.pairs, lengths, pairs * idf(counts.pairs) ** idf_power
    )


class FeatureWeighting(NamedTuple):
    """Weights counts of some documents by statistics of the collection.

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
        """Return sat(t, d) times column weights: (n, V), (n,), (V,) → (n, V). Cost O(nnz)."""
        weighted = saturated(matrix, lengths, self.average, self.k1, self.b)
        weighted.data *= weights[weighted.indices]
        return weighted

    def append_pairs(
        self,
        terms: sparse.csr_array,
        pairs: sparse.csr_array,
        lengths: npt.NDArray[np.number],
        weights: npt.NDArray[np.float64],
    ) -> sparse.csr_array:
        """Append the features of pairs to those of terms: (n, V), (n, P), (P,) → (n, V + P)."""
        from scipy import sparse

        both = terms, self.features(pairs, lengths, weights)
        return sparse.csr_array(sparse.hstack(both, format="csr"))


def idf(matrix: sparse.csr_array) -> npt.NDArray[np.float64]:
    """Return w(t) of counts (N, V) without stored zeros: (V,). Cost O(nnz)."""
    documents, columns = matrix.shape
    return idf_of(np.bincount(matrix.indices, minlength=columns), documents)


def idf_of(
    frequencies: npt.NDArray[np.number], documents: int, variant: IdfName = "lucene"
) -> npt.NDArray[np.float64]:
    """Return w(t) of terms with document frequencies n_t: (V,), above 0, so that all matches score.

    lucene     ln(1 + (N - n + 0.5) / (n + 0.5)), the published one [KLSA eq. 3]
    robertson  ln((N - n + 0.5) / (n + 0.5)) [Robertson et al. 1994]; almost 0 if more than half of
               the documents contain the term
    atire      ln(N / n) [Trotman, Jia, Crane 2012]; a term in no document weighs as in one
    Compared in [Kamphuis et al. 2020].
    """
    if variant == "atire":
        ratio = max(documents, 1) / np.maximum(frequencies, 1)
        return np.asarray(np.maximum(np.log(ratio), _MIN_IDF))
    odds = (documents - frequencies + 0.5) / (frequencies + 0.5)
    if variant == "robertson":
        return np.asarray(np.maximum(np.log(odds), _MIN_IDF))
    return np.asarray(np.log1p(odds))


def average_length(lengths: npt.NDArray[np.number]) -> float:
    """Return dl_avg of lengths (N,); see `mean_length`."""
    return mean_length(lengths.sum(), len(lengths))


def mean_length(tokens: float, documents: int) -> float:
    """Return dl_avg of documents with so many tokens in all; 1 if all are empty."""
    return float(tokens / documents) if tokens else 1.0


def quantised_length(average: float) -> float:
    """Return dl_avg rounded to a grid of 1/64 octave, about 1%: the nearest 2^(i/64).

    A build saturates by it. It depends on the documents only, not on their history.
    """
    return float(2.0 ** (np.rint(np.log2(average) * 64) / 64))


def length_step(quantised: float) -> int:
    """Return i of a length 2^(i/64) of the grid."""
    return int(np.rint(np.log2(quantised) * 64))


def next_quantised_length(quantised: float, averages: npt.NDArray[np.float64]) -> float:
    """Return the quantised length after a sequence of writes.

    quantised  the length before them
    averages   (n,) the mean length after each write, NaN if no document has a term
    It moves to the nearest step of the grid when the mean is more than one step away, so a mean
    that oscillates between two steps moves it once, and saturations rarely change. It depends on
    the build and the order of the writes, not on how they are grouped.
    """
    place = 0
    while True:
        rest = averages[place:]
        moves = np.flatnonzero((rest > quantised * _STEP) | (rest < quantised / _STEP))
        if not len(moves):
            return quantised
        place += int(moves[0])
        quantised = quantised_length(float(averages[place]))


def saturated(
    matrix: sparse.csr_array, lengths: npt.NDArray[np.number], average: float, k1: float, b: float
) -> sparse.csr_array:
    """Return sat(t, d) of counts (N, V), lengths (N,) and the mean length of the collection."""
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
    """Return sat(t, d) of the counts of consecutive documents: (nnz,).

    sizes  (N,) number of counts of each document
    norms  (N,) K_d
    """
    return np.asarray((k1 + 1) * counts / (np.repeat(norms, sizes) + counts))
