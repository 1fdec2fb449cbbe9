"""Which words of a query a hit must contain: any, most of their weight, or all."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klsa_search import build
from klsa_search.analysis import Analyzer
from klsa_search.errors import QueryError
from klsa_search.search.query.matching import MOST
from tests.search.query.conftest import WORDS, documents
from tests.support.examples import one_in

analyzer = Analyzer()
queries = st.lists(st.sampled_from([*WORDS, "unheard", "Networks"]), max_size=5).map(" ".join)
LIVE = [document for document in documents() if document["id"] not in ("3", "51")]
CONTAINED = {
    document["id"]: {*analyzer.terms(document["title"]), *analyzer.terms(document["text"])}
    for document in LIVE
}


def share(terms, contained):
    """The share of the weight of some terms that a document contains."""
    weights = {}
    for term in terms:
        n = sum(term in each for each in CONTAINED.values())
        if n:
            weights[term] = math.log1p((len(LIVE) - n + 0.5) / (n + 0.5))
    own = sum(weight for term, weight in weights.items() if term in contained)
    return own / sum(weights.values()) if weights else 1.0  # stop words, or nothing is found


def hits(results):
    return [(hit.id, hit.score) for hit in results]


@one_in(2)
@given(queries, st.sampled_from(["klsa", "bm25", "rm3"]), st.booleans())
def test_hits_are_those_of_any_that_contain_the_words(few_words, query, ranker, operators):
    options = {"ranker": ranker, "spelling": "off", "operators": operators}
    every = few_words.search(query, 60, **options)
    terms = set(analyzer.terms(query))
    shares = {id_: share(terms, contained) for id_, contained in CONTAINED.items()}
    expected = {
        "any": hits(every),
        "most": [hit for hit in hits(every) if shares[hit[0]] > MOST],
        "all": [hit for hit in hits(every) if math.isclose(shares[hit[0]], 1)],
    }
    for match, wanted in expected.items():
        found = few_words.search(query, 60, match=match, **options)
        assert hits(found) == wanted
        few = few_words.search(query, 3, offset=2, match=match, **options)
        assert hits(few) == wanted[2:5]
        assert found.total == few.total == len(wanted)
    assert set(expected["all"]) <= set(expected["most"])


@one_in(3)
@given(queries.filter(str.strip))
def test_sorting_facets_and_batches_keep_to_the_words(few_words, query):
    options = {"match": "all", "spelling": "off"}
    by_score = few_words.search(query, 60, **options)
    by_kind = few_words.search(query, 60, sort=["kind:desc"], facets=["kind"], **options)
    kinds = {document["id"]: document["kind"] for document in LIVE}
    scores = dict(hits(by_score))
    assert dict(hits(by_kind)) == scores
    assert [kinds[hit.id] for hit in by_kind] == sorted(
        (kinds[id_] for id_ in scores), key=str.casefold, reverse=True
    )
    assert sum(count for _, count in by_kind.facets["kind"].values) == len(scores)
    ((doc_ids, found),) = few_words.rank_many([query], 60, **options)
    assert dict(zip(few_words.ids(doc_ids), found.tolist(), strict=True)) == scores
    for hit in few_words.search(query, 1, explain=True, **options):
        assert hit.explanation.score == pytest.approx(hit.score)


ROWS = [
    {"id": "tv", "text": "a red television stand"},
    {"id": "set", "text": "a red set"},
    {"id": "fi", "text": "a red wifi antenna"},
    {"id": "two", "text": "a blue wi fi antenna"},
    {"id": "ant", "text": "a green ant"},
    *({"id": str(number), "text": f"filler number {number}"} for number in range(8)),
]


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    with build(ROWS, name="shop", home=tmp_path_factory.mktemp("home"), match="all") as index:
        index.set_synonyms(["tv, television", "red, scarlet => green"])
        index.add([{"id": "new", "text": "a red wi-fi television"}])
        yield index


@pytest.mark.parametrize(
    ("query", "found"),
    {
        "red": {"tv", "set", "fi", "ant", "new"},  # green counts as red
        "red tv": {"tv", "new"},
        "tv unheard": {"tv", "new"},
        "wi-fi": {"fi", "two", "new"},
        "wi-fi red": {"fi", "new"},
        "ant* red": {"fi", "ant"},
        "antenna -blue": {"fi"},
        '"wi fi" antenna': {"two"},
        "antenan blue": {"two"},  # corrected
        "unheard": set(),
        "the": set(),
    }.items(),
)
def test_synonyms_prefixes_and_corrections_count_as_the_word(shop, query, found):
    assert {hit.id for hit in shop.search(query, 20, operators=True)} == found


def test_examples_need_no_words(shop):
    assert shop.search("", 20, positive=["tv"]).total > 1


def test_an_index_has_a_default(shop):
    assert {hit.id for hit in shop.search("red antenna", 20, match="any")} > {"fi"}
    assert shop.settings.match == "all"
    with pytest.raises(QueryError, match="match = 'some'"):
        shop.search("red", match="some")
