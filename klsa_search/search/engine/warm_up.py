"""Compile what searching needs, without an index."""

from __future__ import annotations

from typing import Final

import numpy as np

from klsa_search.kernels.postings import DEPTHS, Postings
from klsa_search.kernels.query_kernel import QueryKernel
from klsa_search.lowrank.sparse_expansion import (
    ENTRIES,
    SparseExpansion,
    document_vector_width,
    term_width,
)
from klsa_search.search.engine.engine import Bm25Engine, KlsaEngine
from klsa_search.search.engine.seeds import KlsaParams
from klsa_search.search.engine.shared_seeds import SeedRows, shared_seeds

_PARAMS: Final = KlsaParams(1, 1, 0.5, 0.5, 1.0, 0.0, 0.0, 1.0, 1.0, 3.0, True, 1.0, 0.0)


def compile_search() -> None:
    """Compile the query engine by a query to an index of one document, with read-only arrays.

    Some 20 s of one processor, or 0.3 s if compiled before.
    """
    kernel = _kernel()
    Bm25Engine(kernel).top([[0]], 1)
    _engine(kernel).top([[0]], 1, _PARAMS)
    kernel.steps(np.zeros(1, np.int64), np.ones(1, np.float32))


def compile_shared_seeds() -> None:
    """Compile the query engine of partitions: see `search.engine.shared_seeds`."""
    kernel = _kernel()
    engine = _engine(kernel)
    found = engine.seeds([0], _PARAMS)
    assert found is not None  # the document has the word
    none = np.zeros((1, 1), np.int64)
    rows = SeedRows(none, none.astype(np.uint8), np.zeros((1, 2), np.float32), 1, 1)
    (shared,) = shared_seeds([found._replace(rows=rows)], _PARAMS, kernel.postings.step)
    assert shared is not None
    engine.top_shared([0], 1, _PARAMS, shared)


def _kernel() -> QueryKernel:
    """Return the query kernel of an index of one document with one word."""
    postings = Postings(
        1.2,
        np.array([1, 16]),
        np.array([0, 1]),
        np.array([1], np.uint32),
        np.array([0, 1]),
        np.array([[0, 0, 1]], np.uint16),
        np.ones((1, len(DEPTHS)), np.uint16),
        np.array([1]),
    )
    for array in (postings.starts, postings.entries, postings.run_starts, postings.runs):
        array.flags.writeable = False
    return QueryKernel.of(postings)


def _engine(kernel: QueryKernel) -> KlsaEngine:
    """Return the engine of the default ranking of that index."""
    expansion = SparseExpansion(
        np.zeros((1, ENTRIES), np.uint32),
        np.zeros((1, 2), np.float32),
        np.zeros(2, np.int64),
        np.zeros(0, np.uint32),
        np.zeros(1, np.float32),
        np.zeros((1, document_vector_width(1)), np.int8),
        np.zeros((1, term_width(1)), np.int8),
    )
    return KlsaEngine(kernel, expansion, 1, 1, small=False)
