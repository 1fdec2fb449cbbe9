"""Invariants of the ranking by stored rows: against exact scores."""

import numpy as np
import pytest

from klsa_search import build
from klsa_search.core.config import Settings
from klsa_search.errors import QueryError, SettingsError
from klsa_search.indexing.weighing import stores_eigenvectors, stores_rows
from klsa_search.lowrank import sparse_expansion
from klsa_search.lowrank.expansion_matrix import largest_entries
from klsa_search.search.rankers import RANKERS
from tests.support.worlds import as_if_large, random_documents

PLAIN = {"language": "none"}
QUERIES = [
    "t03 t11",
    "t00",
    "t25 t25 t07",
    "t39 t38 t37 t36",
    "t01 t02 t03 t04 t05 t06 t07 t08 t09",
]
CHANGES = [
    {},
    {"alpha": 0.3},
    {"alpha": 1.0},
    {"z": 3},
    {"z": 60},
    {"sharpness": 1.0},
    {"sharpness": 2.5, "lexical_sharpness": 1.0},
    {"coverage": 0.0},
    {"latent": 0.0},
    {"coverage": 0.0, "latent": 0.0},
    {"unit_length": False},
]


def records(documents):
    return [{"id": f"d{number:03d}", "text": text} for number, text in enumerate(documents)]


def built(documents, home, name, **options):
    return build(records(documents), name=name, home=home, **PLAIN, **options)


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """One collection, as it is and as if it were large, ranked by 48 of 80 entries of a row."""
    home = tmp_path_factory.mktemp("cut")
    documents = random_documents(80, 40)
    small = built(documents, home, "small")
    with as_if_large():
        cut = built(documents, home, "cut")
    yield small, cut
    small.close()
    cut.close()


@pytest.mark.parametrize("change", CHANGES)
def test_scores_do_not_depend_on_the_size_and_fast_ones_are_exact(pair, change):
    """Of 80 documents 32 and more are compared: those that are found have their exact score.

    Latent coordinates of fewer eigenvectors differ in their rounding.
    """
    for query in QUERIES:
        _, cut = pair
        plain, exact = (index.scores(query, **change) for index in pair)
        assert np.abs(plain - exact).max() < 0.02 * np.abs(plain).max()
        positions, scores = cut.rank(query, 10, **change)
        largest = np.abs(exact).max()
        # Seeds of no weight are passed over, and a coordinate of the latent space has 8 bits.
        assert np.abs(scores - exact[positions]).max() < 0.02 * largest
        expected, values = largest_entries(exact, 10)
        assert len(positions) == len(expected)
        assert np.abs(np.sort(scores)[::-1] - values).max() < 0.02 * largest


def test_exact_ranks_by_the_scores_of_all(pair):
    for query in QUERIES:
        _, cut = pair
        positions, scores = cut.rank(query, 15, exact=True)
        expected, values = largest_entries(cut.scores(query), 15)
        assert np.array_equal(positions, expected)
        assert np.array_equal(scores, values)


@pytest.mark.parametrize(
    "ranker", [name for name, row in RANKERS.items() if row.scores_by == "words"]
)
def test_other_rankers_do_not_depend_on_the_size(pair, ranker):
    for query in QUERIES:
        small, cut = pair
        assert np.array_equal(cut.scores(query, ranker=ranker), small.scores(query, ranker=ranker))


@pytest.mark.parametrize("k", [1, 1000])
def test_many_get_what_each_gets_alone_on_any_number_of_threads(pair, k):
    _, cut = pair
    queries = [f"t{a:02d} t{a % 5:02d}" for a in range(20)] + ["", "unknown"]
    expected = [cut.rank(query, k) for query in queries]
    for threads in (1, 2, 5):
        many = cut.rank_many(queries, k, threads=threads)
        for (positions, scores), (alone, values) in zip(many, expected, strict=True):
            assert np.array_equal(positions, alone)
            assert np.array_equal(scores, values)


def test_the_size_of_the_answers_before_leaves_no_trace(pair):
    _, cut = pair
    first = [cut.rank(query, 5) for query in QUERIES]
    for k, z in ((1000, 70), (1, 1), (30, 20)):
        for query in QUERIES:
            cut.rank(query, k, z=z)
    for query, (positions, scores) in zip(QUERIES, first, strict=True):
        again, values = cut.rank(query, 5)
        assert np.array_equal(positions, again)
        assert np.array_equal(scores, values)


def test_more_seeds_than_documents_are_all_of_them(pair):
    _, cut = pair
    for query in QUERIES:
        expected, values = cut.rank(query, 10, z=79)
        for z in (80, 81, 1500, 1501, 10**6, 2**63, 10**30):
            positions, scores = cut.rank(query, 10, z=z)
            assert np.array_equal(positions, expected)
            assert np.array_equal(scores, values)


def test_a_deeper_ranking_begins_with_the_same_documents(pair):
    _, cut = pair
    for query in QUERIES:
        deep, shallow = cut.rank(query, 15)[0], cut.rank(query, 5)[0]
        assert deep[:5].tolist() == shallow.tolist()


def test_more_terms_than_the_compiled_search_takes_are_answered_in_full(pair):
    _, cut = pair
    query = " ".join(["t03", "t11", "t25"] * 100)
    positions, scores = cut.rank(query, 10)
    expected, values = largest_entries(cut.scores(query), 10)
    assert np.array_equal(positions, expected)
    assert np.array_equal(scores, values)


@pytest.mark.parametrize("documents", [[], [""], ["a b"], ["a b", "a b"], ["a", "b"]])
def test_almost_nothing_can_be_cut_too(documents, tmp_path):
    index = built(documents, tmp_path, "tiny")
    expected = [n for n, text in enumerate(documents) if "a" in text]
    for positions, _ in (index.rank("a"), *index.rank_many(["a", "a"]), index.rank("a", 10**30)):
        assert positions.tolist() == expected
    assert len(index.scores("a")) == len(documents)
    index.close()


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"ranker": "lsi"}, "ranker"),
        ({"ranker": "lsi-cosine"}, "ranker"),
        ({"spectral": "truncation"}, "spectral"),
        ({"spectral": "von-neumann", "gamma": 0.5}, "spectral"),
        ({"head": 1}, "head"),
        ({"dimensions": 5}, "dimensions"),
    ],
)
def test_queries_that_a_truncated_expansion_cannot_answer_are_refused(pair, options, field):
    _, cut = pair
    for call in (cut.rank, cut.scores, cut.search):
        with pytest.raises(QueryError, match="does not have the eigenvectors") as error:
            call("t03", **options)
        assert error.value.field == field


@pytest.mark.parametrize(
    ("documents", "changes", "eigenvectors", "rows"),
    [
        (8192, {}, True, False),
        (8193, {}, False, False),
        (8193, {"ranker": "bm25"}, False, False),
        (8192, {"spectral": "truncation"}, True, True),
        (8193, {"spectral": "truncation"}, True, False),
        (8192, {"head": 1}, True, True),
        (8193, {"head": 1}, True, False),
        (8193, {"ranker": "lsi"}, True, False),
    ],
)
def test_the_stored_expansion_depends_on_ranking_and_size(documents, changes, eigenvectors, rows):
    settings = Settings.of_preset(**changes)
    assert stores_eigenvectors(documents, settings) == eigenvectors
    assert stores_rows(documents, settings) == rows


def test_more_documents_than_can_be_numbered_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(sparse_expansion, "MAX_DOCUMENTS", 2)
    built(["a b", "c d"], tmp_path, "full").close()
    with pytest.raises(SettingsError, match=r"3 documents are more than .* \(2\); divide them"):
        built(["a b", "c d", "e f"], tmp_path, "more")
