"""Searches with filter, sort, facets and pages, against the complete ranking."""

from collections import Counter
from contextlib import closing
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klsa_search.errors import DocumentNotFound, QueryError
from klsa_search.indexing.build import build
from tests.support.examples import one_in
from tests.support.worlds import random_documents

SIZE = 300
RANKERS = ({"ranker": "bm25"}, {}, {"ranker": "rm3"})
QUERIES = ("t03 t07", "t11", "t01 t02 t05 nothing")
FILTERS = ("year >= 2015", "shelf IN [a, c]", "year IS NULL OR shelf = b", "NOT shelf EXISTS")


def metadata(number):
    rng = np.random.default_rng(number)
    held = {"year": 2010 + int(rng.integers(10)), "shelf": "abc"[int(rng.integers(3))]}
    held["tags"] = sorted({f"g{tag}" for tag in rng.integers(0, 6, int(rng.integers(4)))})
    return {name: value for name, value in held.items() if rng.random() < 0.9}


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    documents = [
        {"id": str(number), "text": text, "metadata": metadata(number)}
        for number, text in enumerate(random_documents(SIZE, 40))
    ]
    with closing(build(documents[:200], name="wishes", home=tmp_path_factory.mktemp("w"))) as index:
        index.add(documents[200:])
        index.delete(["3", "250"])
        yield index


def ranked(index, query, ranker):
    """Ids and scores of the whole ranking: what any wish is about."""
    positions, scores = index.rank(query, index.max_doc, **ranker)
    return dict(zip(index.ids(positions), scores.tolist(), strict=True))


def passes(text, held):
    year, shelf = held.get("year"), held.get("shelf")
    return {
        FILTERS[0]: year is not None and year >= 2015,
        FILTERS[1]: shelf in ("a", "c"),
        FILTERS[2]: year is None or shelf == "b",
        FILTERS[3]: shelf is None,
    }[text]


def shown(answer):
    return [hit.id for hit in answer.hits]


@pytest.mark.parametrize("ranker", RANKERS, ids=str)
def test_a_filter_keeps_the_order_and_the_scores(index, ranker):
    for query, text in product(QUERIES, FILTERS):
        whole = ranked(index, query, ranker)
        kept = [id_ for id_ in whole if passes(text, metadata(int(id_)))]
        answer = index.search(query, index.max_doc, filter=text, **ranker)
        assert shown(answer) == kept
        assert [hit.score for hit in answer.hits] == [whole[id_] for id_ in kept]
        mask = np.zeros(index.max_doc, np.bool_)
        mask[index.doc_ids(kept[::2])] = True
        both = index.search(query, index.max_doc, filter=text, mask=mask, **ranker)
        assert shown(both) == kept[::2]


@pytest.mark.parametrize("ranker", RANKERS, ids=str)
def test_pages_hold_every_document_once(index, ranker):
    query, k = QUERIES[2], 13
    whole = ranked(index, query, ranker)
    pages = [index.search(query, k, offset=at, **ranker) for at in range(0, len(whole) + k, k)]
    assert shown(pages[0]) == shown(index.search(query, k, **ranker))
    assert pages[-1].hits == ()
    ids = [id_ for page in pages for id_ in shown(page)]
    assert sorted(ids) == sorted(whole)
    assert [hit.rank for page in pages for hit in page.hits] == [*range(1, len(whole) + 1)]
    if ranker:  # their rankings are one, however much of it is asked for
        assert ids == list(whole)


@one_in(2)
@given(
    st.sampled_from(QUERIES),
    st.lists(st.sampled_from(["year:desc", "year", "shelf:asc", "shelf:desc", "tags:desc"]),
             min_size=1, max_size=2, unique_by=lambda key: key.split(":")[0]),
    st.integers(0, 20), st.integers(1, 40),
)  # fmt: skip
def test_sorting_is_by_fields_then_score_then_place(index, query, sort, offset, k):
    whole = ranked(index, query, {"ranker": "bm25"})
    found = list(whole)
    order = sorted(found, key=lambda id_: (-whole[id_], int(id_)))
    for key in reversed(sort):
        name, _, way = key.partition(":")
        descending = way == "desc"

        def value(id_, name=name, descending=descending):
            held = metadata(int(id_)).get(name)
            held = held if isinstance(held, list) else [held] if held is not None else []
            return (max(held) if descending else min(held)) if held else None

        there = [id_ for id_ in order if value(id_) is not None]
        there.sort(key=value, reverse=descending)
        order = there + [id_ for id_ in order if value(id_) is None]
    answer = index.search(query, k, offset=offset, sort=sort, ranker="bm25")
    assert shown(answer) == order[offset : offset + k]
    assert [hit.score for hit in answer.hits] == [whole[id_] for id_ in shown(answer)]
    assert answer.total == len(whole)


@pytest.mark.parametrize("text", [None, *FILTERS])
def test_facets_count_all_that_is_found(index, text):
    query = QUERIES[0]
    found = [
        metadata(int(id_))
        for id_ in ranked(index, query, {})
        if text is None or passes(text, metadata(int(id_)))
    ]
    wishes = {"filter": text, "facets": ["tags", "shelf", "year"]}
    answer = index.search(query, 1, **wishes)
    assert answer.total == len(found)
    for name, facet in answer.facets.items():
        held = [each.get(name, []) for each in found]
        held = [each if isinstance(each, list) else [each] for each in held]
        counts = Counter(value for each in held for value in each)
        expected = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
        assert list(facet.values) == expected
        assert facet.missing == sum(not each for each in held)
        if name == "year" and counts:
            assert (facet.min, facet.max) == (min(counts), max(counts))
        few = index.search(query, 1, max_facet_values=2, **wishes).facets[name]
        assert (list(few.values), few.other_count) == (expected[:2], max(len(expected) - 2, 0))


@pytest.mark.parametrize("ranker", RANKERS[:2], ids=str)
@pytest.mark.parametrize("sort", [[], ["year"]])
@pytest.mark.parametrize("k", [1, 2, 50])
def test_distinct_answers_the_best_of_each_value(index, ranker, sort, k):
    query = QUERIES[2]
    whole = shown(index.search(query, index.max_doc, sort=sort, **ranker))
    best, seen = [], set()
    for id_ in whole:
        shelf = metadata(int(id_)).get("shelf")
        if shelf is None or shelf not in seen:
            best.append(id_)
        seen.add(shelf)
    answer = index.search(query, k, distinct="shelf", sort=sort, **ranker)
    assert answer.total == len(best)
    assert len(shown(answer)) == min(k, len(best))
    if ranker:  # the default looks closer the more it is asked for
        assert shown(answer) == best[:k]


def test_a_least_score_bounds_hits_total_and_facets(index):
    query = QUERIES[2]
    whole = ranked(index, query, {})
    least = sorted(whole.values())[len(whole) // 2]
    kept = [id_ for id_, score in whole.items() if score >= least]
    answer = index.search(query, index.max_doc, min_score=least, facets=["year"])
    assert shown(answer) == kept
    assert answer.total == len(kept)
    facet = answer.facets["year"]
    assert sum(count for _, count in facet.values) + facet.missing == len(kept)


def test_a_blank_query_with_a_filter_or_sort_goes_through_all(index):
    passing = [id_ for id_ in index.ids() if passes(FILTERS[0], metadata(int(id_)))]
    answer = index.search(" ", 5, filter=FILTERS[0], offset=2)
    assert (shown(answer), answer.total) == (passing[2:7], len(passing))
    assert {hit.score for hit in answer.hits} == {0.0}
    newest = index.search("", 3, sort=["year:desc"])
    assert (newest.total, len(newest)) == (len(index), 3)
    assert shown(index.search("", 5)) == shown(index.search("", 5, facets=["year"])) == []
    assert shown(index.search("of the", 5, filter=FILTERS[0])) == []
    assert index.search("", 5, filter=FILTERS[0], min_score=0.1).total == 0


@pytest.mark.filterwarnings("error")
def test_a_least_score_beyond_all_finds_nothing_and_one_below_all_everything(index):
    query = QUERIES[0]
    everything = len(ranked(index, query, {}))
    assert everything > 100
    assert index.search(query, min_score=1e300).total == 0
    assert index.search(query, min_score=-1e300).total == everything


@pytest.mark.parametrize(
    ("wishes", "field", "reason"),
    [
        ({"offset": -1}, "offset", "must be at least 0"),
        ({"offset": 1.0}, "offset", "must be a whole number"),
        ({"sort": ["yeer:desc"]}, "sort", "unknown field 'yeer'"),
        *(
            (
                {"sort": [form]},
                "sort",
                f"{form!r} is not one field with a direction; write year:asc",
            )
            for form in ("year:down", "-year", "+year", "year desc", "year,tags:desc", "-year:desc")
        ),
        ({"sort": ["title:asc"]}, "sort", "'title' is searched, not filterable"),
        ({"facets": [3]}, "facets", "3 is a whole number; give a text"),
        ({"facets": ["year"] * 101}, "facets", "at most 100 items"),
        ({"distinct": "tags"}, "distinct", "'tags' has several values"),
        ({"distinct": "x"}, "distinct", "unknown field 'x'"),
        ({"min_score": float("nan")}, "min_score", "must be a finite number"),
        ({"min_score": "1"}, "min_score", "must be a number"),
        ({"max_facet_values": 0}, "max_facet_values", "must be at least 1"),
        ({"filter": "year >"}, "filter", "incomplete"),
        ({"facet": ["year"]}, "facet", "did you mean `facets`? the options are"),
        ({"rankr": "bm25"}, "rankr", "did you mean `ranker`?"),
        ({"limit": 5}, "limit", "use `k`; the options are"),
    ],
)
def test_invalid_options_are_explained(index, wishes, field, reason):
    with pytest.raises(QueryError) as caught:
        index.search("t03", **wishes)
    assert caught.value.field == field
    assert reason in caught.value.message


@pytest.mark.parametrize("ranker", RANKERS, ids=str)
def test_liked_documents_draw_their_like_near(index, ranker):
    query = QUERIES[0]
    plain = ranked(index, query, ranker)
    positive = list(plain)[20:22]
    moved = index.search(query, index.max_doc, positive=positive, **ranker)
    assert set(shown(moved)) >= set(plain)
    places = [list(plain).index(id_) for id_ in positive]
    assert all(shown(moved).index(id_) < at for id_, at in zip(positive, places, strict=True))
    assert set(shown(moved)[:5]) & set(positive)
    away = index.search(query, index.max_doc, negative=[next(iter(plain))], **ranker)
    assert away.hits[0].score < moved.hits[0].score
    assert away.total == len(plain) or away.total == len(away.hits)
    page = index.search(query, 5, positive=positive, offset=5, filter=FILTERS[0], **ranker)
    kept = [id_ for id_ in shown(moved) if passes(FILTERS[0], metadata(int(id_)))]
    assert len(kept) > 10
    assert shown(page) == kept[5:10]


def test_liked_documents_are_a_question_of_their_own(index):
    answer = index.search("", 4, positive=["7"])
    assert answer.hits[0].id == "7"
    assert answer.total >= 4
    assert index.search("", 4, negative=["7"]).hits == ()
    with pytest.raises(DocumentNotFound, match="nobody"):
        index.search("t03", positive=["nobody"])
    assert shown(index.search("t03", positive="7")) == shown(index.search("t03", positive=["7"]))
