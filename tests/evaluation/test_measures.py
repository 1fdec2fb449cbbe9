import math

import ir_measures
import numpy as np
import pytest

from klsa_search.errors import CollectionError
from klsa_search.evaluation.measures import MEASURES, Judge, Ranking
from tests.evaluation.worlds import judgement


def ranking(query, *documents):
    return Ranking(query, documents, np.zeros(len(documents)))


def test_worked_example():
    # d1 at rank 2 and d3 at rank 4 of three relevant: AP = (1/2 + 2/4 + 0) / 3.
    judge = Judge([judgement("q", document) for document in ("d1", "d3", "gone")])
    values = judge.score(ranking("q", "d0", "d1", "d2", "d3"))
    assert list(values) == list(MEASURES)
    assert values["map"] == pytest.approx((1 / 2 + 2 / 4) / 3)
    assert values["p@10"] == pytest.approx(2 / 10)
    assert values["recall@1000"] == pytest.approx(2 / 3)
    ideal = 1 + 1 / math.log2(3) + 1 / math.log2(4)
    assert values["ndcg@10"] == pytest.approx((1 / math.log2(3) + 1 / math.log2(5)) / ideal)


def test_grade_says_relevant_and_gain_says_how_much():
    # Grades that run downwards, as in cran: grade 1 is best and its gain is 4.
    judge = Judge([judgement("q", "a", 4, 1), judgement("q", "b", 1, 4), judgement("q", "c", -1)])
    values = judge.score(ranking("q", "c", "a", "b"))
    assert values["map"] == pytest.approx((1 / 2 + 2 / 3) / 2)
    best = 4 + 1 / math.log2(3)
    assert values["ndcg@10"] == pytest.approx((1 / math.log2(3) + 4 / math.log2(4)) / best)


def test_the_order_of_the_ranking_counts_and_not_the_ids_or_scores():
    judge = Judge([judgement("q", "a")])
    assert judge.score(ranking("q", "a", "z"))["map"] == 1.0
    assert judge.score(ranking("q", "z", "a"))["map"] == 0.5


def test_a_judged_query_without_an_answer_counts_0():
    judge = Judge([judgement("1", "a"), judgement("2", "a"), judgement("3", "a")])
    measured = judge.measure([ranking("2", "a"), ranking("3"), ranking("not judged", "a")])
    assert measured.values("map") == [0.0, 1.0, 0.0]
    assert list(measured.queries) == ["1", "2", "3"]
    assert measured.means() == dict.fromkeys(("map", "ndcg@10", "recall@1000"), 1 / 3) | {
        "p@10": pytest.approx(0.1 / 3)
    }


def test_a_query_judged_irrelevant_throughout_counts_as_in_ir_measures():
    judgements = [judgement("1", "a"), judgement("2", "a", 0)]
    qrels = {"1": {"a": 1}, "2": {"a": 0}}
    run = {"1": {"a": 1.0}, "2": {"a": 1.0}}
    theirs = ir_measures.calc_aggregate([ir_measures.AP], qrels, run)[ir_measures.AP]
    ours = Judge(judgements).measure([ranking("1", "a"), ranking("2", "a")]).means()["map"]
    assert ours == theirs == 0.5


def test_only_the_chosen_measures_are_computed():
    measured = Judge([judgement("q", "a")], measures=("map",)).measure([ranking("q", "a")])
    assert measured.means() == {"map": 1.0}


def test_no_judgements_is_an_error_in_words():
    with pytest.raises(CollectionError, match="no relevance judgements"):
        Judge([])
