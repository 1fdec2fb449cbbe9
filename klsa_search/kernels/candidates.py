"""Candidates for the nearest neighbours of a document, by partial sums over truncated postings.

The postings of a feature are truncated to its largest values. Each is scaled by K(x,x)^-¼, because
otherwise long documents dominate the postings, and documents close to the mean the candidates.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klsa_search import _native

TruncatedPostings = tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.float32]]
"""Start of the postings of each feature, their documents in ascending order, and their values."""


def truncate_postings(
    features: sparse.csr_array,
    scales: npt.NDArray[np.float32],
    limit: int,
    *,
    keep_single: bool = False,
) -> TruncatedPostings:
    """Return the `limit` largest postings of each feature, times the scales of the documents.

    keep_single  whether a feature of a single document has postings
    Cost O(nnz); memory 8 bytes per entry temporarily, and 8 bytes per posting kept.
    """
    by_feature = features.tocsc()
    sizes = np.diff(by_feature.indptr)
    kept = np.where(sizes > (0 if keep_single else 1), np.minimum(sizes, limit), 0)
    starts = np.concatenate(([0], np.cumsum(kept, dtype=np.int64)))
    documents = np.empty(starts[-1], np.int32)
    values = np.empty(starts[-1], np.float32)
    _native.truncate_postings(
        by_feature.indptr.astype(np.int64, copy=False),
        by_feature.indices.astype(np.int32, copy=False),
        by_feature.data,
        *(scales, starts, documents, values),
    )
    return starts, documents, values
