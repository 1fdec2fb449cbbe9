"""Totals: every page, facet and filter counts the same documents, for every ranker."""

from contextlib import closing

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from klsa_search.indexing.build import build
from klsa_search.search.rankers import RANKERS
from tests.support.examples import one_in
from tests.support.worlds import random_documents

SIZE = 140
RANKINGS = (
    {},
    {"exact": True},
    {"z": 2},
    {"alpha": 0.0},
    {"coverage": 0.5, "latent": 0.5},
    {"unit_length": False},
    {"ranker": "bm25", "boosts": "title^2"},
    *({"ranker": name} for name in RANKERS if name != "klsa"),
)
QUERIES = ("rare", "t03 t07", "t11 -t03", "nothing", '"t01 t02"', " ")


def metadata(number):
    rng = np.random.default_rng(number)
    held = {"year": 2010 + int(rng.integers(4)), "shelf": "abc"[int(rng.integers(3))]}
    return {name: value for name, value in held.items() if rng.random() < 0.9}


def made(folder, size=SIZE, **settings):
    """Most documents built in, some written later, some deleted; one contains `rare`."""
    texts = random_documents(size, 40)
    texts[17] += " rare"
    documents = [
        {"id": str(number), "text": text, "metadata": metadata(number)}
        for number, text in enumerate(texts)
    ]
    index = build(documents[: size - 25], name="totals", home=folder, **settings)
    if "spectral" not in settings:  # otherwise it is read-only
        index.add(documents[size - 25 :])
        index.delete(["3", str(size - 10)])
    return index


@pytest.fixture(
    scope="module", params=["gvsm", pytest.param("squashing", marks=pytest.mark.slow), "few"]
)
def index(request, tmp_path_factory):
    chosen = {"few": {"size": 60}, "squashing": {"spectral": "squashing"}}.get(request.param, {})
    with closing(made(tmp_path_factory.mktemp("w"), **chosen)) as index:
        yield index


options = st.fixed_dictionaries(
    {},
    optional={
        "filter": st.sampled_from(["shelf = a", "year >= 2012", "NOT shelf EXISTS"]),
        "sort": st.sampled_from([["year:desc"], ["shelf", "year"]]),
        "distinct": st.just("shelf"),
        "min_score": st.sampled_from([1e-30, 0.1, 0.5]),
        "positive": st.just(["5", "11"]),
        "negative": st.just(["6"]),
    },
)


def is_answered(index, ranker):
    """Documents written later have nothing that LSI could use."""
    return index.arrays.has_spectrum or not ranker.get("ranker", "").startswith("lsi")


@one_in(3)
@given(st.sampled_from(QUERIES), st.sampled_from(RANKINGS), st.integers(1, 40), options)
def test_the_pages_have_as_many_hits_as_the_total_says(index, query, ranker, k, chosen):
    assume(is_answered(index, ranker))
    first = index.search(query, k, **chosen, **ranker)
    ids = [hit.id for hit in first.hits]
    while len(ids) < first.total:
        page = index.search(query, k, offset=len(ids), **chosen, **ranker)
        assert page.total == first.total
        assert len(page) == min(k, first.total - len(ids))
        ids += [hit.id for hit in page.hits]
    assert len(set(ids)) == len(ids) == first.total
    assert index.search(query, k, offset=len(ids), **chosen, **ranker).hits == ()
    assert index.search(query, 7, offset=3, **chosen, **ranker).total == first.total


@one_in(3)
@given(st.sampled_from(QUERIES), st.sampled_from(RANKINGS), st.integers(1, 40), options)
def test_facets_and_filters_count_the_documents_of_the_total(index, query, ranker, k, chosen):
    assume(is_answered(index, ranker))
    chosen = {name: value for name, value in chosen.items() if name != "distinct"}
    answer = index.search(query, k, facets=["shelf", "year"], **chosen, **ranker)
    if query.strip() or chosen:
        assert answer.total == index.search(query, k, **chosen, **ranker).total
    for facet in answer.facets.values():
        assert sum(count for _, count in facet.values) + facet.missing == answer.total
    if "filter" not in chosen and query.strip():
        for shelf, count in answer.facets["shelf"].values:
            kept = index.search(query, k, filter=f"shelf = {shelf}", **chosen, **ranker)
            assert kept.total == count


CHOICES = {
    "shelf IN [a, b]": None,
    "year >= 2012 AND shelf = a": "year >= 2012",
    "(shelf = a OR shelf = b) AND (year >= 2011 AND NOT shelf EXISTS)": "year >= 2011",
    "shelf = a OR year = 2011": "shelf = a OR year = 2011",
    "year < 2013": "year < 2013",
}


@one_in(3)
@given(
    st.sampled_from(QUERIES),
    st.sampled_from(RANKINGS),
    st.sampled_from(list(CHOICES.items())),
    st.sampled_from([{}, {"sort": ["year"]}, {"min_score": 0.1}]),
)
def test_a_disjunctive_facet_ignores_the_conditions_on_its_field(
    index, query, ranker, choice, more
):
    assume(is_answered(index, ranker) and (query.strip() or more.get("sort") or choice[1]))
    (chosen, without), k = choice, 3
    counted = index.search(
        query, k, filter=chosen, disjunctive_facets=["shelf"], facets=["year"], **more, **ranker
    )
    plain = index.search(query, k, filter=chosen, facets=["year"], **more, **ranker)
    assert counted.facets["year"] == plain.facets["year"]
    assert (counted.total, counted.hits) == (plain.total, plain.hits)
    wide = index.search(query, k, filter=without, facets=["shelf"], **more, **ranker)
    assert counted.facets["shelf"] == wide.facets["shelf"]


@pytest.mark.parametrize("k", [1, 10, 50])
def test_a_rare_word_finds_its_document_and_those_near_it(index, k):
    assert index.search("rare", k, ranker="bm25").total == 1
    found = index.search("rare", k)
    assert found.hits[0].id == "17"
    assert found.total == len(index.rank("rare", index.max_doc)[0]) > 1


def test_documents_beyond_the_word_and_the_rows_of_the_seeds_are_not_found(tmp_path):
    """Of two topics without a common word, a query about one finds that one alone."""
    texts = [f"sea wave {'tide' if n % 2 else 'salt'} s{n}" for n in range(60)]
    texts += [f"loan bank {'rate' if n % 2 else 'debt'} b{n}" for n in range(60)]
    documents = [{"id": str(number), "text": text} for number, text in enumerate(texts)]
    with closing(build(documents, name="two", home=tmp_path, language="none")) as index:
        found = index.search("tide", 120)
        assert {int(hit.id) for hit in found} <= set(range(60))
        assert found.total == len(found) == index.search("tide", 3).total
        assert found.total >= index.search("tide", ranker="bm25").total == 30
