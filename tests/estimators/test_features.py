"""BM25 and log-tf·idf weights as estimators."""

import numpy as np
import pytest
from scipy import sparse

from klsa_search.estimators import BM25Features, TfidfFeatures
from klsa_search.kernels.weighting import tfidf_features
from tests.support.worlds import bm25_features, counts_of, random_documents

COUNTS = counts_of(*random_documents(40, 30))
X = COUNTS.matrix


def test_features_of_training_documents_equal_those_of_the_engine():
    expected = bm25_features(COUNTS, k1=1.2, b=0.6, idf_power=1.0)
    weighted = BM25Features(k1=1.2, b=0.6, idf_power=1.0).fit_transform(X)
    assert weighted.toarray() == pytest.approx(expected.toarray())
    weighted = TfidfFeatures(unit_length=False).fit_transform(X)
    assert weighted.toarray() == pytest.approx(tfidf_features(COUNTS.matrix).toarray())


def test_new_documents_are_weighed_by_what_the_training_documents_say():
    """Average length 2, n_a = 2 of 2 and n_b = 1: w(a) = log 1.2, w(b) = log 2."""
    features = BM25Features(k1=1.0, b=0.5).fit([[1, 0], [1, 2]])
    assert features.average_length_ == 2
    assert features.idf_**2 == pytest.approx(np.log([1.2, 2]))
    # A document of 4 tokens: K = .5 + .5 · 4/2 = 1.5, sat(1) = 2/2.5, sat(3) = 6/4.5.
    expected = np.sqrt(np.log([1.2, 2])) * [2 / 2.5, 6 / 4.5]
    assert features.transform([[1, 3]])[0] == pytest.approx(expected)
    logarithmic = TfidfFeatures(unit_length=False).fit([[1, 0], [1, 2]])
    assert logarithmic.transform([[1, 3]])[0] == pytest.approx([0, np.log(4) * np.log(2)])


def test_unit_length_leaves_documents_without_weight_at_zero():
    weighted = TfidfFeatures().fit([[1, 0, 0], [1, 2, 1]]).transform([[1, 0, 0], [0, 3, 4]])
    assert np.linalg.norm(weighted, axis=1) == pytest.approx([0, 1])


def test_a_term_no_training_document_holds_has_a_finite_weight():
    counts = sparse.csr_array([[1, 0], [2, 0]])
    for features in (BM25Features(), TfidfFeatures()):
        assert np.isfinite(features.fit(counts).transform([[1, 1]])).all()


def test_stored_zeros_and_duplicates_do_not_count():
    plain = sparse.csr_array([[1.0, 0, 2], [0, 1, 0]])
    odd = sparse.csr_array(
        (np.array([1.0, 0, 1, 1, 1]), np.array([0, 1, 2, 2, 1]), np.array([0, 4, 5])), shape=(2, 3)
    )
    for make in (BM25Features, TfidfFeatures):
        assert np.array_equal(make().fit(odd).idf_, make().fit(plain).idf_)
        weighted = make().fit_transform(odd).toarray()
        assert weighted == pytest.approx(make().fit_transform(plain).toarray())
    assert odd.nnz == 5
