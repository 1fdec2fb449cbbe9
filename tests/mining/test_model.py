"""The learned model as matrices, by definition, whatever is stored."""

import numpy as np
import pytest

from klsa_search.errors import DocumentNotFound
from klsa_search.mining import expansion_rows, kernel_rows, spectrum

from .conftest import documents


@pytest.fixture(scope="module", params=["gvsm", "lsi"])
def small(request, index_of):
    ranker = "lsi" if request.param == "lsi" else "klsa"  # which stores all eigenvectors
    return index_of(documents()[:12], ranker=ranker)


def test_the_spectrum_is_that_of_the_kernel(small):
    K, found = kernel_rows(small), spectrum(small)
    largest = np.linalg.eigvalsh(K)[::-1][: len(found.eigenvalues)]
    assert K.shape == (12, 12)
    np.testing.assert_allclose(K, K.T, atol=1e-5)
    np.testing.assert_allclose(found.eigenvalues, largest, rtol=0.02)
    images = found.eigenvectors * found.eigenvalues
    np.testing.assert_allclose(K @ found.eigenvectors, images, atol=0.05 * largest[0])


def test_by_default_d_is_k_over_its_largest_eigenvalue(small):
    D = kernel_rows(small) / spectrum(small).eigenvalues[0]
    np.testing.assert_allclose(expansion_rows(small), D, atol=0.02)


def test_rows_are_those_of_the_ids_in_their_order(small):
    last, first = small.ids()[-1], small.ids()[0]
    for rows in (kernel_rows, expansion_rows):
        np.testing.assert_array_equal(rows(small, [last, first]), rows(small)[[-1, 0]])
        with pytest.raises(DocumentNotFound):
            rows(small, ["none of these"])
