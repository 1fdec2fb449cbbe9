"""Nearest neighbours against all rows of K."""

import numpy as np
import pytest
from scipy import sparse

from klsa_search import _native
from klsa_search.kernels.document_kernel import DocumentKernel
from klsa_search.kernels.nearest_neighbours import KnnParams, nearest_rows
from tests.support.exact_neighbours import largest_of_rows
from tests.support.worlds import bm25_features, counts_of, random_documents

SHAPES = [(False, False), (True, False), (False, True), (True, True)]
ALL = KnnParams(
    documents_per_feature=10_000, features=10_000, postings=10_000_000, candidates=10_000
)


def kernel_of(documents, *, centred=True, normalised=True):
    Phi = bm25_features(counts_of(*documents), k1=3.0, b=0.75, idf_power=1.0, pairs=0.5)
    return DocumentKernel.of(Phi, centred=centred, normalised=normalised)


@pytest.mark.parametrize(("centred", "normalised"), SHAPES)
@pytest.mark.parametrize("entries", [7, 500])
def test_with_all_effort_rows_are_those_of_k(centred, normalised, entries):
    kernel = kernel_of(random_documents(300, 60), centred=centred, normalised=normalised)
    rows = nearest_rows(kernel, entries, params=ALL).toarray()
    K = kernel.explicit()
    expected = largest_of_rows(K, entries).toarray()
    # Documents without a common feature are never looked at; rounding may swap equal entries.
    apart = (kernel.features @ kernel.features.T).toarray() == 0
    scale = np.abs(K).max()
    assert np.abs(np.where(rows > 0, rows - K, 0)).max() < 1e-5 * scale
    if entries < len(K):
        assert rows.sum(axis=1) == pytest.approx(expected.sum(axis=1), rel=1e-4, abs=1e-4 * scale)
    else:
        assert np.abs(np.where(apart, 0, rows - expected)).max() < 1e-5 * scale
    assert ((rows > 0).sum(axis=1) <= entries).all()


def test_the_usual_effort_finds_nearly_all_of_a_few_thousand_documents():
    kernel = kernel_of(random_documents(1500, 2000, seed=4))
    chosen = np.arange(0, 1500, 15)
    found = nearest_rows(kernel, 20)[chosen]
    exact = largest_of_rows(kernel.rows(chosen), 20)
    assert found.sum() > 0.95 * exact.sum()


def test_instruction_sets_change_no_bit(instruction_set):
    kernel = kernel_of(random_documents(900, 300))
    rows = nearest_rows(kernel, 20, params=KnnParams(candidates=50))
    _native.select_instruction_set("baseline")
    expected = nearest_rows(kernel, 20, params=KnnParams(candidates=50))
    assert np.array_equal(rows.indptr, expected.indptr)
    assert np.array_equal(rows.indices, expected.indices)
    assert np.array_equal(rows.data, expected.data)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_change_no_bit(threads):
    kernel = kernel_of(random_documents(700, 300))
    low = KnnParams(documents_per_feature=50, features=5, postings=200, candidates=30)
    one = nearest_rows(kernel, 10, threads=1, params=low)
    other = nearest_rows(kernel, 10, threads=threads, params=low)
    assert np.array_equal(one.indptr, other.indptr)
    assert np.array_equal(one.indices, other.indices)
    assert np.array_equal(one.data, other.data)


def test_little_effort_keeps_true_values_and_the_document_itself():
    kernel = kernel_of(random_documents(300, 100))
    low = KnnParams(documents_per_feature=20, features=3, postings=40, candidates=12)
    found = nearest_rows(kernel, 8, params=low)
    rows, K = found.toarray(), kernel.explicit()
    assert np.abs(rows - K)[rows > 0].max() < 1e-5 * K.max()
    assert (rows.diagonal() > 0).all()


@pytest.mark.parametrize("documents", [[], [""], ["", ""], ["a b"], ["a b", "a b"]])
def test_documents_without_contrast_have_empty_rows(documents):
    found = nearest_rows(kernel_of(documents), 3)
    assert found.nnz == 0
    assert found.shape == (len(documents), len(documents))


def test_progress_comes_to_its_end():
    calls = []
    nearest_rows(kernel_of(random_documents(600, 60)), 6, progress=lambda *call: calls.append(call))
    done = [done for _, done, _ in calls]
    assert done == sorted(done)
    assert done[-1] == 600
    assert {(phase, total) for phase, _, total in calls} == {("neighbours", 600)}


def test_single_precision_features_give_the_same_rows():
    kernel = kernel_of(random_documents(300, 60))
    single = DocumentKernel(kernel.features.astype(np.float32), kernel.scales, kernel.mean)
    one, other = (nearest_rows(some, 10, params=ALL) for some in (kernel, single))
    assert other.sum(axis=1) == pytest.approx(one.sum(axis=1), rel=1e-4)


def test_mean_documents_are_found_once_or_not_at_all():
    # The first 300 are the mean of all: K has nothing for them, and their postings count 0.
    features = np.vstack((np.ones((300, 40)), np.full((2, 40), 1.5), np.full((2, 40), 0.5)))
    kernel = DocumentKernel.of(sparse.csr_array(features), centred=True)
    found = nearest_rows(kernel, 50)
    assert np.flatnonzero(found.toarray()[302]).tolist() == [302, 303]
    assert found.has_canonical_format  # no document twice
    assert found.indices.dtype == np.int32  # no second copy of them in 8 bytes
