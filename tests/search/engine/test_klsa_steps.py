"""Steps of KlsaEngine against plain code, with blocks of any size."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klsa_search import build, open_index
from klsa_search.core.compiling import compiled
from klsa_search.kernels.postings import Postings
from klsa_search.kernels.segments import Segments
from klsa_search.lowrank.coverage import BEST, NEIGHBOURHOOD
from klsa_search.lowrank.expansion_matrix import top_z
from klsa_search.search.engine.bm25 import SCAN_COST, find_posting, search
from klsa_search.search.engine.candidates import score_coverage
from klsa_search.search.engine.engine import KlsaEngine
from klsa_search.search.engine.klsa import search_expanded
from klsa_search.search.engine.scan import LANES, find_threshold, indices_above
from klsa_search.search.engine.scores import select_slots
from klsa_search.search.rankers.klsa import klsa_params
from tests.support.worlds import as_if_large, random_documents

from .segmenting import matrix_of
from .single_query import top_of


@compiled
def coverage_by(arrays, workspace, stride, best, slots, count, neighbours, found):
    score_coverage(arrays, workspace, stride, best, slots, count, neighbours, found)


@pytest.mark.parametrize("terms", [8, 24])
@pytest.mark.parametrize("neighbours", [0, 7, 20])
def test_terms_are_covered_together_as_one_by_one(index, terms, neighbours):
    rng, engine = np.random.default_rng(neighbours), index.arrays.klsa_engine
    workspace = engine._workspace(100, 20, 1)._replace(near=np.zeros(21, np.int32))
    workspace = workspace._replace(shares=np.zeros(21, np.float32))
    documents = rng.choice(len(index), 20, replace=False)
    workspace.documents[1:21], workspace.slots[documents] = documents, np.arange(1, 21)
    np.bitwise_or.at(
        workspace.is_best, documents >> 5, np.uint32(1) << (documents & 31).astype(np.uint32)
    )
    impacts = workspace.impacts[: 21 * terms].reshape(21, terms)
    impacts[1:] = rng.random((20, terms), np.float32)
    workspace.term_weights[:terms], workspace.half[:terms] = rng.random((2, terms), np.float32)
    levels = rng.integers(0, 256, (len(index), 20)).astype(np.uint32)
    rows = (rng.choice(documents, levels.shape).astype(np.uint32) << 8) | levels
    rows[:, ::3] = (rng.integers(0, len(index), rows[:, ::3].shape) << 8 | 1).astype(np.uint32)
    slots, found = np.array([20, 3, 1], np.int32), np.zeros(3, np.float32)
    arrays = engine._index._replace(rows=rows)
    coverage_by(arrays, workspace, terms, 19, slots, 3, neighbours, found)
    for slot, covered in zip(slots, found, strict=True):
        near = rows[workspace.documents[slot]][:neighbours]
        shares, at = (near & 255).astype(np.float64), workspace.slots[near >> 8]
        own = impacts[slot] if slot <= 19 else 0
        y = own + NEIGHBOURHOOD * (shares[:, None] * impacts[at]).sum(axis=0) / max(shares.sum(), 1)
        expected = (workspace.term_weights[:terms] * y / (y + workspace.half[:terms])).sum()
        assert covered == pytest.approx(expected, rel=1e-5)


@compiled
def place_in(entries, low, high, expected, place):
    return find_posting(entries, low, high, expected, place)


@given(
    size=st.sampled_from([1, 2, LANES - 1, LANES, LANES + 1, 200, 1000]),
    crowded=st.booleans(),
    wrong=st.sampled_from([0, 20, 300]),
    seed=st.integers(0, 9),
)
def test_a_document_is_found_wherever_it_was_expected(size, crowded, wrong, seed):
    rng = np.random.default_rng(seed)
    places = np.sort(rng.choice(3 * size, size, replace=False)) if not crowded else np.arange(size)
    entries = places.astype(np.uint32) << 16 | rng.integers(1, 1 << 16, size).astype(np.uint32)
    before, after = np.full(70, 2**32 - 1, np.uint32), np.zeros(70, np.uint32)
    entries = np.concatenate([before, entries, after])
    low, high = 70, 70 + size
    for at in range(low, high):
        expected = at + int(rng.integers(-wrong, wrong + 1))
        place = int(entries[at] >> 16)
        assert place_in(entries, low, high, expected, place) == at
        found = place_in(entries, low, high, expected, place + 1)
        assert found >= high or (entries[found] >> 16 == place + 1) == (place + 1 in places)


@compiled
def bar_in(scores, low, high, wanted):
    return find_threshold(scores, low, high, wanted)


@given(
    vectors=st.sampled_from([1, 3, 127, 128, 300]),
    wanted=st.sampled_from([1, 10, 100, 1000]),
    sorted_=st.booleans(),
    seed=st.integers(0, 9),
)
def test_as_many_as_wanted_are_above_the_bar(vectors, wanted, sorted_, seed):
    scores = np.random.default_rng(seed).gamma(2, 2, vectors * LANES).astype(np.float32)
    if sorted_:
        scores.sort()
    wanted = min(wanted, len(scores))
    scores = (scores * 1000).astype(np.int32) + 1
    bar = bar_in(scores, 0, int(scores.max()), wanted)
    assert (scores > bar).sum() >= wanted


@compiled
def above(scores, bar, places):
    return indices_above(scores, bar, places)


@given(
    vectors=st.integers(1, 5), share=st.sampled_from([0, 0.01, 0.5, 1]), seed=st.integers(0, 999)
)
def test_places_are_those_of_what_is_above_the_bar(vectors, share, seed):
    chance = np.random.default_rng(seed)
    scores = np.where(chance.random(vectors * LANES) < share, 8, chance.integers(-9, 8))
    scores = scores.astype(np.int32)
    places = np.zeros(len(scores), np.int32)
    count = above(scores, 7, places)
    np.testing.assert_array_equal(places[:count], np.flatnonzero(scores > 7))


@compiled
def chosen_in(workspace, size, wanted):
    return select_slots(workspace, size, wanted)


@given(
    size=st.sampled_from([1, 2, 63, 64, 65, 128, 700, 8191, 8192, 9000]),
    wanted=st.sampled_from([1, 2, 10, 63, 64, 65, 500]),
    levels=st.sampled_from([1, 3, 10**6]),
    below=st.sampled_from([0.0, 0.5, 0.99, 1.0]),
    seed=st.integers(0, 9),
)
def test_the_highest_are_chosen_and_equals_together(index, size, wanted, levels, below, seed):
    """Whatever stands beyond the last slot; some, or all, of the scores are not above 0."""
    rng = np.random.default_rng(seed)
    engine = index.arrays.klsa_engine
    workspace = engine._workspace(9001, 300, 1)
    workspace.scores[:] = 10.0**9
    values = rng.integers(1, levels + 1, size) / np.float32(levels)
    values[rng.random(size) < below] *= rng.choice([-1, 0])
    workspace.scores[1 : size + 1] = values
    count = chosen_in(workspace, size, wanted)
    chosen = workspace.chosen[:count]
    assert count >= min(size, wanted)
    assert np.array_equal(np.sort(chosen), np.unique(chosen))
    assert ((chosen > 0) & (chosen <= size)).all()
    others = np.setdiff1d(np.arange(1, size + 1), chosen)
    if len(others):
        assert workspace.scores[chosen].min() > workspace.scores[others].max()


def test_after_warming_up_no_query_compiles(index):
    index.warm_up()
    compilers = (search.dispatcher, search_expanded.dispatcher)
    before = [compiler.signatures for compiler in compilers]
    assert all(before)
    for ranker in ("bm25", "klsa"):
        index.rank("t03 t11", 10, ranker=ranker)
        index.rank_many(["t03 t11"] * 100, 1000, ranker=ranker, threads=2)
    assert [compiler.signatures for compiler in compilers] == before


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    """6,000 documents; some terms are in nearly all, more than are looked at one by one."""
    records = [
        {"id": str(number), "text": text}
        for number, text in enumerate(random_documents(6000, 60, seed=3))
    ]
    options = {"language": "none"}
    home = tmp_path_factory.mktemp("engine")
    with as_if_large():
        opened = build(records, name="many", home=home, **options)
    yield opened
    opened.close()


def in_blocks(postings, bits):
    """The same postings in blocks of another size."""
    return Postings.of(matrix_of(postings), np.ones(postings.size), postings.k1, block_bits=bits)


QUERIES = [f"t{a:02d} t{a + b:02d} t00" for a in range(1, 40, 4) for b in (1, 7, 13)]


@pytest.mark.parametrize("bits", [6, 8, 11])
def test_blocks_of_any_size_give_the_same_answers(index, bits):
    snapshot = index.arrays
    postings = snapshot.query_kernel.postings
    assert postings.frequencies.max() > SCAN_COST * BEST
    engine = KlsaEngine(
        replace(snapshot.query_kernel, postings=Segments.single(in_blocks(postings, bits))),
        snapshot.sparse_expansion,
        snapshot.latent_dimensions,
        snapshot.neighbour_count,
        small=False,
    )
    params = klsa_params(snapshot, index.parameters())
    for query in QUERIES:
        terms = [snapshot.vocabulary.numbers[term] for term in query.split()]
        for k in (10, 1000):
            found, values, _ = top_of(engine, terms, k, params)
            positions, scores = index.rank(query, k)
            assert np.array_equal(found, positions)
            assert np.array_equal(values, scores)


def test_what_is_found_has_its_exact_score(index):
    for query in QUERIES:
        exact = index.scores(query)
        positions, scores = index.rank(query, 10)
        assert np.abs(scores - exact[positions]).max() < 0.02 * exact.max()
        best = set(top_z(exact, 10)[0].tolist())
        assert len(best & set(positions.tolist())) >= 7


@pytest.mark.parametrize("ranker", ["klsa", "bm25"])
def test_a_deep_query_leaves_no_memory_behind(index, ranker, monkeypatch):
    shallow, deep = index.rank(QUERIES[0], 10, ranker=ranker), []
    for kept in (len(index), 100):
        monkeypatch.setattr("klsa_search.search.engine.engine.MAX_RETAINED", kept)
        reopened = open_index(index.path.parent)  # its engines have no memory yet
        reopened.rank(QUERIES[0], 10, ranker=ranker)
        tracemalloc.start()
        try:
            deep.append(reopened.rank(QUERIES[0], len(index), ranker=ranker))
            again = reopened.rank(QUERIES[0], 10, ranker=ranker)
            held, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
            reopened.close()
        assert all(map(np.array_equal, again, shallow))
        beyond = held - sum(array.nbytes for array in deep[-1])
        assert (beyond > 20 * len(index)) == (kept > 100)
    assert all(map(np.array_equal, *deep))
