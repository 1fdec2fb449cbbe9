"""Weighting of document features: from counts to the features Φ of a document kernel K = ΦΦᵀ.

    φ(d)_t = weight(n_t, N) · local(f(t,d), norm(dl(d), dl_avg))

with the document frequency n_t of N documents, and the length dl(d). It depends on a document and
on statistics of the collection, so documents written later are weighted by those of the build.

With BM25, φ(d)_t = w(t)^p · sat(t,d), in the notation of `kernels.bm25`. Latent semantic indexing
weights by log-tf-idf, log(1 + f) · log(N / n_t) [LSK]; plug-ins have further weightings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from klsa_search.core.build_settings import KernelSettings
from klsa_search.core.plugins import load_plugin
from klsa_search.errors import PluginFailed
from klsa_search.kernels.bm25 import average_length, idf_of, length_norms
from klsa_search.kernels.counts import TermCounts

if TYPE_CHECKING:
    from scipy import sparse

_Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class FeatureWeighting:
    """A weighting of document features, as three functions of arrays; see above.

    norm    lengths dl(d) (n,) and their mean dl_avg → (n,), by which counts are normalised
    local   counts f(t,d) (m,), all above 0, and the norms of their documents (m,) → (m,), finite
            and not below 0
    weight  document frequencies n_t (V,), from 0, and the number N of documents → (V,), finite
            and above 0

    >>> tf_idf = FeatureWeighting(
    ...     norm=lambda lengths, mean: np.ones(len(lengths)),
    ...     local=lambda counts, norms: np.log1p(counts),
    ...     weight=lambda frequencies, documents: np.log1p(documents / (frequencies + 1)),
    ... )
    >>> tf_idf.weight(np.array([0, 3]), 3).round(2).tolist()
    [1.39, 0.56]
    """

    norm: Callable[[npt.NDArray[np.number], float], _Floats]
    local: Callable[[npt.NDArray[np.number], _Floats], _Floats]
    weight: Callable[[npt.NDArray[np.number], int], _Floats]

    def local_weights(
        self,
        counts: npt.NDArray[np.number],
        sizes: npt.NDArray[np.integer],
        lengths: npt.NDArray[np.number],
        average: float,
    ) -> _Floats:
        """Return local(f, norm) of the counts of consecutive documents: (nnz,).

        sizes    (n,) number of counts of each document
        lengths  (n,) dl(d)
        average  dl_avg of the collection
        """
        return self.local(counts, np.repeat(self.norm(lengths, average), sizes))

    def features(
        self,
        matrix: sparse.csr_array,
        lengths: npt.NDArray[np.number],
        average: float,
        weights: _Floats,
    ) -> sparse.csr_array:
        """Return features of counts (n, V), lengths (n,) and column weights (V,). Cost O(nnz)."""
        weighted = matrix.astype(np.float64)
        sizes = np.diff(weighted.indptr)
        weighted.data = self.local_weights(weighted.data, sizes, lengths, average)
        weighted.data *= weights[weighted.indices]
        return weighted

    def of_columns(self, matrix: sparse.csr_array) -> _Floats:
        """Return weight(n_t, N) of counts (N, V) without stored zeros: (V,). Cost O(nnz)."""
        documents, columns = matrix.shape
        return self.weight(np.bincount(matrix.indices, minlength=columns), documents)

    def document_features(self, counts: TermCounts, pairs: float) -> sparse.csr_array:
        """Return Φ of a collection: (N, V) sparse float64, or (N, V + P) with pairs.

        pairs  weight of adjacent pairs of terms; above 0 they follow the V terms as columns,
               weighted by their own document frequency
        """
        from scipy import sparse

        lengths = counts.lengths
        average = average_length(lengths)
        terms = self.features(counts.matrix, lengths, average, self.of_columns(counts.matrix))
        if pairs == 0:
            return terms
        weights = pairs * self.of_columns(counts.pairs)
        both = terms, self.features(counts.pairs, lengths, average, weights)
        return sparse.csr_array(sparse.hstack(both, format="csr"))


def bm25_weighting(*, k1: float, b: float, idf_power: float = 0.5) -> FeatureWeighting:
    """Return the weighting φ(d)_t = w(t)^p · sat(t,d) of document features.

    idf_power  p; 0.5 in the published kernel [KLSA eq. 4]
    """
    return FeatureWeighting(
        norm=lambda lengths, average: length_norms(lengths, average, k1=k1, b=b),
        local=lambda counts, of_counts: np.asarray((k1 + 1) * counts / (of_counts + counts)),
        weight=lambda frequencies, documents: idf_of(frequencies, documents) ** idf_power,
    )


TFIDF: Final = FeatureWeighting(
    norm=lambda lengths, average: np.ones(len(lengths)),
    local=lambda counts, norms: np.log1p(counts),
    weight=lambda frequencies, documents: np.log(
        max(documents, 1) / np.where(frequencies > 0, frequencies, max(documents, 1))
    ),
)
"""log(1 + f(t,d)) · log(N / n_t), with 0 as the weight of a term in no document."""


def feature_weighting(settings: KernelSettings) -> FeatureWeighting:
    """Return the weighting that settings name: BM25, or that of a plug-in, with checked results.

    PluginFailed, also when it is used.
    """
    if settings.kernel == "bm25":
        return bm25_weighting(k1=settings.kernel_k1, b=settings.b, idf_power=settings.idf_power)
    name = settings.kernel
    weighting = load_plugin("kernel", name)
    if not isinstance(weighting, FeatureWeighting):
        raise PluginFailed(
            f"kernel `{name}` is {weighting!r}; it must be a FeatureWeighting", field="kernel"
        )
    return FeatureWeighting(
        norm=_checked(name, "norm", weighting.norm, -np.inf),
        local=_checked(name, "local", weighting.local, 0.0),
        weight=_checked(name, "weight", weighting.weight, np.finfo(np.float64).tiny),
    )


def _checked(
    name: str, part: str, function: Callable[..., Any], least: float
) -> Callable[..., npt.NDArray[np.float64]]:
    """Return a function whose results are finite, not below a limit, and as long as its input."""

    def checked(values: npt.NDArray[np.number], other: Any) -> npt.NDArray[np.float64]:
        try:
            result = np.asarray(function(values, other), np.float64)
        except Exception as error:  # code of another package may raise anything
            raise PluginFailed(
                f"kernel `{name}`: {part} failed ({type(error).__name__}: {error}); correct it",
                field="kernel",
            ) from error
        if result.shape != values.shape or not ((result >= least) & np.isfinite(result)).all():
            limit = {"local": ", not below 0", "weight": ", above 0"}.get(part, "")
            raise PluginFailed(
                f"kernel `{name}`: {part} returned an array of shape {result.shape}, or numbers "
                f"outside its limits; it must return {values.shape[0]:,} finite numbers{limit}",
                field="kernel",
            )
        return result

    return checked


def tfidf_features(matrix: sparse.csr_array) -> sparse.csr_array:
    """Return log-tf-idf features of counts (N, V) without stored zeros: (N, V). Cost O(nnz)."""
    return TFIDF.features(matrix, np.zeros(matrix.shape[0]), 1.0, TFIDF.of_columns(matrix))


def tfidf_posting_weights(matrix: sparse.csr_array) -> npt.NDArray[np.float32]:
    """Return `tfidf_features` times the query's idf, in the order of postings: (nnz,) float32.

    With query weights log(1 + f(t,q)) their sum is the inner product of the two vectors.
    """
    features = tfidf_features(matrix)
    features.data *= TFIDF.of_columns(matrix)[features.indices]
    by_term = features.tocsc()
    by_term.sort_indices()
    return np.asarray(by_term.data, np.float32)
