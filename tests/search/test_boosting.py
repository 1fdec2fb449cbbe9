"""Boosts of fields: BM25F by worked example and by invariants."""

import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klsa_search import build
from klsa_search.errors import QueryError
from klsa_search.search.rankers import RANKERS

WORDS = ["wing", "drag", "flow", "the", "heat", "layer", "jet"]
QUERIES = ("wing", "wing drag", "drag drag flow", "heat of the layer", "jet unheard")
BOOSTS = ({"title": 4}, {"title": 0.1}, {"text": 0.25}, {"text": 7}, {"note": 5, "text": 2})
WEIGHTS = {"title": 3, "note": 2, "text": 1}
ALMOST_ONE = 1 + 1e-12


def documents():
    made = random.Random(5)
    return [
        {
            "id": str(number),
            "title": " ".join(made.choices(WORDS, k=made.randrange(4))),
            "note": " ".join(made.choices(WORDS, k=made.randrange(3))),
            "text": " ".join(made.choices(WORDS, k=made.randrange(1, 30))),
        }
        for number in range(80)
    ]


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    """With documents that were written and deleted later."""
    home = tmp_path_factory.mktemp("home")
    with build(documents()[:60], name="some", home=home, dimensions=5, search=WEIGHTS) as opened:
        opened.add(documents()[60:])
        opened.delete(["7", "65"])
        yield opened


def bm25f(index, query, boosts):
    """Score by the definition; K_d is what makes the counts as indexed the saturations they are."""
    scores = np.zeros(index.max_doc)
    analyzer, kernel = index.analyzer, index.arrays.query_kernel
    settings = index.settings
    living = index.arrays.live_docs()
    counted = [
        {
            "title": Counter(analyzer.terms(document.title)),
            "note": Counter(analyzer.terms(document.metadata["note"])),
            "text": Counter(analyzer.terms(document.text)),
        }
        for document in index.documents_at(np.flatnonzero(living).tolist())
    ]
    for term, times in Counter(analyzer.terms(query)).items():
        number = index.arrays.vocabulary.numbers.get(term)
        if number is None:
            continue
        saturations = dict(zip(*map(list, kernel.postings.of_term(number)), strict=True))
        for position, parts in zip(np.flatnonzero(living), counted, strict=True):
            plain = sum(WEIGHTS[name] * part[term] for name, part in parts.items())
            if plain:
                share = saturations[position] / 65536
                K = plain * (1 - share) / share
                boosted = sum(
                    boosts.get(name, 1) * WEIGHTS[name] * part[term] for name, part in parts.items()
                )
                weight = times * float(kernel.term_weights([number])[0])
                scores[position] += weight * (settings.k1 + 1) * boosted / (K + boosted)
    return scores


@pytest.mark.parametrize("boosts", [{}, *BOOSTS, {"title": 2, "text": 0.5}])
def test_scores_are_those_of_the_definition(index, boosts):
    for query in QUERIES:
        found = index.scores(query, ranker="bm25", boosts=boosts)
        np.testing.assert_allclose(found, bm25f(index, query, boosts), rtol=1e-3, atol=5e-4)


def test_a_worked_example(index_of):
    given = [
        {"id": "title", "title": "wing", "text": "flow flow flow"},
        {"id": "text", "title": "flow", "text": "wing flow flow"},
    ]
    opened = index_of(given, k1=1.0, b=0.0, search="title,text", burstiness=1)
    worth = np.log(1 + 0.5 / 2.5)
    for boost, saturation in ((1, 1 / 2), (3, 3 / 4), (0.25, 0.2)):
        scores = opened.scores("wing", ranker="bm25", boosts={"title": boost})
        np.testing.assert_allclose(scores, [2 * worth * saturation, worth], rtol=5e-4)


@pytest.mark.parametrize(
    "ranker", [name for name, row in RANKERS.items() if "boosts" in row.parameters]
)
def test_boosts_of_1_change_no_bit(index, ranker):
    for query in QUERIES:
        exact = {"exact": True} if ranker == "klsa" else {}
        plain = index.scores(query, ranker=ranker, **exact)
        for boosts in ({"title": ALMOST_ONE}, {"text": ALMOST_ONE}):
            assert np.array_equal(index.scores(query, ranker=ranker, boosts=boosts), plain)


@given(st.sampled_from(QUERIES), st.floats(0.01, 100), st.floats(0.01, 100))
def test_more_weight_never_lowers_and_leaves_other_documents_alone(index, query, one, other):
    less, more = sorted((one, other))
    low, high = (
        index.scores(query, ranker="bm25", boosts={"title": each}) for each in (less, more)
    )
    assert (low <= high).all()
    terms = set(index.analyzer.terms(query))
    living = np.flatnonzero(index.arrays.live_docs())
    for position, document in zip(living, index.documents_at(living.tolist()), strict=True):
        if not terms & set(index.analyzer.terms(document.title)):
            assert low[position] == high[position]


@pytest.mark.parametrize(
    ("ranker", "boosts"),
    [*(("klsa", boosts) for boosts in BOOSTS), ("bm25", BOOSTS[0]), ("rm3", BOOSTS[-1])],
    ids=str,
)
def test_all_ways_of_asking_agree(index, ranker, boosts):
    asked = {"ranker": ranker, "boosts": boosts}
    mask = np.arange(index.max_doc) % 3 > 0
    many = index.rank_many(QUERIES, 10, threads=2, **asked)
    for query, (positions, scores) in zip(QUERIES, many, strict=True):
        every = index.scores(query, **asked)
        assert positions.tolist() == np.argsort(-every, kind="stable")[: len(positions)].tolist()
        assert np.array_equal(scores, every[positions])
        within = index.rank(query, 10, mask=mask, **asked)
        assert np.array_equal(within[1], every[within[0]])
        assert mask[within[0]].all()
        first, *others = (index.search(query, 2, offset=at, **asked) for at in (0, 2, 4))
        found = [hit.score for page in (first, *others) for hit in page]
        assert found == scores[:6].tolist()
        lexical = index.search(query, ranker="bm25").total
        assert first.total == lexical if ranker == "bm25" else first.total >= lexical


def test_alpha_0_is_bm25(index):
    asked = {"boosts": "title^5,text^0.5"}
    klsa = index.scores("wing drag", alpha=0, **asked)
    assert np.array_equal(klsa, index.scores("wing drag", ranker="bm25", **asked))


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"title": 0}, "must be from 0.01 to 100"),
        ({"title": 101}, "must be from 0.01 to 100"),
        ({"title": float("nan")}, "must be from 0.01 to 100"),
        ({"title": "much"}, "is 'much', which is not a number"),
        ({"title": True}, "not a number"),
        ({"title": 10**400}, "not a number"),
        ("title^", "not a number"),
        ("title,,text", "blank"),
        ({"author": 2}, "searched fields are: `title`, `note`, `text`"),
        ({"author": 1}, "`author` is not a searched field"),
        ("title=2", "`title=2` is not a searched field"),
        ("title2", "`title2` is not a searched field"),
        (3, "give `name"),
    ],
)
def test_invalid_boosts_are_refused(index, wrong, reason):
    with pytest.raises(QueryError, match="boosts") as refused:
        index.search("wing", boosts=wrong)
    assert reason in refused.value.message


def test_text_and_mapping_are_one(index):
    assert index.search("wing").parameters["boosts"] == ""
    assert index.search("wing", boosts=None).parameters["boosts"] == ""
    for boosts in ({"title": 2, "note": 0.5, "text": 1}, "note^0.5, title^2"):
        assert index.search("wing", boosts=boosts).parameters["boosts"] == "note^0.5,title^2"


@pytest.mark.slow
def test_boosts_of_the_default_are_those_of_one_part(tmp_path):
    """But for K, whose features partitions round before they compute with them."""
    pair = [
        build(documents(), name="one", home=tmp_path, search=WEIGHTS),
        build(documents(), name="in", home=tmp_path, search=WEIGHTS, partitions=4, workers=1),
    ]
    for query, boosts in zip(QUERIES, BOOSTS, strict=True):
        one, parts = (
            each.search(query, 80, boosts=boosts, exact=True, explain=True) for each in pair
        )
        expected, found = ({hit.id: hit.score for hit in each.hits} for each in (one, parts))
        assert parts.total == one.total
        for id_, score in expected.items():
            assert found.get(id_, 0) == pytest.approx(score, rel=0.02, abs=0.02)
        for hit in parts.hits:
            assert hit.explanation.score == pytest.approx(hit.score, rel=1e-4)
