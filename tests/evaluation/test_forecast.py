"""Query performance prediction: worked example, a world with a known answer, deletions."""

from math import log, sqrt

import numpy as np
import pytest

from klsa_search import build
from klsa_search.collection import Query
from klsa_search.evaluation.forecast import forecast, score_of_collection
from tests.evaluation.worlds import topical

TEXTS = ["a pump", "one pump", "wet roads", "wet tyres", "cold hoses", "cold engines"]


def built(home, documents, **settings):
    return build(documents, name="one", home=home, dimensions=2, **settings)


def asked(*texts):
    return [Query(id=str(number), text=text) for number, text in enumerate(texts)]


def test_by_hand(tmp_path):
    documents = [{"id": str(n), "text": text} for n, text in enumerate(TEXTS)]
    with_ones = {"k1": 1.0, "b": 0.0, "burstiness": 1.0}
    index = built(tmp_path, documents, **with_ones)
    told = forecast(index, asked("submarine", "pump", "pump submarine", "wet cold", ""))
    # w of a word in two of six; its two documents have w · 2 / 2, the collection w · 4 / 3.
    w = log(1 + 4.5 / 2.5)
    expected = {
        "submarine": None,
        "": None,
        "wet cold": (w - 2 * w * 4 / 3) / sqrt(2),
        "pump": w - w * 4 / 3,
        "pump submarine": (w - w * 4 / 3) / sqrt(2),
    }
    assert [each.query.text for each in told] == list(expected)
    for each in told:
        wanted = expected[each.query.text]
        assert each.wig == (wanted if wanted is None else pytest.approx(wanted, rel=1e-3))
    assert forecast(index, []) == []
    # What an index adds to words of titles in searches is no part of it.
    index.close()
    again = built(tmp_path / "boosted", documents, **with_ones, boosts={"title": 5, "text": 3})
    assert forecast(again, [each.query for each in told]) == told
    again.close()


def test_words_of_one_topic_are_easier_than_words_of_many(tmp_path):
    index = built(tmp_path, topical())
    rng = np.random.default_rng(0)
    of_one, of_many = [], []
    for letter in "abcdef":
        of_one.append(" ".join(f"{letter}{n}" for n in rng.choice(60, 6, replace=False)))
        of_many.append(" ".join(f"{other}{rng.integers(60)}" for other in "abcdef"))
    told = forecast(index, asked(*of_one, *of_many))
    assert {each.query.text for each in told[:6]} == set(of_many)
    figures = [each.wig for each in told]
    assert figures == sorted(figures)
    index.close()


def test_what_was_deleted_counts_no_more(tmp_path):
    documents = [{"id": str(n), "text": text} for n, text in enumerate(TEXTS)]
    index = built(tmp_path, documents)
    index.delete(["1", "2"])
    fresh = built(tmp_path / "fresh", [documents[n] for n in (0, 3, 4, 5)])
    for terms in (["pump"], ["wet", "cold", "cold"], ["road"]):
        of_both = [score_of_collection(each, terms) for each in (index, fresh)]
        assert of_both[0] == pytest.approx(of_both[1])
    assert score_of_collection(index, ["road"]) == 0.0
    for each in (index, fresh):
        each.close()
