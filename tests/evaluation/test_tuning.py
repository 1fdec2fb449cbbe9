"""Tuning in small worlds whose best settings are known."""

from dataclasses import replace

import pytest

from klsa_search.collection.model import Topic
from klsa_search.errors import CollectionError
from klsa_search.evaluation.tuning import tune, tune_by_halves
from klsa_search.indexing.build import build
from tests.evaluation.worlds import few_candidates, judgement, topical

BROKEN = {
    "alpha": 1.0, "hold_back": 0.0, "spectral": "truncation", "dimensions": 1,
    "coverage": 0.0, "latent": 0.0,
}  # fmt: skip
"""Expansion that can only hurt: one dimension, in which all documents are alike."""


@pytest.fixture(autouse=True)
def _few_candidates(monkeypatch):
    few_candidates(monkeypatch)


@pytest.fixture
def index_of(tmp_path):
    """Index of the topical world, with other settings than the default's."""
    opened = []

    def built(documents=None, **settings):
        chosen = {"language": "none", "dimensions": 20, "latent_dimensions": 10, **settings}
        opened.append(build(documents or topical(), name="world", home=tmp_path, **chosen))
        return opened[-1]

    yield built
    for index in opened:
        index.close()


def asked(topics="abcdef", each=4):
    """Queries of one word; what is on its topic is relevant, whether it holds the word or not."""
    queries = [Topic(id=f"{t}{n}", text=f"{t}{n}") for t in topics for n in range(each)]
    judged = [judgement(q.id, d.id) for q in queries for d in topical() if d.id[0] == q.id[0]]
    return queries, judged


def test_judgements_that_want_expansion_get_it(index_of):
    index = index_of(alpha=0.0)
    tuning = tune(index, *asked())
    assert tuning.sure
    assert tuning.changes["alpha"] > 0
    assert tuning.held_out.tuned > tuning.held_out.default + 0.2
    assert tuning.held_out.low > 0.1
    again = tune(index, *asked(), measure="ndcg@10").as_json()
    assert {"measure", "default", "tuned", "low", "high", "p", "agreement", "sure"} <= set(again)
    assert (again["measure"], again["evidence"], again["queries"]) == ("ndcg@10", "judgements", 24)


@pytest.mark.slow
def test_tuning_without_a_gain_changes_nothing(index_of):
    # Every word of the first topic's documents finds what the default already ranks first.
    index = index_of()
    queries = [Topic(id=str(n), text=topical()[n].text) for n in range(0, 60, 5)]
    judged = [judgement(q.id, topical()[int(q.id)].id) for q in queries]
    tuning = tune(index, queries, judged)
    assert tuning.held_out.default == 1
    assert not tuning.sure
    assert tuning.changes == {}


def test_halves_find_out_that_expansion_helps_by_more_than_a_margin(index_of):
    tuning = tune_by_halves(index_of(alpha=0.0))
    assert (tuning.evidence, tuning.measure) == ("halves", "map")
    assert tuning.sure
    assert tuning.changes["alpha"] > 0
    gain = tuning.held_out.low / tuning.held_out.default
    assert gain > tuning.margin == 0.05
    assert not replace(tuning, margin=gain + 0.01).sure  # a small gain on halves is not enough


@pytest.mark.slow
def test_halves_find_out_that_an_expansion_hurts(index_of):
    tuning = tune_by_halves(index_of(topical(topics=8, each=10), **BROKEN))
    assert tuning.margin == 0.25
    assert tuning.sure
    assert list(tuning.changes) == ["alpha"]
    assert tuning.changes["alpha"] < 1
    assert tuning.held_out.tuned > 1.2 * tuning.held_out.default


@pytest.mark.slow
@pytest.mark.parametrize(("ranker", "margin"), [("bm25", 0.05), ("lsi", 0.25)])
def test_another_ranker_is_more_or_less_expansion(index_of, ranker, margin):
    tuning = tune_by_halves(index_of(ranker=ranker, alpha=0.9))
    assert tuning.margin == margin
    assert tuning.sure is (ranker == "bm25")


def test_short_documents_cannot_be_halved(index_of):
    short = [{"id": str(number), "text": "two words"} for number in range(300)]
    index = index_of([*short, *({"id": d.id, "text": d.text} for d in topical())])
    with pytest.raises(CollectionError, match="60 of the 360 documents of index `world`"):
        tune_by_halves(index)


def test_too_few_queries(index_of):
    index = index_of()
    queries, judged = asked(topics="a", each=3)
    with pytest.raises(CollectionError, match="3 judged queries"):
        tune(index, queries, judged)
    renamed = [Topic(id="x" + query.id, text=query.text) for query in queries]
    with pytest.raises(CollectionError, match="no judgement names a relevant document"):
        tune(index, renamed, asked()[1])
    strange = [replace(judgement, document_id="?") for judgement in asked()[1]]
    with pytest.raises(CollectionError, match="no judgement names a relevant document"):
        tune(index, asked()[0], strange)
    refused = [replace(judgement, grade=0) for judgement in asked()[1]]
    with pytest.raises(CollectionError, match="no judgement names a relevant document"):
        tune(index, asked()[0], refused)
