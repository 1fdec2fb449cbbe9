"""What a search does for people who type: ids, completions of the last word, short words."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klsa_search import build
from klsa_search.errors import QueryError
from klsa_search.search.query.term_dictionary import COMPLETIONS
from tests.support.examples import one_in

WORDS = ["sup", "pump", "leak", "report", "valve"]
IDS = ["SUP-1058", "sup-2", "Doc-7", "a/b.md", "été-1", "C3", "12", "leak", "late-1"]


def rows():
    for number, id_ in enumerate(IDS):
        words = [WORDS[(number + step) % len(WORDS)] for step in range(3)]
        yield {"id": id_, "text": " ".join(words), "price": number}


@pytest.fixture(scope="module")
def tickets(tmp_path_factory):
    some = [*rows()]
    gone = {"id": "gone-1", "text": "pump"}
    with build([*some[:-1], gone], name="tickets", home=tmp_path_factory.mktemp("home")) as index:
        index.add([some[-1], {**some[1], "text": "valve replaced"}])
        index.delete(["gone-1"])
        yield index


def ids(results):
    return [hit.id for hit in results]


NAMED = ["SUP-1058", "sup-1058", " sup-2 ", "SUP-2", "doc-7", "A/B.MD", "ÉTÉ-1", "c3", "late-1"]


@one_in(2)
@given(st.sampled_from(NAMED), st.sampled_from(["klsa", "bm25", "rm3"]))
def test_the_document_of_an_id_comes_first(tickets, query, ranker):
    by_words, scores = tickets.rank(query, 20, ranker=ranker, operators=False, spelling="off")
    words = dict(zip(tickets.ids(by_words), scores.tolist(), strict=True))
    found = tickets.search(query, 20, ranker=ranker, match="all" if not words else None)
    named = found.interpretation.id
    assert named.casefold() == query.strip().casefold()
    assert ids(found) == [named, *(id_ for id_ in words if id_ != named)]
    assert [hit.score for hit in found] == [words.get(id_, 0.0) for id_ in ids(found)]
    assert found.total == len(found)
    assert found.interpretation.unknown == ()
    pages = [ids(tickets.search(query, 2, offset=at, ranker=ranker)) for at in range(0, 20, 2)]
    assert [id_ for page in pages for id_ in page] == ids(found)


@pytest.mark.parametrize("query", ["SUP 1058", "sup1058", "SUP–1058", "sup_1058"])
def test_an_id_of_letters_and_digits_is_found_with_any_sign(tickets, query):
    found = tickets.search(query, match="all")
    assert found.interpretation.id == "SUP-1058"
    assert ids(found) == ["SUP-1058"]


@pytest.mark.parametrize("query", ["1058", " 1058 ", "#1058", "١٠٥٨"])
def test_a_number_that_no_document_contains_finds_the_id_with_it(tickets, query):
    found = tickets.search(query, match="all")
    assert (found.interpretation.id, ids(found)) == ("SUP-1058", ["SUP-1058"])


@pytest.mark.parametrize("partitions", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_number_of_several_ids_or_of_documents_is_a_word(tmp_path, partitions):
    ids_ = ["a-100", "b-100", "a-2024", "310", "a-310", "a-99", "a-2.105"]
    ids_ += [f"{a}/{n}" for a in "abc" for n in range(200, 210)]
    records = [{"id": id_, "text": "in 2024", "for": id_[0]} for id_ in ids_]
    options = {"partitions": partitions, "workers": 1}
    with build(records, name="numbers", home=tmp_path, **options) as index:
        numbers = ["100", "310", "2024", "99", "105", *map(str, range(200, 210))]
        assert {index.search(number).interpretation.id for number in numbers} == {None}
        index.add([{"id": "a-1777", "text": "other"}, {"id": "a-777", "text": "alone"}])
        assert ids(index.search("777")) == ["a-777"]
        index.add([{"id": "b.777", "text": "no more"}])
        assert ids(index.search("777")) == []
        index.delete(["a-777"])
        assert ids(index.search("777")) == ["b.777"]
        # What a view, a filter, a mask or the least score hides does not count.
        assert ids(index.restricted("for = b").search("200")) == ["b/200"]
        assert ids(index.restricted("for = b").search("1777")) == []
        nothing = np.zeros(0, np.int64)
        for options in ({"filter": "for = a"}, {"mask": nothing}, {"min_score": 0.1}):
            hidden = index.search("777", **options)
            assert (ids(hidden), hidden.interpretation.id) == ([], None)


@pytest.mark.parametrize("query", ["12", "leak", "gone-1", "SUP-1058 pump", "none-1", "sup"])
def test_numbers_words_and_other_texts_are_not_ids(tickets, query):
    assert tickets.search(query).interpretation.id is None


def test_filters_facets_and_sorting_include_the_document(tickets):
    found = tickets.search("doc-7", 20, facets=["price"], sort=["price:desc"])
    assert [value for value, _ in found.facets["price"].values] == [2]
    assert ids(found) == ["Doc-7"]
    assert found.total == 1
    assert tickets.search("doc-7", filter="price > 2").total == 0
    assert tickets.search("sup-1058", sort=["price:asc"])[0].id == "SUP-1058"
    assert tickets.search("doc-7", min_score=0.1).total == 0


def test_all_words_are_required_of_other_documents(tickets):
    found = tickets.search("sup-1058", 20, match="all")
    assert ids(found) == ["SUP-1058"]  # no document contains 1058


def test_the_document_is_a_good_match_with_an_explanation(tickets):
    found = tickets.search("doc-7", quality=True, explain=True)
    assert found.good_match
    assert found[0].quality == 1
    assert found[0].explanation.score == found[0].score == 0


def test_batches_find_no_ids(tickets):
    ((doc_ids, _),) = tickets.rank_many(["doc-7"], 20)
    assert len(doc_ids) == 0


TEXTS = {
    "word": "red flow",
    "completion": "red flower",
    "other": "red flowers and a flute",
    "rare": "blue floats",
    "plain": "red things",
    **{str(number): f"green flower number {number}" for number in range(9)},
}


@pytest.fixture(scope="module")
def typed(tmp_path_factory):
    given = [{"id": id_, "text": text} for id_, text in TEXTS.items()]
    home = tmp_path_factory.mktemp("home")
    with build(given[:-2], name="typed", home=home, ranker="bm25") as index:
        index.add(given[-2:])
        yield index


def test_the_last_word_is_completed(typed):
    found = typed.search("red flo", prefix="last")
    assert found[0].id in ("word", "completion", "other")
    assert found.interpretation.prefixes.keys() == {"flo*"}
    assert found.interpretation.unknown == ()
    assert found.interpretation.corrections == {}
    assert len(found.interpretation.prefixes["flo*"]) <= COMPLETIONS
    assert typed.search("red flo") == found  # no document contains it as it is
    assert typed.search("red flow").interpretation.prefixes == {}


def test_the_word_as_typed_is_not_below_a_completion(typed):
    found = ids(typed.search("red flow", 20, prefix="last"))
    assert found.index("word") < found.index("completion")
    assert "5" in found  # flower is much more frequent


def test_all_words_may_be_completed(typed):
    found = typed.search("red fl", 20, prefix="last", match="all")
    assert set(ids(found)) == {"word", "completion", "other"}
    assert ids(typed.search("blue fl", 20, prefix="last", match="all")) == ["rare"]
    assert typed.search("red f", 20, prefix="last", match="all").total == 3
    assert typed.search("red fl ", 20, match="all").total == 4  # the unknown word does not count


@pytest.mark.parametrize("query", ["red flo ", '"red flo"', "+flo", "the", "", "flo*", "red"])
def test_nothing_else_is_completed(typed, query):
    assert typed.search(query, 20, prefix="last") == typed.search(query, 20)


@given(st.lists(st.sampled_from(["red", "flow", "flo", "gre", "the", "unheard"]), max_size=4))
def test_completions_only_add(typed, words):
    query = " ".join(words)
    assert typed.search(query, 20) == typed.search(query, 20, prefix=None)
    without = {hit.id: hit.score for hit in typed.search(query, 20, spelling="off")}
    found = {hit.id: hit.score for hit in typed.search(query, 20, prefix="last", spelling="off")}
    assert without.keys() <= found.keys()
    assert all(found[id_] >= score for id_, score in without.items())


def test_other_prefixes_are_refused(typed):
    with pytest.raises(QueryError, match="prefix = 'first': must be 'last'"):
        typed.search("red", prefix="first")


def test_short_words_are_corrected_if_nothing_else_is_found(few_words):
    found = few_words.search("drg")
    assert found.interpretation.corrections == {"drg": "drag"}
    assert ids(found) == ids(few_words.search("drag"))
    assert ids(few_words.search("drg wing")) == ids(few_words.search("wing"))
    assert few_words.search("drg wing").interpretation.unknown == ("drg",)
    assert few_words.search("drg", spelling="off").total == 0
    suggested = few_words.search("drg", spelling="suggest")
    assert suggested.total == 0
    assert suggested.interpretation.did_you_mean == "drag"
    assert len(few_words.rank("drg")[0]) == 0


SHOP = [
    "garden hose of rubber", "coffee machine with a grinder", "desk lamp with a dimmer",
    "headphones, black", "leg of lamb", "laptop with a case for phones", "heads and tails",
    *(f"number{chr(97 + number % 26)}{chr(97 + number // 26)} of the rest" for number in range(60)),
]  # fmt: skip


@pytest.mark.parametrize("partitions", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("query", "first", "corrections"),
    [
        ("gardenhoze", "0", {"gardenhoze": "garden hose"}),
        ("co fee machine", "1", {"co fee": "coffee"}),
        ("coffe mashine", "1", {"coffe": "coffee", "mashine": "machine"}),
        ("hed phones", "3", {"hed phones": "headphones"}),
        ("garden hoze", "0", {"hoze": "hose"}),
        ("gardn hoze", "0", {"gardn": "garden", "hoze": "hose"}),
    ],
)
def test_words_run_together_or_apart_may_be_misspelt(
    index_of, partitions, query, first, corrections
):
    options = {"partitions": partitions, "workers": 1}
    index = index_of(SHOP, **options)
    for match in ("any", "all"):
        found = index.search(query, match=match)
        assert found[0].id == first
        assert found.interpretation.corrections == corrections
        assert found.interpretation.unknown == ()


@pytest.mark.parametrize(
    ("query", "unknown"),
    [
        ("garden HP", ("HP",)),
        ("TV garden", ("TV",)),
        ("Garden TV", ("TV",)),
        ("garden HP -coffee", ("HP",)),
        ("garden pc", ("pc",)),
        ("coffee pc", ("pc",)),
    ],
)
def test_a_word_beside_an_abbreviation_that_no_document_has_is_searched(copy_of, query, unknown):
    index = copy_of(SHOP)
    found = index.search(query)
    assert found.total == index.search(query, spelling="off").total > 0
    assert (found.interpretation.unknown, found.interpretation.corrections) == (unknown, {})
    index.set_synonyms({unknown[0]: ["hose"]})
    assert list(index.search(query).interpretation.synonyms) == [*unknown]


def test_a_word_with_a_hyphen_that_no_document_has_is_one_word(copy_of):
    index = copy_of(SHOP, ranker="bm25")
    assert ids(index.search("head-phones")) == ["3"]
    assert index.search("head-phones").interpretation.variants == {"head-phones": "headphones"}
    index.add([{"id": "new", "text": "a head phones shop"}])
    assert set(ids(index.search("head-phones"))) == {"3", "5", "6", "new"}
