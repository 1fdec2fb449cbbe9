"""Nearest neighbours found in parts equal those found at once, with any limits."""

from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

from klsa_search.kernels import nearest_neighbours
from klsa_search.kernels.document_kernel import DocumentKernel
from klsa_search.kernels.nearest_neighbours import (
    KnnParams,
    KnnPart,
    nearest_rows,
    nearest_rows_in_parts,
    posting_scales,
    truncate_postings,
)
from tests.support.worlds import bm25_features, counts_of, random_documents

N = 300


SPARSE = KnnParams(2, 2, 4, 3)
"""So few postings that sums of all documents are not looked through; in small parts they are."""


@pytest.mark.parametrize(
    "params", [KnnParams(), KnnParams(40, 5, 100, 12), KnnParams(7, 2, 1, 1), SPARSE]
)
def test_parts_change_no_bit(instruction_set, params, monkeypatch):
    counts = counts_of(*random_documents(N, 120, seed=8))
    Phi = bm25_features(counts, k1=3.0, b=0.75, idf_power=1.0, pairs=0.5)
    kernel = DocumentKernel.of(Phi, centred=True, normalised=True)
    whole = truncate_postings(kernel.features, posting_scales(kernel), params.documents_per_feature)
    expected = nearest_rows(kernel, 9, params=params)
    monkeypatch.setattr(nearest_neighbours, "_CHUNK", 16)
    monkeypatch.setattr(nearest_neighbours, "_CHUNKS", 1)  # so parts are read several times
    for edges in ([0, 300], [0, 0, 77, 150, 299, 300]):
        sizes = np.diff(edges)
        opened = [partial(part_of, kernel, whole, *each) for each in pairwise(edges)]
        rows = [
            nearest_rows_in_parts(opened, sizes, i, 9, params=params) for i in range(len(opened))
        ]
        found = sparse.vstack(rows, format="csr")
        for name in ("indptr", "indices", "data"):
            assert np.array_equal(getattr(found, name), getattr(expected, name))


def part_of(kernel, postings, first, last):
    some = DocumentKernel(kernel.features[first:last], kernel.scales[first:last], kernel.mean)
    starts, documents, values = postings
    here = (documents >= first) & (documents < last)
    return KnnPart.of(some, KnnParams())._replace(
        first=first,
        posting_starts=np.concatenate(([0], np.cumsum(here)))[starts],
        posting_documents=documents[here] - np.int32(first),
        posting_values=values[here],
    )
