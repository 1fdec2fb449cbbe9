"""Coverage against its definition over dense arrays."""

import numpy as np
import pytest

from klsa_search.kernels.document_kernel import DocumentKernel
from klsa_search.search.rankers.coverage import HALF, NEIGHBOURHOOD, coverage, impacts_of
from tests.support.exact_neighbours import neighbour_graph
from tests.support.worlds import bm25_features, counts_of, query_kernel, random_documents


@pytest.mark.parametrize(
    ("asked", "best"),
    [(1, range(60)), (3, [41, 3, 17, 8]), (16, range(60)), (17, [41, 3, 17, 8]), (40, [])],
)
def test_coverage_is_its_definition(asked, best):
    best = np.array(best, np.int64)
    counts = counts_of(*random_documents(60, 40))
    kernel = query_kernel(counts)
    held = np.zeros((60, 40))
    terms = np.arange(40)[-asked:]
    query = np.arange(1, asked + 1, dtype=np.float32)
    for term, times in zip(terms.tolist(), query.tolist(), strict=True):
        documents, impacts = kernel.impacts_of(term, times)
        held[documents, term] = impacts / (times * kernel.term_weights([term])[0])
    Phi = bm25_features(counts, k1=3.0, b=0.75)
    W = neighbour_graph(DocumentKernel.of(Phi, centred=True), 5).astype(np.float32)
    counting = np.isin(np.arange(60), best)[:, None]
    sat = counting * held[:, terms]
    y = sat + NEIGHBOURHOOD * W.toarray() @ sat
    expected = (y / (y + HALF)) @ (query * kernel.term_weights(terms))
    best = np.sort(best)
    impacts = impacts_of(kernel, terms, query, best)
    found = coverage(kernel, W, terms, query, (best, impacts))
    assert found.dtype == np.float32
    assert found == pytest.approx(expected, rel=1e-5)
