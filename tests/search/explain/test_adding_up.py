"""Explanations add up to the score of the hit, whatever the index and the search."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klsa_search import build, open_index
from klsa_search.errors import QueryError
from klsa_search.search.rankers import RANKERS
from tests.support.worlds import as_if_large, random_documents

DIMENSION = 8
WORDS = [f"t{number:02d}" for number in range(40)]


def records(count, seed=0, repeats=1):
    randomness = np.random.default_rng(seed)
    texts = random_documents(count * repeats, 40, seed)
    return [
        {
            "id": f"{seed}-{number:03d}",
            "title": f"No {number}",
            "text": " ".join(texts[number * repeats : (number + 1) * repeats]),
            "kind": ("draft", "final")[number % 2],
            "year": 2000 + number % 7,
            "_vectors": {"m": randomness.normal(size=DIMENSION).tolist()},
        }
        for number in range(count)
    ]


@pytest.fixture(scope="module")
def indexes(tmp_path_factory):
    """Return indexes of all kinds, by the names that the test draws."""
    home, plain = tmp_path_factory.mktemp("explained"), {"language": "none"}
    made = {
        "plain": build(records(250), name="plain", home=home, **plain),
        "published": build(records(60), name="published", home=home, preset="paper", **plain),
        "squashed": build(records(60), name="squashed", home=home, spectral="squashing", **plain),
        "small": build(records(60), name="small", home=home, **plain),
        "passages": build(
            records(120, repeats=12), name="passages", home=home, passages=20, **plain
        ),
        "parts": build(
            [{**record, "_vectors": {}} for record in records(250)], name="parts", home=home,
            partitions=3, workers=1, **plain,
        ),
    }  # fmt: skip
    made["restricted"] = made["plain"].restricted("kind = final")
    with as_if_large():
        made["large"] = build(records(250), name="large", home=home, **plain)
        made["written"] = build(records(200), name="written", home=home, **plain)
    made["written"].add(records(60, seed=1))
    made["written"].delete([f"0-{number:03d}" for number in range(0, 200, 5)])
    made["ruled"] = open_index(made["large"].path.parent)
    made["ruled"].set_rules(
        [
            {"id": "up", "then": {"boost": [{"filter": "year >= 2004", "factor": 3}]}},
            {"id": "down", "then": {"boost": [{"filter": "kind = draft", "factor": 0.3}]}},
            {"id": "pin", "then": {"pin": [{"id": "0-003", "position": 2}]}},
        ]
    )
    yield made
    for index in made.values():
        index.close()


KINDS = (
    "plain", "published", "squashed", "large", "small", "written", "passages", "restricted",
    "ruled", "parts",
)  # fmt: skip
OPTIONS = {
    "ranker": st.sampled_from(sorted(RANKERS)),
    "exact": st.booleans(),
    "boosts": st.sampled_from([{"title": 2.0}, {"title": 0.1}, {"title": 5, "text": 0.25}]),
    "z": st.sampled_from([1, 20, 2_000]),
    "unit_length": st.booleans(),
    "coverage": st.sampled_from([0.0, 0.4]),
    "vector": st.just({"m": [1.0, -1.0] * (DIMENSION // 2)}),
    "filter": st.sampled_from(["kind = draft", "year = 2003", "year = 1900"]),
    "min_score": st.sampled_from([0.01, 0.3]),
    "sort": st.just(["year:desc"]),
    "distinct": st.just("year"),
    "offset": st.sampled_from([5, 60]),
    "group": st.just("passage"),
}
IN_PARTITIONS = ("unit_length", "coverage", "filter", "min_score", "sort", "distinct", "offset")


def assert_adds_up(found, best):
    """Check the sums of an explanation; scores are rounded relative to the best."""
    rounding = 3e-6 * best
    parts = (
        found.lexical, found.coverage, found.latent, found.expansion, found.undivided,
        found.passage, found.vector, *found.rules,
    )  # fmt: skip
    total = sum(part.value for part in parts if part is not None)
    assert total == pytest.approx(found.score, abs=rounding)
    for part in (found.lexical, found.coverage):
        if part is not None and part.terms:
            assert sum(term.value for term in part.terms) == pytest.approx(part.value, abs=rounding)
    if found.lexical is not None:
        assert sum(term.bm25 for term in found.lexical.terms) == pytest.approx(found.bm25)
    if found.latent is not None and found.latent.terms:
        added = sum(term.value for term in found.latent.terms)
        assert added == pytest.approx(found.latent.value, rel=1e-4, abs=1e-5)
    if found.coverage is not None:
        for term in found.coverage.terms:
            shares = sum(neighbour.share for neighbour in term.neighbours)
            assert shares <= 1 + 1e-6
            assert (shares > 0) == (term.near > 0)
            assert (term.value > 0) == (term.in_document + term.near > 0)
    if found.expansion is not None:
        sums = sum(seed.value for seed in found.expansion.seeds) + found.expansion.remainder
        assert sums == pytest.approx(found.expansion.value, abs=rounding)
        assert all(0 <= seed.weight <= 1 for seed in found.expansion.seeds)
        for seed in found.expansion.seeds:
            assert sum(shared.share for shared in seed.shared) <= 1 + 1e-9
    if found.passage is not None:
        inner = found.passage.explanation
        assert found.passage.value == pytest.approx(found.passage.weight * inner.score)
        assert_adds_up(inner, best)


@pytest.mark.slow
@given(
    kind=st.sampled_from(KINDS),
    words=st.lists(st.sampled_from([*WORDS, "unheard"]), min_size=1, max_size=12),
    k=st.sampled_from([3, 40, 120]),
    options=st.fixed_dictionaries({}, optional=OPTIONS),
)
def test_explanations_add_up(indexes, kind, words, k, options):
    index = indexes[kind]
    if index.name == "parts":
        options = {name: options[name] for name in IN_PARTITIONS if name in options}
    elif (
        not index.arrays.has_spectrum and RANKERS[options.get("ranker", "klsa")].scores_by == "lsi"
    ):
        with pytest.raises(QueryError, match="rebuild it with --ranker lsi"):
            index.search("t01", ranker=options.pop("ranker"))
    if index.name != "passages" or options.keys() & {"sort", "distinct"}:
        options.pop("group", None)
    query = " ".join(words)
    plain_hits = index.search(query, k, **options).hits
    hits = index.search(query, k, explain=True, **options).hits
    assert [(hit.id, hit.score) for hit in hits] == [(hit.id, hit.score) for hit in plain_hits]
    best = max((hit.score for hit in hits), default=0)
    for hit in hits:
        assert hit.explanation.id == hit.id
        assert hit.explanation.ranker == options.get("ranker", hit.explanation.ranker)
        assert hit.explanation.score == pytest.approx(hit.score, rel=1e-6)
        assert_adds_up(hit.explanation, max(best, 1))


@pytest.mark.parametrize("ranker", sorted(RANKERS))
def test_scores_of_every_ranker_add_up(index_of, ranker):
    index = index_of(records(60), preset="paper", language="none")
    hits = index.search("t01 t02", explain=True, ranker=ranker).hits
    assert hits
    for hit in hits:
        assert hit.explanation is not None
        assert_adds_up(hit.explanation, max(hits[0].score, 1))


def test_stop_words_alone_are_explained_whole(index_of):
    index = index_of(["To be or not to be", "The question", "A pump leaks"], language="english")
    (hit,) = index.search("to be or not to be", explain=True).hits
    assert hit.explanation.undivided.value == hit.score == hit.explanation.score
    assert index.explain("to be or not to be", "2").score == 0
