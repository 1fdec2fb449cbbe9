"""Masks: sets of documents as bits, made in any way."""

from functools import partial

import numpy as np
import pytest

from klsa_search.search.engine.mask import PART, Mask


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_a_mask_is_of_the_documents_it_was_made_of(share):
    for size in (0, 1, 7, 63, 64, 65, 1000, PART - 1, PART, PART + 1, 2 * PART + 9):
        rng = np.random.default_rng(size)
        allowed, others = rng.random((2, size)) < [[share], [0.5]]
        by_ranges = Mask.from_ranges(partial(_range, allowed), size)
        for mask in (Mask(allowed), by_ranges):
            assert mask.size == np.count_nonzero(allowed)
            assert mask.allowed.dtype == np.bool_
            assert np.array_equal(mask.allowed, allowed)
            assert np.array_equal(np.unpackbits(mask.words.view(np.uint8)).sum(), mask.size)
            both = mask & Mask(others)
            assert np.array_equal(both.allowed, allowed & others)
            assert both.size == np.count_nonzero(allowed & others)


def _range(allowed, first, after):
    return allowed[first:after]


def test_changing_an_array_does_not_change_its_mask():
    allowed = np.ones(70, np.bool_)
    mask = Mask(allowed)
    allowed[:] = False
    assert mask.allowed.all()
