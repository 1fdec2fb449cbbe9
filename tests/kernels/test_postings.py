"""Postings: worked example, definition on random counts, and files."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from klsa_search.kernels.postings import (
    BLOCK_BITS,
    DEPTHS,
    ONE_BLOCK,
    UNIT,
    Postings,
    postings_arrays,
    postings_of_arrays,
)


def counts_of(table):
    return sparse.csr_array(np.asarray(table, np.int32))


def some_counts(size, terms=5, seed=0):
    rng = np.random.default_rng(seed)
    held = rng.random((size, terms)) < np.linspace(1, 0.05, terms)
    return counts_of(np.where(held, rng.integers(1, 5, (size, terms)), 0)), rng.random(size) + 0.5


def test_postings_by_hand():
    """130 documents: three blocks of 64. The first term is in all, the second in two of them."""
    table = np.zeros((130, 3), np.int32)
    table[:, 0] = 1
    table[64, 0] = 3
    table[[5, 129], 1] = 1
    postings = Postings.of(counts_of(table), np.ones(130), 1.5, block_bits=6)
    half, three_quarters = UNIT // 2, 3 * UNIT // 4  # of f / (1 + f)
    assert (postings.size, postings.block_bits, postings.blocks) == (130, 6, 3)
    assert postings.step == 2.5 / UNIT
    assert postings.starts.tolist() == [0, 130, 132, 132]
    assert postings.entries[[5, 64, 65]].tolist() == [
        5 << 16 | half,
        three_quarters,
        1 << 16 | half,
    ]
    assert postings.run_starts.tolist() == [0, 3, 5, 5]
    assert postings.runs.tolist() == [
        [0, 63, half], [1, 63, three_quarters], [2, 1, half], [0, 0, half], [2, 0, half]
    ]  # fmt: skip
    assert postings.best.tolist() == [[three_quarters, half, half, 0], [half, 0, 0, 0], [0] * 4]
    assert postings.frequencies.tolist() == [130, 2, 0]


@given(
    size=st.sampled_from([0, 1, 9, 10, 11, 64, 65, 100, 1000, 1001]),
    seed=st.integers(0, 3),
    bits=st.sampled_from([6, 7, 9, 16]),
)
def test_postings_are_their_definition(size, seed, bits):
    counts, norms = some_counts(size, seed=seed)
    postings = Postings.of(counts, norms, 1.2, block_bits=bits)
    dense = counts.toarray()
    shares = dense / (norms[:, None] + dense) * UNIT
    row = np.zeros(size, np.int64)
    for term in range(dense.shape[1]):
        documents, saturations = postings.of_term(term)
        assert documents.tolist() == np.flatnonzero(dense[:, term]).tolist()
        assert np.abs(saturations - shares[documents, term]).max(initial=0) <= 0.5
        strongest = np.sort(saturations)[::-1].tolist()
        assert postings.best[term].tolist() == [
            strongest[depth - 1] if len(strongest) >= depth else 0 for depth in DEPTHS
        ]
        runs = postings.runs[postings.run_starts[term] : postings.run_starts[term + 1]]
        blocks = documents >> bits
        assert runs[:, 0].tolist() == np.unique(blocks).tolist()
        for block, length, most in runs.tolist():
            assert length + 1 == (blocks == block).sum()
            assert most == saturations[blocks == block].max()
        row[documents] += 1 + (70_000 * (term + 1) * saturations.astype(np.int64) >> 16)
    asked = np.arange(dense.shape[1])
    assert np.array_equal(postings.steps(asked, 70_000 * (asked + 1)), row)
    assert np.array_equal(postings.steps(asked[::-1], 70_000 * (asked[::-1] + 1)), row)
    together = postings.of_terms(1, 4)
    apart = [postings.of_term(term) for term in (1, 2, 3)]
    assert np.array_equal(together, [np.concatenate(parts) for parts in zip(*apart, strict=True)])


@pytest.mark.parametrize(
    ("size", "blocks", "bits"),
    [
        (0, 1, 16),
        (1, 1, 16),
        (ONE_BLOCK, 1, 16),
        (ONE_BLOCK + 1, 9, BLOCK_BITS),
        (1_000_000, 123, BLOCK_BITS),
    ],
)
def test_the_blocks_cover_all_documents(size, blocks, bits):
    none = sparse.csr_array((size, 1), dtype=np.int32)
    postings = Postings.of(none, np.ones(size), 1.2)
    assert (postings.blocks, postings.block_bits) == (blocks, bits)
    assert blocks << bits >= size


def test_no_posting_is_worth_nothing_and_none_overflows():
    for count, norm in product([1, 2, 10**6, 2**31 - 1], [0.0, 1e-9, 1.0, 1e9]):
        postings = Postings.of(counts_of([[count]]), np.array([norm]), 1.2)
        (saturation,) = postings.of_term(0)[1].tolist()
        assert 1 <= saturation < UNIT
        assert abs(saturation - UNIT * count / (norm + count)) <= 1
        (steps,) = postings.steps(np.array([0]), np.array([1])).tolist()
        assert steps == 1  # the product is rounded down before 1 is added


def test_postings_come_back_from_their_arrays():
    counts, norms = some_counts(300)
    postings = Postings.of(counts, norms, 1.2, block_bits=7)
    arrays = postings_arrays(postings)
    back = postings_of_arrays(arrays.__getitem__, 1.2)
    assert (back.size, back.block_bits, back.step) == (300, 7, postings.step)
    for name, array in vars(postings).items():
        assert np.array_equal(getattr(back, name), array), name
