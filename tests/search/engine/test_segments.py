"""Any division of a collection into segments gives the same ranking to the bit."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from klsa_search.core.parameters import RankingSettings
from klsa_search.kernels.bm25 import average_length, quantised_length
from klsa_search.kernels.postings import DEPTHS, Segment, Segments
from klsa_search.kernels.query_kernel import DocumentCounts, QueryKernel
from klsa_search.lowrank.sparse_expansion import SegmentedExpansion
from klsa_search.search.engine.engine import Bm25Engine
from klsa_search.search.engine.mask import Mask
from klsa_search.search.engine.reverse_neighbours import MAX_REVERSE, ReverseNeighboursBuilder
from klsa_search.search.rankers.klsa import klsa_params
from tests.oracle.ranking import Oracle
from tests.search.engine.segmenting import cut_into, expansion_cut_into
from tests.search.engine.sparse_world import WEIGHTING, cut_world
from tests.support.worlds import counts_of, query_kernel, random_documents

SIZE = 700
DOCUMENTS = random_documents(SIZE, 50, seed=2)
COUNTED = counts_of(*DOCUMENTS)
COUNTS = COUNTED.matrix


@pytest.fixture(scope="module")
def world():
    return cut_world(DOCUMENTS, block_bits=7)


cuts = st.lists(st.integers(0, SIZE), max_size=5)
asked = st.lists(st.integers(-1, 49), min_size=1, max_size=9)


def all_but(gone):
    allowed = np.ones(SIZE, np.bool_)
    allowed[list(gone)] = False
    return Mask(allowed)


def reverse_of(size, pairs, values):
    reversing = ReverseNeighboursBuilder()
    pairs = np.array(pairs, np.int32).reshape(-1, 2)
    reversing.append(size, pairs, np.array(values, np.float32))
    return reversing.build(size)


def same(one, other):
    assert one.doc_ids.tolist() == other.doc_ids.tolist()
    assert one.scores.tobytes() == other.scores.tobytes()
    assert one.total == other.total


@given(cuts=cuts, queries=st.lists(asked, min_size=1, max_size=3), k=st.sampled_from([1, 10, 900]))
def test_bm25_over_segments(world, cuts, queries, k):
    segments = cut_into(world.query_kernel.postings, COUNTS, cuts, block_bits=7)
    kernel = QueryKernel.of(segments, weighting=WEIGHTING)
    terms = np.arange(len(kernel.counts.frequencies))
    assert np.array_equal(kernel.weights(terms), world.query_kernel.weights(terms))
    whole, engine = Bm25Engine(world.query_kernel), Bm25Engine(kernel)
    for mask in (None, Mask(np.random.default_rng(len(cuts)).random(SIZE) < 0.3)):
        ours = engine.top(queries, k, mask, totals=True)
        theirs = whole.top(queries, k, mask, totals=True)
        for one, other in zip(theirs, ours, strict=True):
            same(one, other)


@given(cuts=cuts, terms=asked, k=st.sampled_from([1, 10, 300, 700]), small=st.booleans())
def test_the_default_over_segments(world, cuts, terms, k, small):
    segments = cut_into(world.query_kernel.postings, COUNTS, cuts, block_bits=7)
    params = klsa_params(world, RankingSettings())
    whole = replace(world, small=small).klsa_engine
    kernel = QueryKernel.of(segments, weighting=WEIGHTING)
    expansion = expansion_cut_into(world.sparse_expansion, cuts)
    divided = replace(world, small=small, query_kernel=kernel, sparse_expansion=expansion)
    engine = divided.klsa_engine
    share = np.random.default_rng(k).random(SIZE)
    for mask in (None, Mask(share < 0.3), Mask(share < 0.005)):
        (one,) = whole.top([terms], k, params, mask, totals=True)
        (other,) = engine.top([terms], k, params, mask, totals=True)
        same(one, other)


@given(
    cuts=cuts,
    gone=st.sets(st.integers(0, SIZE - 1), max_size=300),
    terms=asked,
    k=st.sampled_from([1, 10, 300]),
)
def test_without_some_documents_bm25_is_that_of_the_others(world, cuts, gone, terms, k):
    segments = cut_into(world.query_kernel.postings, COUNTS, cuts, block_bits=7)
    held = COUNTS[sorted(set(range(SIZE)) - gone)]
    live = DocumentCounts(
        SIZE - len(gone),
        np.bincount(held.indices, minlength=segments.terms),
        np.asarray(held.sum(axis=0)).ravel().astype(np.int64),
    )
    kernel = QueryKernel.of(segments, live, WEIGHTING)
    engine = Bm25Engine(kernel, all_but(gone))
    left = [number for number in range(SIZE) if number not in gone]
    counts = counts_of(*(DOCUMENTS[number] for number in left))
    assume(length_of(counts) == length_of(COUNTED))  # otherwise the postings are built again
    names = world.vocabulary.terms
    common = [counts.vocabulary.numbers.get(names[term], -1) for term in WEIGHTING.common]
    assume(-1 not in common)
    fresh = query_kernel(counts, weighting=replace(WEIGHTING, common=np.array(common)))
    again = [-1 if term < 0 else counts.vocabulary.numbers.get(names[term], -1) for term in terms]
    (one,) = Bm25Engine(fresh).top([again], k, totals=True)
    (other,) = engine.top([terms], k, totals=True)
    assert np.array(left)[one.doc_ids].tolist() == other.doc_ids.tolist()
    assert one.scores.tobytes() == other.scores.tobytes()
    assert one.total == other.total


def length_of(counts):
    return quantised_length(average_length(counts.lengths))


@given(
    cuts=cuts,
    gone=st.sets(st.integers(0, SIZE - 1), max_size=300),
    terms=asked,
    k=st.sampled_from([1, 10, 300]),
    small=st.booleans(),
    later=st.lists(
        st.tuples(st.integers(0, SIZE - 1), st.integers(0, SIZE - 1), st.integers(1, 50)),
        max_size=60,
    ),
)
def test_the_oracle_gives_the_same_bits(world, cuts, gone, terms, k, small, later):
    """With documents left out, and with entries beside the rows."""
    segments = cut_into(world.query_kernel.postings, COUNTS, cuts, block_bits=7)
    entries = {(one, other): value / 50 for one, other, value in later if one != other}
    reverse = reverse_of(SIZE, [*entries], [*entries.values()])
    snapshot = replace(
        world,
        query_kernel=QueryKernel.of(segments, weighting=WEIGHTING),
        sparse_expansion=expansion_cut_into(world.sparse_expansion, cuts),
        small=small,
        live=all_but(gone),
        reverse=reverse,
    )
    params = klsa_params(world, RankingSettings())
    (compiled,) = snapshot.klsa_engine.top([terms], k, params, totals=True)
    plain = Oracle(snapshot).top(terms, k, params)
    assert compiled.doc_ids.tolist() == plain.doc_ids.tolist()
    assert compiled.scores.tobytes() == plain.scores.tobytes()
    assert compiled.total == plain.total
    assert not set(compiled.doc_ids.tolist()) & gone
    share = np.random.default_rng(k).random(SIZE)
    for mask in (None, all_but(gone) & Mask(share < 0.3), all_but(gone) & Mask(share < 0.005)):
        (listed,) = snapshot.klsa_engine.top([terms], 1, params, mask, matches=True)
        (every,) = snapshot.klsa_engine.top([terms], SIZE, params, mask, totals=True)
        assert np.flatnonzero(listed.matches.allowed).tolist() == sorted(every.doc_ids.tolist())
        assert listed.total == listed.matches.size == every.total


def test_a_later_document_is_brought_up_by_an_earlier_one():
    """Document 2 shares no term with the query, and only the entry beside row 0 leads to it."""
    world = cut_world(["a b x y", "a", "x y", "e f", "g h", "i j"])
    built = world.sparse_expansion.built
    cut = SegmentedExpansion([replace(built, rows=np.zeros_like(built.rows))])
    params = klsa_params(world, RankingSettings())
    reverse = reverse_of(6, [[0, 2]], [0.9])
    terms = [world.vocabulary.numbers["b"]]
    without = replace(world, sparse_expansion=cut).klsa_engine
    within = replace(world, sparse_expansion=cut, reverse=reverse).klsa_engine
    found = without.top([terms], 5, params)[0].doc_ids.tolist()
    more = within.top([terms], 5, params)[0].doc_ids.tolist()
    assert (2 in found, 2 in more) == (False, True)


@given(
    entries=st.lists(st.tuples(st.integers(0, 5), st.integers(1, 20)), max_size=80),
    pieces=st.integers(1, 4),
)
def test_the_strongest_entries_of_a_row_are_kept(entries, pieces):
    pairs = np.array([(owner, 10 + number) for number, (owner, _) in enumerate(entries)], np.int32)
    values = np.array([value for _, value in entries], np.float32)
    reversing = ReverseNeighboursBuilder()
    for piece in np.array_split(np.arange(len(entries)), pieces):
        reversing.append(100, pairs.reshape(-1, 2)[piece], values[piece])
    reverse = reversing.build(100)
    for owner in range(6):
        own = [place for place, (one, _) in enumerate(entries) if one == owner]
        own = sorted(own, key=lambda place: -values[place])[:MAX_REVERSE]
        if not own:
            assert not len(reverse.row_of) or reverse.row_of[owner] == 0
            continue
        row = reverse.rows[reverse.row_of[owner] - 1]
        assert (row >> np.uint32(8)).tolist()[: len(own)] == [10 + place for place in own]
        step = reverse.steps[reverse.row_of[owner] - 1]
        levels = (row & np.uint32(255)).tolist()
        assert levels[: len(own)] == [max(round(values[place] / step), 1) for place in own]
        assert not any(levels[len(own) :])


def test_statistics_are_of_all_segments(world):
    postings = world.query_kernel.postings
    segments = cut_into(postings, COUNTS, [100, 101, 640], block_bits=7)
    assert np.array_equal(segments.frequencies, postings.frequencies)
    assert np.array_equal(segments.occurrences, postings.occurrences)
    assert np.array_equal(segments.occurrences, np.asarray(COUNTS.sum(axis=0)).ravel())
    assert np.array_equal(segments.best[:, 0], postings.best[:, 0])
    assert (segments.best[:, 1:] <= postings.best[:, 1:]).all()
    assert segments.best.shape[1] == len(DEPTHS)
    assert segments.size == SIZE
    for term in range(0, segments.terms, 7):
        documents, saturations = segments.of_term(term)
        theirs, same_ = postings.of_term(term)
        assert np.array_equal(documents, theirs)
        assert np.array_equal(saturations, same_)
    row = segments.steps(np.array([0, 3]), np.array([70_000, 5]))
    assert np.array_equal(row, postings.steps(np.array([0, 3]), np.array([70_000, 5])))
    engine, allowed = Bm25Engine(QueryKernel.of(segments)), np.arange(SIZE) % 3 > 0
    contained = [set(postings.of_term(term)[0].tolist()) for term in (0, 3, 49)]
    assert engine.containing_all([3, 0, 49]).tolist() == sorted(set.intersection(*contained))
    assert engine.containing_all([0]).tolist() == sorted(contained[0])
    assert np.flatnonzero(engine.containing_any([49, 3])).tolist() == sorted(
        contained[1] | contained[2]
    )
    assert not engine.containing_any([]).any()
    fitting = [sum(map(bool, allowed[sorted(one)])) for one in contained]
    assert engine.counts_within([0, 3, 49], allowed) == dict(zip([0, 3, 49], fitting, strict=True))
    (lexical,) = engine.top([[3, 49]], 1, matches=True)
    assert np.flatnonzero(lexical.matches.allowed).tolist() == sorted(contained[1] | contained[2])
    found = np.zeros((segments.terms, segments.size), np.uint16)
    for terms, documents, saturations in segments.batches(50):
        found[terms, documents] = saturations
    assert np.count_nonzero(found) == segments.frequencies.sum()


def test_segments_that_do_not_fit_together(world):
    (part,) = world.query_kernel.postings.parts
    terms = world.query_kernel.postings.terms
    for first in (699, 701):
        with pytest.raises(ValueError, match=f"a segment at {first}, where 700 is next"):
            Segments([part, Segment(first, part.postings)], terms)
    other = cut_into(world.query_kernel.postings, COUNTS, [], block_bits=9).parts[0].postings
    with pytest.raises(ValueError, match="size of blocks"):
        Segments([part, Segment(SIZE, other)], terms)
