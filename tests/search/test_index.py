"""The open index: hits, their order, and invalid arguments."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from klsa_search import build
from klsa_search.core.parameters import ParsingSettings
from klsa_search.errors import ArgumentError, DocumentNotFound, QueryError
from klsa_search.search import costs
from klsa_search.search.rankers import RANKERS
from tests.search.conftest import DOCUMENTS
from tests.support.states import part_states


def found(index, query, **options):
    return [hit.id for hit in index.search(query, **options)]


def test_bm25_finds_the_documents_that_hold_the_words(index):
    assert set(found(index, "yeast dough", ranker="bm25")) == {"b1", "b2"}


def test_kernel_lsa_also_finds_documents_about_the_same_thing(index):
    assert "b3" in found(index, "yeast dough")
    assert not {"w1", "w2", "w3"} & set(found(index, "yeast dough"))


def test_a_hit_carries_what_a_reader_needs(index):
    results = index.search("supersonic", k=1, ranker="bm25")
    hit = results[0]
    assert (hit.rank, hit.id, hit.title) == (1, "w1", "Wings")
    assert hit.metadata == {"year": 1958}
    assert "supersonic" in hit.snippet
    assert hit.score > 0
    assert (results.total, len(results), results.ranker) == (2, 1, "bm25")
    assert results.parameters == {"boosts": ""}


def test_saying_what_the_index_does_anyway_changes_nothing(index):
    said = index.rank("yeast dough", ranker="klsa", alpha=index.settings.alpha)
    assert all(map(np.array_equal, said, index.rank("yeast dough")))


def test_the_answer_names_its_parameters(index):
    results = index.search("supersonic", alpha=0.25, spectral="squashing", dimensions=1)
    assert results.ranker == "klsa"
    assert results.parameters == {
        "alpha": 0.25,
        "hold_back": 0.7,
        "z": 2,
        "sharpness": 5.0,
        "spectral": "squashing",
        "gamma": 0.3,
        "head": 0,
        "unit_length": True,
        "coverage": 0.4,
        "latent": 0.2,
        "lexical_sharpness": 8.0,
        "boosts": "",
        "exact": False,
        "dimensions": 1,
    }
    results = index.search("supersonic", ranker="lsi")
    assert (results.ranker, results.parameters) == ("lsi", {"dimensions": 2})


@pytest.mark.parametrize("ranker", sorted(RANKERS))
def test_a_query_without_known_terms_finds_nothing(index, ranker):
    for query in ("", "   ", "zeppelin", "?!", "\x00", "\ud800"):
        results = index.search(query, ranker=ranker)
        assert (results.total, list(results)) == (0, [])
        positions, scores = index.rank(query, ranker=ranker)
        assert len(positions) == len(scores) == 0
        assert not index.scores(query, ranker=ranker).any()


@pytest.mark.parametrize("ranker", sorted(RANKERS))
def test_search_rank_and_scores_tell_the_same(index, ranker):
    scores = index.scores("lift and drag", ranker=ranker)
    positions, values = index.rank("lift and drag", k=100, ranker=ranker)
    assert values.tolist() == scores[positions].tolist()
    assert positions.tolist() == sorted(
        np.flatnonzero(scores > 0), key=lambda position: -scores[position]
    )
    results = index.search("lift and drag", k=100, ranker=ranker)
    assert [hit.id for hit in results] == index.ids(positions)
    assert [hit.rank for hit in results] == list(range(1, results.total + 1))


def test_more_hits_than_documents_gives_all_that_match(index):
    assert len(index.search("bread", k=10_000)) <= len(index)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"alpha": 1.5}, "alpha"),
        ({"alpha": -0.1}, "alpha"),
        ({"alpha": float("nan")}, "alpha"),
        ({"z": 0}, "z"),
        ({"ranker": "magic"}, "ranker"),
        ({"dimensions": 3}, "dimensions"),
        ({"dimensions": 0}, "dimensions"),
        ({"k": 0}, "k"),
        ({"beta": 1}, "beta"),
        ({"k": 2.5}, "k"),
        ({"k": "3"}, "k"),
        ({"k": None}, "k"),
        ({"k": True}, "k"),
        ({"dimensions": 1.5}, "dimensions"),
        ({"dimensions": True}, "dimensions"),
        ({"z": 1.5}, "z"),
        ({"sharpness": 0.5}, "sharpness"),
        ({"spectral": "fourier"}, "spectral"),
        ({"spectral": "von-neumann", "gamma": 1.0}, "gamma"),
        ({"gamma": 0.0}, "gamma"),
        ({"spectral": "exponential", "gamma": 21.0}, "gamma"),
        ({"spectral": "squashing", "gamma": 1e-9}, "gamma"),
        ({"coverage": 0.9, "latent": 0.2}, "latent"),
    ],
)
def test_a_parameter_outside_its_limits_is_named(index, options, field):
    with pytest.raises(QueryError) as caught:
        index.search("bread", **options)
    assert caught.value.field == field
    assert field in caught.value.message


def test_numbers_of_numpy_are_numbers(index):
    plain = index.search("bread", k=2, z=1, alpha=0.5, dimensions=1)
    numpy = index.search(
        "bread", k=np.int64(2), z=np.int32(1), alpha=np.float64(0.5), dimensions=np.int8(1)
    )
    assert numpy == plain


@pytest.mark.parametrize("query", [None, 5, b"bread", ["bread"]])
def test_a_query_is_text(index, query):
    with pytest.raises(ArgumentError, match="text"):
        index.search(query)


def test_documents_come_back_as_they_were(index):
    document = index.document("w1")
    assert (document.title, document.metadata) == ("Wings", {"year": 1958})
    with pytest.raises(DocumentNotFound, match="'nope'"):
        index.document("nope")
    assert index.ids() == ["w1", "w2", "w3", "b1", "b2", "b3", "e1"]


def test_threads_get_the_same_answers(index):
    queries = ["bread", "supersonic flow", "yeast", "lift"] * 20
    alone = [found(index, query) for query in queries]
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(lambda query: found(index, query), queries)) == alone


@pytest.mark.parametrize("ranker", sorted(RANKERS))
def test_many_queries_get_what_each_gets_alone(index, ranker):
    queries = ["bread", "", "supersonic flow", "yeast don't", "lift drag", "zeppelin"] * 8
    alone = [index.rank(query, 3, ranker=ranker) for query in queries]
    some = queries[:8]
    searched = [index.search(query, 2, ranker=ranker) for query in some]
    for threads in (1, 3):
        together = index.rank_many(iter(queries), 3, threads=threads, ranker=ranker)
        for one, other in zip(together, alone, strict=True):
            assert np.array_equal(one[0], other[0])
            assert np.array_equal(one[1], other[1])
        assert index.search_many(some, 2, threads=threads, ranker=ranker) == searched
    assert index.rank_many([], ranker=ranker) == index.search_many([], ranker=ranker) == []


@pytest.mark.parametrize("many", ["rank_many", "search_many"])
def test_many_queries_are_checked_like_one(index, many):
    for field, value in {"threads": 0, "k": 0, "alpha": 2.0}.items():
        with pytest.raises(QueryError) as caught:
            getattr(index, many)(["bread"], **{field: value})
        assert caught.value.field == field
    with pytest.raises(ArgumentError, match="text"):
        getattr(index, many)(["bread", None], ranker="bm25")


def test_each_call_checks_the_types_of_parameters(index):
    index.rank("bread", z=1, alpha=1.0)
    for wrong in ({"z": True}, {"z": 1.0}, {"z": [1]}, {"alpha": "1.0"}):
        with pytest.raises(QueryError):
            index.rank("bread", **{"z": 1, "alpha": 1.0, **wrong})


@pytest.mark.parametrize("query", ["bread yeast", "drag", "the", "drag drag flow", "zeppelin"])
def test_the_total_counts_every_match(index, query):
    total = np.count_nonzero(index.scores(query, ranker="bm25"))
    assert index.search(query, k=1, ranker="bm25").total == total


@pytest.mark.parametrize("part", ["coverage", "latent"])
def test_a_part_can_be_used_that_the_defaults_leave_out(part, index_of):
    bare = index_of(DOCUMENTS, coverage=0.0, latent=0.0)
    scores = bare.scores("bread", **{part: 0.5})
    assert not np.array_equal(scores, bare.scores("bread"))


@pytest.mark.parametrize(
    ("spectral", "gamma"), [("exponential", 20.0), ("squashing", 1e-4), ("von-neumann", 0.999)]
)
def test_scores_are_finite_at_the_limits_of_gamma(index, spectral, gamma):
    scores = index.scores("bread and dough", spectral=spectral, gamma=gamma)
    assert np.isfinite(scores).all()
    assert scores.any()


@pytest.mark.parametrize(
    ("query", "words", "operators", "misspelt", "phrase_documents", "matches"),
    [
        ("yeast dough", 2, 0, 0, 0, 4),
        ("yeast -dough", 2, 1, 0, 0, 4),
        ('"yeast dough"', 2, 1, 0, 2, 4),
        ("yeastt", 1, 0, 1, 0, 0),
        ("yea*", 0, 1, 0, 7, 7),
        ("", 0, 0, 0, 0, 7),
    ],
)
def test_the_costs_of_a_query_are_counted(
    index, query, words, operators, misspelt, phrase_documents, matches
):
    (state,) = part_states(index)
    counts = costs.counts_of(state.query_parser, query, ParsingSettings())
    assert (counts.words, counts.operators, counts.misspelt) == (words, operators, misspelt)
    assert (counts.phrase_documents, counts.matches) == (phrase_documents, matches)


def test_quick_are_few_hits_of_plain_words_that_documents_hold(index):
    for query in ("yeast dough", "Yeast, the dough", "", "supersonic wings?"):
        assert index.is_quick(query)
    for query in ('"yeast dough"', "yeast -dough", "yeastt", "yea*", 100 * "yeast "):
        assert not index.is_quick(query)
    assert index.is_quick("yeast", k=20)
    assert not index.is_quick("yeast", k=21)


def test_no_query_is_quick_if_its_hits_may_be_long(tmp_path, monkeypatch):
    monkeypatch.setattr(costs, "QUICK_BYTES", 1000)
    with build(DOCUMENTS, name="long", home=tmp_path, ranker="bm25") as index:
        assert index.is_quick("yeast", k=10)
        index.add([{"id": f"page{n}", "text": "yeast " * 100} for n in range(2)])
        assert index.is_quick("yeast", k=1)
        assert not index.is_quick("yeast", k=2)


def test_no_query_is_quick_where_rankings_take_long(tmp_path, monkeypatch):
    for number, settings in enumerate([{"exact": True}, {"ranker": "lsi"}, {"boosts": "title^2"}]):
        with build(DOCUMENTS, name=f"x{number}", home=tmp_path, dimensions=2, **settings) as slow:
            assert not slow.is_quick("yeast")
    with build(DOCUMENTS, name="many", home=tmp_path, ranker="bm25") as long:
        assert long.is_quick("yeast dough")
        monkeypatch.setattr(costs, "QUICK_POSTINGS", 1)
        assert not long.is_quick("yeast dough")
