"""The graph of nearest documents, computed in blocks of rows."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from klsa_search.kernels import bm25
from klsa_search.kernels.document_kernel import DocumentKernel
from klsa_search.kernels.neighbour_graph import neighbour_graph
from tests.support.worlds import counts_of, random_documents


@pytest.mark.parametrize("entries", [1, 60, 150, 10_000])
def test_the_size_of_a_block_changes_no_bit(monkeypatch, entries):
    Phi = bm25.document_features(counts_of(*random_documents(60)), k1=3.0, b=0.75)
    kernel = DocumentKernel.of(Phi, centred=True, normalised=True)
    whole = neighbour_graph(kernel, 5)
    monkeypatch.setattr(sys.modules["klsa_search.kernels.neighbour_graph"], "_ENTRIES", entries)
    parts = neighbour_graph(kernel, 5)
    assert np.array_equal(parts.indptr, whole.indptr)
    assert np.array_equal(parts.indices, whole.indices)
    assert np.array_equal(parts.data, whole.data)
