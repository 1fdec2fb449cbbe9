"""KlsaEngine against exact scores, part by part; buffers are clean after each query.

Searches do not check bounds, so every array lies in guarded memory here. After any sequence of
queries, an engine answers as before the first.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klsa_search.core.parameters import RankingSettings
from klsa_search.lowrank.expansion_matrix import largest_entries
from klsa_search.search.engine.engine import MAX_SEEDS
from klsa_search.search.engine.evidence import LOCAL
from klsa_search.search.engine.mask import Mask
from klsa_search.search.engine.query_terms import QueryTerms
from klsa_search.search.query.parser import MAX_TERMS
from klsa_search.search.rankers.coverage import BEST
from klsa_search.search.rankers.klsa import klsa_params, rank_klsa
from tests.search.engine.guarded_memory import Fences
from tests.search.engine.sparse_world import cut_world
from tests.support.worlds import random_documents

from .single_query import top_of

ALONE = {"alpha": 1.0, "hold_back": 0.0}
PARTS = {
    "expansion": ({**ALONE, "coverage": 0.0, "latent": 0.0, "sharpness": 1.0}, 5e-3),
    "coverage": ({**ALONE, "coverage": 1.0, "latent": 0.0}, 1e-5),
    "latent": ({**ALONE, "coverage": 0.0, "latent": 1.0}, 1e-3),
    "lexical": ({"alpha": 1e-30, "lexical_sharpness": 2.5}, 1e-5),
}
"""Parameters that leave one part alone, and how far the fast way may be off: E is rounded to 16
bits and the place of a query to 15, the others to nothing but float32."""

parameters = st.fixed_dictionaries(
    {
        "alpha": st.sampled_from([1e-300, 1e-3, 0.3, 0.8, 1.0]),
        "hold_back": st.sampled_from([0.0, 0.7, 1.0]),
        "z": st.sampled_from([1, 2, 5, 20, 60, 301, MAX_SEEDS, MAX_SEEDS + 1, 10**30]),
        "sharpness": st.sampled_from([1.0, 2.5, 5.0, 100.0]),
        "lexical_sharpness": st.sampled_from([1.0, 7.3, 8.0, 100.0]),
        "coverage": st.sampled_from([0.0, 1e-300, 0.4, 0.8]),
        "latent": st.sampled_from([0.0, 1e-300, 0.2]),
        "unit_length": st.booleans(),
    }
).map(lambda chosen: RankingSettings(**chosen))

queries = st.lists(st.integers(-1, 11), max_size=6) | st.sampled_from(
    [[], [-1], [0] * 40, [1] * MAX_TERMS, [1] * (MAX_TERMS + 1), [*range(12)] * 2]
)

asked = st.tuples(queries, st.sampled_from([1, 2, 10, 31, 64, 400, 10**9]), parameters)

worlds = st.fixed_dictionaries(
    {
        "size": st.sampled_from([0, 1, 2, 7, 31, 32, 33, 63, 64, 65, 130]),
        "neighbours": st.sampled_from([1, 5, 48, 60]),
        "dimensions": st.sampled_from([1, 3, 20]),
        "block_bits": st.sampled_from([6, None]),
        "seed": st.integers(0, 3),
    }
)


def world_of(options, **changes):
    options = {**options, **changes}
    documents = random_documents(options.pop("size"), 12, options.pop("seed"))
    return cut_world(documents, **options)


def new_engine(snapshot):
    return replace(snapshot).klsa_engine


def known(snapshot, terms):
    return [term if term < len(snapshot.vocabulary) else -1 for term in terms]


def same(one, other):
    if one is None or other is None:
        return one is other
    return all(map(np.array_equal, one, other))


def exact_scores(snapshot, terms, chosen):
    return rank_klsa(snapshot, QueryTerms.of(terms), chosen, LOCAL)


@given(options=worlds, calls=st.lists(asked, min_size=1, max_size=12))
def test_a_used_engine_answers_as_a_new_one(options, calls):
    snapshot = world_of(options)
    used = new_engine(snapshot)
    for terms, k, chosen in calls:
        terms, params = known(snapshot, terms), klsa_params(snapshot, chosen)
        answer = top_of(used, terms, k, params)
        assert same(answer, top_of(new_engine(snapshot), terms, k, params))
        assert all(same(answer, each) for each in used.top([terms, terms], k, params) or [None])


@given(
    options=worlds,
    calls=st.lists(asked, min_size=1, max_size=6),
    filling=st.sampled_from([0, 1, 0x7F, 0xFF]),
)
def test_nothing_outside_of_the_arrays_is_written_or_read(options, calls, filling):
    plain = world_of(options)
    expected = [
        (top_of(plain.klsa_engine, known(plain, terms), k, klsa_params(plain, chosen)),
         top_of(plain.bm25_engine, known(plain, terms), k))
        for terms, k, chosen in calls
    ]  # fmt: skip
    fences = Fences(filling)
    fenced = world_of(options, around=fences.around)
    for (terms, k, chosen), (expanded, lexical) in zip(calls, expected, strict=True):
        terms, params = known(fenced, terms), klsa_params(fenced, chosen)
        assert same(top_of(fenced.klsa_engine, terms, k, params), expanded)
        assert same(top_of(fenced.bm25_engine, terms, k), lexical)
    assert fences.intact()


@given(
    options=worlds,
    size=st.sampled_from([31, 32, 33, 63, 64, 65, 130]),
    terms=queries,
    chosen=parameters,
    z=st.sampled_from([1, 2, 5]),
)
def test_results_have_exact_scores_and_include_all_matches(options, size, terms, chosen, z):
    """All of up to 130 documents are looked at closely where 60 are wanted.

    With few seeds: over all documents the rows of a centred kernel add up to 0, and nothing but the
    8 bits of the features is left.
    """
    snapshot = world_of(options, size=size)
    terms, chosen = known(snapshot, terms), chosen.model_copy(update={"z": z})
    answer = top_of(snapshot.klsa_engine, terms, 60, klsa_params(snapshot, chosen))
    if answer is None:
        return
    positions, scores, *_ = answer
    # Without unit length a sum may be negative; a result that contains a word scores above 0.
    exact = np.maximum(exact_scores(snapshot, terms, chosen), 0)
    near = 0.03 * np.abs(exact).max(initial=0)
    assert np.abs(scores - exact[positions]).max(initial=0) <= near
    assert (np.diff(scores) <= 0).all()
    assert (scores > 0).all()
    containing_any = np.zeros(len(exact), np.bool_)
    for term in set(terms) - {-1}:
        containing_any[snapshot.query_kernel.postings.of_term(term)[0]] = True
    last = scores[-1] if len(scores) == 60 else 0
    missed = np.setdiff1d(np.flatnonzero(containing_any & (exact > last + near)), positions)
    assert len(missed) == 0


SCAN_COST = 64  # as in klsa_search/native/engine/impacts.hpp
SOME = 25
"""So few best documents that the impacts of terms in half of `many` are looked up one by one."""


@pytest.fixture(scope="module")
def many():
    """3,000 documents in blocks of 64."""
    snapshot = cut_world(random_documents(3000, 60, seed=3), block_bits=6, neighbours=20)
    lengths = snapshot.query_kernel.postings.frequencies
    assert lengths[3] > SCAN_COST * SOME > lengths[14]
    return snapshot


@pytest.mark.parametrize("part", sorted(PARTS))
def test_each_part_alone_is_what_it_is_by_its_definition(many, part, monkeypatch):
    changes, tolerance = PARTS[part]
    for best, z, unit_length in product([SOME, BEST], [1, 20, 400], [True, False]):
        monkeypatch.setattr("klsa_search.search.rankers.klsa.BEST", best)
        chosen = RankingSettings(**changes, unit_length=unit_length, z=z)
        params = klsa_params(many, chosen)
        for terms in ([0], [3, 14, 3], [40, 1, 25], [*range(9)], [*range(20, 37)]):
            exact = exact_scores(many, terms, chosen)
            positions, scores, *_ = top_of(many.klsa_engine, terms, 20, params)
            assert len(positions) == 20
            assert np.abs(scores - exact[positions]).max() <= tolerance * np.abs(exact).max()


@pytest.mark.parametrize("coverage", [0.1, 0.3])
def test_documents_beyond_the_best_are_covered_by_what_is_near_them_alone(many, coverage):
    """Most of the 1,652 that hold the term are not among the best: what they hold is nothing."""
    chosen = RankingSettings(**ALONE, sharpness=1.0, coverage=coverage, latent=0.0)
    params = klsa_params(many, chosen)
    row = many.query_kernel.query_row(np.array([3]), np.ones(1, np.float32))
    exact = exact_scores(many, [3], chosen)
    positions, scores, *_ = top_of(many.klsa_engine, [3], 100, params)
    assert len(np.setdiff1d(positions, largest_entries(row, params.best)[0])) > 20
    assert np.abs(scores - exact[positions]).max() <= 3e-3 * exact.max()


def test_a_latent_part_that_no_seed_has_counts_as_it_is():
    """The one seed lies opposite to the query: what others have is a cosine, not its steps."""
    snapshot = cut_world(random_documents(31, 12, 0), neighbours=1, dimensions=1)
    chosen = RankingSettings(alpha=0.001, z=1, coverage=0.0, latent=0.2)
    latent = snapshot.latent.cosines(np.zeros(1, np.int64), np.ones(1, np.float32))
    positions, scores, *_ = top_of(snapshot.klsa_engine, [0], 31, klsa_params(snapshot, chosen))
    assert latent[positions[0]] <= 0 < latent.max()
    exact = exact_scores(snapshot, [0], chosen)
    assert positions.tolist() == largest_entries(exact, 31)[0].tolist()
    assert scores == pytest.approx(exact[positions], rel=1e-3)


@given(options=worlds, calls=st.lists(asked, min_size=1, max_size=6), seed=st.integers(0, 9))
def test_a_mask_of_few_documents_leaves_what_the_whole_ranking_says_of_them(options, calls, seed):
    """Each is looked at in full, and what the others are worth does not enter."""
    snapshot = world_of(options)
    engine = new_engine(snapshot)
    for number, (terms, k, chosen) in enumerate(calls):
        terms, params = known(snapshot, terms), klsa_params(snapshot, chosen)
        whole = top_of(engine, terms, len(snapshot), params, Mask(np.ones(len(snapshot), np.bool_)))
        share = np.random.default_rng(seed + number).random(len(snapshot))
        for allowed in (share < 0.1, share < 0.6, share < 2):
            found = top_of(engine, terms, k, params, Mask(allowed))
            if whole is None:
                assert found is None
                continue
            left = allowed[whole.doc_ids]
            assert np.array_equal(found.doc_ids, whole.doc_ids[left][:k])
            assert np.array_equal(found.scores, whole.scores[left][:k])


def test_within_a_large_mask_the_ranking_is_that_of_the_whole(monkeypatch, many):
    """Scores to the bit where all parts are computed; hardly a document is missed."""
    rng = np.random.default_rng(0)
    params = klsa_params(many, RankingSettings())
    allowed = rng.random(len(many)) < 0.5
    everything = Mask(np.ones(len(many), np.bool_))
    few_by_row = []
    for _ in range(15):
        terms = rng.integers(0, 60, 3).tolist()
        exact = exact_scores(many, terms, RankingSettings()) * allowed
        monkeypatch.setattr("klsa_search.search.engine.engine.FEW", 0)
        found = top_of(many.klsa_engine, terms, 10, params, Mask(allowed))
        assert same(
            top_of(many.klsa_engine, terms, 10, params, everything),
            top_of(many.klsa_engine, terms, 10, params),
        )
        assert allowed[found.doc_ids].all()
        few_by_row.append(len(set(found.doc_ids) & set(largest_entries(exact, 10)[0])))
    assert np.mean(few_by_row) > 9


@pytest.mark.slow
def test_seeds_beyond_what_16_bits_can_add_up_are_left_to_the_exact_way():
    """2,063 documents alike, whose shares of 32,000 steps all round up: the sum would be negative.

    With as many seeds as are allowed E is right.
    """
    size = 2063
    snapshot = cut_world(["a b"] * size + ["c d"] * size, neighbours=1, dimensions=1)
    for z, taken in ((MAX_SEEDS, True), (MAX_SEEDS + 1, False), (size, False)):
        chosen = RankingSettings(
            alpha=1.0, z=z, sharpness=1.0, coverage=0.0, latent=0.0, unit_length=False
        )
        params = klsa_params(snapshot, chosen)
        answer = top_of(snapshot.klsa_engine, [0], 10, params)
        assert (answer is not None) == taken
        assert (snapshot.klsa_engine.top([[0], [0]], 10, params) is None) != taken
        if answer is not None:
            exact = exact_scores(snapshot, [0], chosen)
            assert answer[1] == pytest.approx(exact[answer[0]], rel=0.05)


def test_threads_answer_as_one_does(many):
    rng = np.random.default_rng(0)
    params_list = [
        klsa_params(many, RankingSettings(z=z, alpha=a)) for z in (1, 20, 70) for a in (0.3, 0.8)
    ]
    calls = [
        (rng.integers(-1, 60, 4).tolist(), int(rng.choice([1, 10, 500])), params_list[number % 6])
        for number in range(30)
    ]
    expected = [top_of(many.klsa_engine, *call) for call in calls]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda call: top_of(many.klsa_engine, *call), calls))
    assert all(map(same, answers, expected))


def test_arrays_of_other_types_are_read_for_what_they_hold(many):
    """A query needs no more than numbers; what compiled code reads is of one type."""

    def other(array):
        wider = {"i": np.int64, "f": np.float64}.get(array.dtype.kind)
        array = array.astype(wider) if wider and array.itemsize >= 4 else array
        return np.asfortranarray(array)

    documents = random_documents(200, 30, seed=1)
    plain, changed = cut_world(documents), cut_world(documents, around=other)
    chosen = RankingSettings()
    for terms in ([0], [3, 14], [*range(9)]):
        answer = top_of(changed.klsa_engine, terms, 20, klsa_params(changed, chosen))
        assert same(answer, top_of(plain.klsa_engine, terms, 20, klsa_params(plain, chosen)))
        assert same(top_of(changed.bm25_engine, terms, 20), top_of(plain.bm25_engine, terms, 20))


def test_equal_scores_go_by_position_wherever_the_answer_is_cut(many):
    """Documents alike, each thrice: what stands in the answer, and in which order."""
    texts = random_documents(40, 30, seed=2)
    snapshot = cut_world([text for text in texts for _ in range(3)], neighbours=1)
    chosen = RankingSettings(coverage=0.0)
    exact = exact_scores(snapshot, [1, 4], chosen)
    for k in (1, 2, 3, 4, 5, 17, 60):
        positions, scores, *_ = top_of(
            snapshot.klsa_engine, [1, 4], k, klsa_params(snapshot, chosen)
        )
        order = np.lexsort((positions, -scores))
        assert order.tolist() == list(range(len(positions)))
        assert positions[0] == largest_entries(exact, 1)[0][0]
