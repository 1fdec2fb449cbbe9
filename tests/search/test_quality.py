"""Quality: covering more of a query is never worse; words of one document beat random ones."""

from contextlib import closing

import numpy as np
import pytest

from klsa_search import build
from klsa_search.search.engine.query_terms import QueryTerms
from klsa_search.search.explain.quality import Calibration, Quality, coverage_of
from tests.support.worlds import topic_documents

PRESETS = ("default", "paper")


@pytest.fixture(scope="module", autouse=True)
def _few_queries():
    """A calibration is learned from 600 queries; some suffice here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("klsa_search.search.explain.quality.QUERIES", 60)
        yield


@pytest.fixture(scope="module", params=PRESETS)
def index(request, index_of):
    documents = topic_documents(topics=8, each=15)
    records = [{"id": str(at), "text": text} for at, text in enumerate(documents)]
    return index_of(records, language="none", preset=request.param)


def test_qualities_lie_between_0_and_1_whatever_the_ranker(index):
    for query in ("a1 a2 a3", "a1 b2 c3 d4", "a1", "a1 unheard of", "a1 a1 a1"):
        for ranker in ("klsa", "bm25", "rm3"):
            answer = index.search(query, ranker=ranker, quality=True)
            assert all(0 <= hit.quality < 1 for hit in answer)
            assert answer.quality == max(hit.quality for hit in answer)
            assert answer.good_match is (answer.quality >= 0.5)


def test_words_that_belong_together_fit_better_than_words_that_do_not(index):
    together = [index.search(f"{t}1 {t}2 {t}3 {t}4", quality=True).quality for t in "abcdefgh"]
    apart = [index.search(f"{t}1 a2 d3 g4", quality=True).quality for t in "bcef"]
    assert min(together) > max(apart)


def test_unknown_words_lower_the_quality(index):
    known, partly = (index.search(q, quality=True).quality for q in ("a1 a2", "a1 a2 unheard"))
    assert known > partly
    nothing = index.search("entirely unheard", quality=True)
    assert (nothing.quality, nothing.good_match, len(nothing)) == (0.0, False, 0)


def test_quality_is_returned_on_request_only(index):
    answer = index.search("a1 a2")
    assert answer.quality is answer.good_match is None
    assert all(hit.quality is None for hit in answer)


def test_shares_follow_the_formula(index):
    snapshot = index.arrays
    numbers = [snapshot.vocabulary.numbers[term] for term in ("a1", "b1")]
    query = QueryTerms.of(numbers)
    documents = np.arange(len(snapshot))
    found, contain_all = coverage_of(snapshot, ["a1", "b1"], documents)
    held = np.zeros((len(snapshot), 2))
    for column, term in enumerate(query.numbers.tolist()):
        holders, saturations = snapshot.query_kernel.postings.of_term(term)
        held[holders, column] = saturations * snapshot.query_kernel.postings.step
    near = 0.0 if snapshot.neighbours is None else 4 * (snapshot.neighbours @ held)
    worth = snapshot.query_kernel.term_weights(query.numbers).astype(np.float64)
    expected = ((held + near) / (held + near + 1)) @ worth / worth.sum()
    assert found == pytest.approx(expected, rel=1e-5, abs=1e-9)
    assert contain_all.tolist() == (held > 0).all(axis=1).tolist()
    shares, contain_all = coverage_of(snapshot, ["a1", "b1", "unheard"], documents)
    assert (shares <= found).all()
    assert not contain_all.any()


def test_a_calibration_is_monotone_and_the_same_every_time(index):
    found = Quality(index.arrays, 0).calibration
    assert found == Quality(index.arrays, 0).calibration
    shares = np.linspace(0.0, 1.0, 50)
    for terms in (1, 2, 7, 100):
        some, exact = (found.qualities(shares, terms, np.full(50, each)) for each in (False, True))
        assert some[0] == exact[0] == 0
        assert (np.diff(some) >= 0).all()
        assert (exact >= some).all()


def test_writes_do_not_change_the_calibration(tmp_path):
    documents = topic_documents(topics=4, each=10)
    records = [{"id": str(at), "text": text} for at, text in enumerate(documents)]
    with_writes = build(records, name="one", home=tmp_path, language="none")
    without = build(records, name="two", home=tmp_path, language="none")
    with_writes.add([{"id": "new", "text": "z1 z2 z3"}])
    with_writes.delete(["new"])
    query = "a1 a2 b3"
    found, expected = (one.search(query, quality=True) for one in (with_writes, without))
    # The mean length in force may be a step from that of a build: BM25 differs by some thousandths.
    qualities = [hit.quality for hit in expected]
    assert [hit.quality for hit in found] == pytest.approx(qualities, abs=0.01)


def test_an_index_without_documents_or_pairs_of_terms_has_a_quality_too(index_of):
    empty = index_of([])
    assert empty.search("anything", quality=True).quality == 0
    one = index_of([{"id": "1", "text": "word"}])
    assert one.search("word", quality=True).good_match


def test_a_share_of_zero_does_not_match():
    found = Calibration(1.0, 0.5, 0.0).qualities(np.array([0.0, 0.5]), 2, np.zeros(2, np.bool_))
    assert found == pytest.approx([0.0, 1 / (1 + 2**-0.5)])


@pytest.mark.filterwarnings("error")
def test_a_quality_far_from_chance_is_0():
    found = Calibration(500.0, 0.0, 0.0).qualities(np.array([0.01]), 2, np.zeros(1, np.bool_))
    assert found.tolist() == [0.0]


@pytest.mark.parametrize("count", [1, 2, 6])
def test_a_handful_of_documents_teaches_nothing(count, tmp_path):
    texts = ["Coolant leaks from a hose.", "Bald tyres slip.", "Oil of a pump."] * 2
    documents = [{"id": str(n), "text": f"{text} no{n}"} for n, text in enumerate(texts[:count])]
    with closing(build(documents, name="few", home=tmp_path)) as index:
        found = index.search("coolant hose", quality=True)
        assert found.good_match
        assert found.quality < 0.99
        assert not index.search("submarines", quality=True).good_match


def test_the_only_document_with_a_rare_word_is_a_match(tmp_path):
    texts = topic_documents(topics=8, each=30)
    records = [{"id": str(at), "title": "A note", "text": text} for at, text in enumerate(texts)]
    records[40] |= {"title": "Ultramarine", "text": f"{texts[40]} {texts[41]} {texts[42]}"}
    records.append({"id": "other", "text": "azure a1 a2"})
    with closing(build(records, name="rare", home=tmp_path, language="none")) as index:
        found = index.search("ultramarine", quality=True)
        assert found[0].id == "40"
        assert found.good_match
        assert not index.search("ultramarine unheard of words", quality=True).good_match
