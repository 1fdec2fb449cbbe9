from typing import get_args

import numpy as np
import pytest

from klsa_search.collection.model import Topic
from klsa_search.core.config import Settings
from klsa_search.core.parameters import RankerName
from klsa_search.errors import CollectionError
from klsa_search.evaluation.measures import DEPTH, rank_best
from klsa_search.evaluation.systems import (
    SYSTEMS,
    all_systems,
    compare_rankers,
    index_judgements,
    judge_runs,
    judge_systems,
)
from tests.evaluation.worlds import FakeIndex, tiny
from tests.support.plugins import forget, use, write_template


def test_a_ranking_is_what_the_index_gives():
    index = FakeIndex({"q": [0.0, 2.0, -1.0, 3.0, 0.0]}, size=5)
    (ranking,) = rank_best(index, [Topic(id="1", text="q")])
    assert ranking.document_ids == ("d3", "d1")
    assert ranking.scores.tolist() == [3, 2]


def test_no_more_documents_are_judged_than_trec_does():
    index = FakeIndex({"q": np.arange(1, 1501).tolist()}, size=1500)
    (ranking,) = rank_best(index, [Topic(id="1", text="q")])
    assert len(ranking.document_ids) == DEPTH == 1000


def test_an_index_without_documents_answers_nothing():
    (ranking,) = rank_best(FakeIndex({}, size=0), [Topic(id="1", text="q")])
    assert ranking.document_ids == ()


def test_parameters_reach_the_index():
    index, collection = tiny()
    list(rank_best(index, collection.queries(), ranker="klsa", alpha=0.5, z=3))
    assert index.asked == [{"ranker": "klsa", "alpha": 0.5, "z": 3}] * 2


def test_every_system_is_judged_on_its_own_preset(tmp_path):
    index, collection = tiny()
    presets = []

    def index_of(preset, expansion):
        presets.append(preset)
        return index

    measured = judge_systems(collection, index_of, run_dir=tmp_path)
    assert list(measured) == ["bm25", "lsi", "paper", "klsa"]
    assert presets == ["default", "default", "paper", "default"]
    # d1 and d3 at ranks 2 and 3; the other query finds nothing and counts 0.
    assert measured["bm25"].means()["map"] == pytest.approx((1 / 2 + 2 / 3) / 2 / 2)
    names = [f"tiny.{system.name}.run" for system in SYSTEMS]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)


def test_unjudged_queries_are_not_searched():
    index, collection = tiny()
    collection.asked.append(Topic(id="3", text="first"))
    judge_systems(collection, lambda *_: index)
    assert len(index.asked) == 2 * len(SYSTEMS)


def test_a_comparison_has_every_ranker_and_the_published_method(tmp_path, monkeypatch):
    rankers = [system.ranker for system in all_systems() if system.preset == "default"]
    assert rankers == list(get_args(RankerName))
    assert [s.name for s in all_systems() if s.preset == "paper"] == ["paper"]
    names = [system.name for system in all_systems()]
    assert len(set(names)) == len(names)
    assert Settings.of_preset().ranker in names
    use(monkeypatch, *write_template(tmp_path))
    of_template = ["bm25-plus", "bm25l", "dph", "lm-dirichlet"]
    assert [system.name for system in all_systems()] == [*rankers, *of_template, "paper"]
    forget()


def test_only_the_chosen_systems_and_measures_are_run():
    index, collection = tiny()
    measured = judge_systems(collection, lambda *_: index, systems=SYSTEMS[:1], measures=("p@10",))
    assert list(measured) == ["bm25"]
    assert measured["bm25"].means() == {"p@10": pytest.approx(0.2 / 2)}
    # The second query finds nothing.
    assert measured["bm25"].answered == 1


def test_runs_of_other_systems_are_judged_on_the_same_queries(tmp_path):
    _, collection = tiny()
    path = tmp_path / "other.run"
    path.write_text("2 Q0 d0 1 5 t\nunjudged Q0 d1 1 5 t\n")
    measured = judge_runs(collection, {"other": path})
    assert measured["other"].values("map") == [0.0, 1.0]
    assert measured["other"].answered == 1


@pytest.mark.parametrize("content", ["", "01 Q0 d1 1 5 t\n"])
def test_a_run_that_answers_nothing_is_that_of_another_collection(content, tmp_path):
    _, collection = tiny()
    path = tmp_path / "other.run"
    path.write_text(content)
    with pytest.raises(CollectionError, match=r"none of the 2 judged queries of tiny"):
        judge_runs(collection, {"other": path})


TEXTS = {"a": "Coolant leaks.", "b": "The pump leaks.", "c": "Wet roads.", "d": "A hose."}


@pytest.fixture
def index(copy_of):
    return copy_of(TEXTS, dimensions=2)


def test_rankers_are_compared_on_the_judgements_of_the_index(index):
    for query, id_, grade in (("leaks", "b", 1), ("leaks", "a", 0), ("roads", "c", 1)):
        index.judge(query, id_, grade)
    queries, judgements, gone = index_judgements(index)
    assert [(query.id, query.text) for query in queries] == [("1", "leaks"), ("2", "roads")]
    measured, compared = compare_rankers(index, queries, judgements, ["bm25", "rm3"])
    first = [hit.id for hit in index.search("leaks", ranker="bm25").hits]
    assert measured["bm25"].queries["1"]["map"] == 1 / (1 + first.index("b"))
    assert measured["bm25"].queries["2"]["map"] == 1
    assert compared.baseline == "bm25"
    assert gone == 0


def test_deleted_documents_are_left_out_and_counted(index):
    with pytest.raises(CollectionError, match="has no judgements"):
        index_judgements(index)
    index.judge("leaks", "a", 1)
    index.judge("roads", "c", 1)
    index.delete(["c"])
    queries, judgements, gone = index_judgements(index)
    assert ([each.document_id for each in judgements], gone) == (["a"], 1)
    measured, _ = compare_rankers(index, queries, judgements, ["bm25"])
    assert list(measured["bm25"].queries) == ["1"]
    index.delete(["a"])
    with pytest.raises(CollectionError, match="only 2 of deleted documents"):
        index_judgements(index)
