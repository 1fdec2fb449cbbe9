"""BM25: norms by length, idf, and the quantised mean length, of queries and of document features.

    K_d      = k1 · ((1 - b) + b · dl(d) / dl_avg)
    sat(t,d) = (k1 + 1) · f(t,d) / (K_d + f(t,d))
    w(t)     = log(1 + (N - n_t + 0.5) / (n_t + 0.5)), or another variant in queries

[KLSA eq. 3-4], with the 1 + inside the logarithm: the classic w is negative for n_t > N/2, so the
document kernel would not be positive semi-definite. `kernels.postings` stores saturations, as
integers; the sums of queries are in `kernels.query_kernel`.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from klsa_search import _native
from klsa_search.core.build_settings import IdfName

_STEP: Final = 2.0 ** (1 / 64)


def length_norms(
    lengths: npt.NDArray[np.number], average: float, *, k1: float, b: float
) -> npt.NDArray[np.float64]:
    """Return K_d: (N,), of lengths dl(d) and the mean length of the collection."""
    return np.asarray(k1 * ((1 - b) + b * lengths / average))


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
    return _native.idf_of(np.asarray(frequencies, np.float64), documents, variant)


def average_length(lengths: npt.NDArray[np.number]) -> float:
    """Return dl_avg of lengths (N,); see `mean_length`."""
    return mean_length(lengths.sum(), len(lengths))


def quantised_length(average: float) -> float:
    """Return dl_avg rounded to a grid of 1/64 octave, about 1%: the nearest 2^(i/64).

    A build saturates by it. It depends on the documents only, not on their history.
    """
    return float(2.0 ** (np.rint(np.log2(average) * 64) / 64))


def length_step(quantised: float) -> int:
    """Return i of a length 2^(i/64) of the grid."""
    return int(np.rint(np.log2(quantised) * 64))


def live_length(built: float, mean: float) -> float:
    """Return the quantised length that saturates live documents with this mean length.

    built  that of the build, which stays until the mean is more than one step away
    mean   0 if no document has a word
    It depends on the build and the live documents alone, so an index has the same scores in any
    number of partitions, and after any order of writes.
    """
    if mean <= 0 or built / _STEP <= mean <= built * _STEP:
        return built
    return quantised_length(mean)


def mean_length(tokens: float, documents: int) -> float:
    """Return dl_avg of documents with so many tokens in all; 1 if all are empty."""
    return float(tokens / documents) if tokens else 1.0
