"""Single entries of the document kernel, whatever layout an index has."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klsa_search.expansion.cut import CutExpansion
from klsa_search.expansion.packing import unpack_rows
from klsa_search.search.snapshot import Snapshot

Numbers = npt.NDArray[np.float64]


def kernel_diagonal(snapshot: Snapshot) -> Numbers:
    """K(d, d): (N,). Where D is cut it is stored; else O(nnz) the first time."""
    if snapshot.cut is not None:
        return np.asarray(snapshot.cut.scales[:, 1], np.float64)
    return snapshot.kernel.diagonal


def kernel_entries(snapshot: Snapshot, left: npt.NDArray[Any], right: npt.NDArray[Any]) -> Numbers:
    """K(left_i, right_i): (n,), for positions (n,) each. Cost: the features of those documents."""
    documents, places = np.unique(np.concatenate((left, right)), return_inverse=True)
    features, scales, towards, mean_square = _documents(snapshot, documents)
    a, b = places[: len(left)], places[len(left) :]
    plain = np.asarray(features[a].multiply(features[b]).sum(axis=1)).ravel()
    return np.asarray(
        plain
        - towards[a] * scales[b]
        - scales[a] * towards[b]
        + scales[a] * scales[b] * mean_square
    )


def _documents(
    snapshot: Snapshot, documents: npt.NDArray[Any]
) -> tuple[sparse.csr_array, Numbers, Numbers, float]:
    """SΦ, S and SΦμ of some documents, and ‖μ‖²."""
    if snapshot.cut is not None:
        facts = snapshot.cut.facts[documents].astype(np.float64)
        features = _cut_features(snapshot.cut, documents)
        return features, facts[:, 1], facts[:, 2], snapshot.mean_square
    kernel = snapshot.kernel
    features = sparse.csr_array(kernel.features[documents], dtype=np.float64)
    return features, kernel.scales[documents], kernel.towards_mean[documents], kernel.mean_square


def _cut_features(cut: CutExpansion, documents: npt.NDArray[Any]) -> sparse.csr_array:
    begins, ends = cut.starts[documents], cut.starts[documents + 1]
    starts = np.concatenate(([0], np.cumsum(ends - begins)))
    held = [cut.features[:0]]
    held += [cut.features[b:e] for b, e in zip(begins.tolist(), ends.tolist(), strict=True)]
    features = unpack_rows(
        starts, np.concatenate(held), cut.facts[documents, 0], len(cut.mean)
    ).astype(np.float64)
    features.sort_indices()
    return features
