"""The document kernel in parts: statistics of all documents, then the rows of each shard.

Sums are passed from shard to shard, so they are in document order. The rows of a shard are written
twice: as a whole, and by ranges of features, so that a step for a range reads no other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klsa_search.cluster.work import StepResult, Work, map_array, save, write_facts
from klsa_search.core.array_types import narrow_indptr
from klsa_search.core.compiling import compiled
from klsa_search.kernels.document_kernel import DocumentKernel
from klsa_search.kernels.nearest_neighbours import posting_scales
from klsa_search.kernels.sums import add_to_columns
from klsa_search.lowrank.products import WIDTH, centring_of, find_edge
from klsa_search.lowrank.sparse_expansion import ranks_of

Part = Mapping[str, Any]
"""A shard: its `features` and `kernel`, its number of `documents`, and its `first` doc id."""


def parts_of(
    work: Work,
    shards: Sequence[StepResult],
    sizes: Sequence[int],
    *,
    columns: int,
    centred: bool,
    normalised: bool,
    ranges: int,
) -> tuple[list[Part], StepResult]:
    """Compute the parts of the kernel, and mean, ranks and ranges of the features of all parts.

    Cost O(nnz), and O(F) for each shard.
    """
    documents = sum(sizes)
    totals: list[StepResult] = []
    for shard in shards:
        before = totals[-1] if totals else None
        totals.append(work.one(_totals, shard=shard, before=before, columns=columns))
    whole = work.one(_whole, totals=totals[-1], documents=documents, centred=centred, ranges=ranges)
    kernels = work.make(
        _kernel,
        *(
            {"shard": shard, "whole": whole, "normalised": normalised, "documents": documents}
            for shard in shards
        ),
    )
    work.empty(*totals)
    firsts = np.cumsum([0, *sizes]).tolist()
    parts: list[Part] = [
        {"features": shard, "kernel": kernel, "first": first, "documents": size}
        for shard, kernel, first, size in zip(shards, kernels, firsts, sizes, strict=False)
    ]
    return parts, whole


def rows_of(part: Part, columns: int) -> sparse.csr_array:
    """Return the scaled features of a part, memory-mapped."""
    kernel: StepResult = part["kernel"]
    arrays = map_array(kernel, "weights"), map_array(part["features"], "features_columns")
    return sparse.csr_array(
        (*arrays, map_array(kernel, "starts")), shape=(part["documents"], columns)
    )


def kernel_of(part: Part, whole: StepResult) -> DocumentKernel:
    """Return the kernel of the documents of a part."""
    mean = map_array(whole, "mean")
    return DocumentKernel(rows_of(part, len(mean)), map_array(part["kernel"], "scales"), mean)


def range_of(part: Part, number: int) -> tuple[npt.NDArray[Any], ...]:
    """Return starts, columns (from 0) and weights of a part in a range of features."""
    kernel: StepResult = part["kernel"]
    starts, columns, weights = (
        map_array(kernel, f"range{number}_{name}") for name in ("starts", "columns", "weights")
    )
    return starts, columns, weights


def _features(shard: StepResult, columns: int) -> sparse.csr_array:
    starts = narrow_indptr(map_array(shard, "features_starts"))
    entries = map_array(shard, "features_weights"), map_array(shard, "features_columns")
    return sparse.csr_array((*entries, starts), shape=(len(starts) - 1, columns))


def _totals(out: Path, *, shard: StepResult, before: StepResult | None, columns: int) -> None:
    """Step: sums and frequencies of the features up to the last document of a shard."""
    Phi = _features(shard, columns)
    sums, frequencies = np.zeros(columns), np.zeros(columns, np.int64)
    if before is not None:
        sums[:], frequencies[:] = map_array(before, "sums"), map_array(before, "frequencies")
    add_to_columns(Phi, sums)
    frequencies += np.bincount(Phi.indices, minlength=columns)
    save(out, sums=sums, frequencies=frequencies)


def _whole(out: Path, *, totals: StepResult, documents: int, centred: bool, ranges: int) -> None:
    """Step: mean and ranks of the features, and ranges of them with about equal memory."""
    sums, frequencies = map_array(totals, "sums"), map_array(totals, "frequencies")
    mean = sums / documents if centred and documents else np.zeros(len(sums))
    # 8 bytes for each entry, and 4 for each feature and column of a block.
    weight = np.cumsum(frequencies + WIDTH // 2)
    last = weight[-1] if len(weight) else 0
    inner = np.searchsorted(weight, np.arange(1, ranges) * last / ranges)
    edges = np.concatenate(([0], inner, [len(sums)])).astype(np.int64)
    save(out, mean=mean, ranks=ranks_of(frequencies), edges=edges)


def _kernel(
    out: Path, *, shard: StepResult, whole: StepResult, normalised: bool, documents: int
) -> None:
    """Step: the scaled rows of a shard, and the values of each document."""
    mean, edges = map_array(whole, "mean"), map_array(whole, "edges")
    kernel = DocumentKernel.of_sample(
        _features(shard, len(mean)), mean, normalised=normalised, documents=documents
    )
    features = kernel.features
    save(
        out,
        starts=features.indptr,
        weights=features.data,
        scales=kernel.scales,
        centring=centring_of(kernel),
        diagonal=kernel.diagonal,
        posting_scales=posting_scales(kernel),
    )
    write_facts(out, mean_square=kernel.mean_square, edges=edges.tolist())
    starts, columns, weights = features.indptr, features.indices, features.data
    begins, ends = starts[:-1], np.empty_like(starts[:-1])
    for number, (first, last) in enumerate(pairwise(edges)):
        find_edge(starts, columns, last, ends)
        of_range = narrow_indptr(np.concatenate(([0], np.cumsum(ends - begins, dtype=np.int64))))
        some = np.empty(of_range[-1], columns.dtype), np.empty(of_range[-1], weights.dtype)
        _gather(begins, ends, columns, weights, first, *some)
        for name, array in zip(("starts", "columns", "weights"), (of_range, *some), strict=True):
            save(out, **{f"range{number}_{name}": array})
        begins, ends = ends, np.empty_like(ends)


@compiled
def _gather(
    begins: Any, ends: Any, columns: Any, weights: Any, first: int, some: Any, of_some: Any
) -> None:
    """Concatenate the entries between `begins` and `ends` of each row."""
    at = 0
    for row in range(len(begins)):
        for p in range(begins[row], ends[row]):
            some[at], of_some[at] = columns[p] - first, weights[p]
            at += 1
