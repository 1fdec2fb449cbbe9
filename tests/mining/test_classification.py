import gzip
import re

import numpy as np
import pytest

from klsa_search import build
from klsa_search.errors import DocumentNotFound, QueryError
from klsa_search.mining import classify, classify_texts
from klsa_search.mining.similar import text_coordinates

from .conftest import documents, topic_of

LABELS = {f"d{topic * 12 + place}": "abcd"[topic] for topic in range(4) for place in (0, 7)}


def test_the_rest_is_labelled_surest_first(index):
    found = classify(index, LABELS)
    assert len(found) == 50 - len(LABELS)
    assert not {one.id for one in found} & set(LABELS)
    for one in found:
        if one.id == "d49":
            assert one.margin == 0
        else:
            assert one.label == "abcd"[topic_of(one.id)]
    margins = [one.margin for one in found]
    assert margins == sorted(margins, reverse=True)
    assert classify(index, LABELS, k=3) == found[:3]


def test_a_margin_is_the_lead_of_the_best_score(index):
    for one in classify(index, LABELS):
        first, second, *_ = sorted(one.scores.values(), reverse=True)
        assert one.margin == pytest.approx(first - second)
        assert one.scores[one.label] == first
        assert sorted(one.scores) == list("abcd")
        assert sum(one.scores.values()) == pytest.approx(1)


def test_ids_are_answered_in_their_order(index):
    found = classify(index, LABELS, ["d40", "d3", "d0"])
    assert [(one.id, one.label) for one in found] == [("d40", "d"), ("d3", "a"), ("d0", "a")]
    assert classify(index, LABELS, []) == ()


def test_texts_are_labelled_as_documents_are(index):
    texts = [document["text"] for document in documents()[:48]]
    found = classify_texts(index, LABELS, texts)
    assert [one.label for one in found] == ["abcd"[number // 12] for number in range(48)]
    assert {one.id for one in found} == {None}
    (unknown,) = classify_texts(index, LABELS, ["zebra"])
    assert (unknown.label, unknown.margin) == ("a", 0)
    assert classify_texts(index, LABELS, []) == ()


def test_the_order_of_the_labels_does_not_matter(index):
    backwards = dict(reversed(LABELS.items()))
    for one, other in zip(classify(index, LABELS), classify(index, backwards), strict=True):
        assert one.id == other.id
        assert one.scores == pytest.approx(other.scores)


def test_bad_input_is_named(index):
    for labels, fact in (
        ({}, "there is none"),
        ({"d1": "a", "d2": "a"}, "there is only 'a'"),
        ({"d1": "a", "d2": 2}, "give strings"),
    ):
        with pytest.raises(QueryError, match=fact) as refused:
            classify(index, labels)
        assert refused.value.field == "labels"
    with pytest.raises(DocumentNotFound):
        classify(index, {"d1": "a", "nope": "b"})
    with pytest.raises(DocumentNotFound):
        classify(index, LABELS, ["nope"])
    with pytest.raises(QueryError, match="texts contains 7"):
        classify_texts(index, LABELS, [7])
    with pytest.raises(QueryError, match="k = 0"):
        classify(index, LABELS, k=0)


TOPICS = ("crude", "interest", "ship", "trade")


@pytest.fixture(scope="module")
def reuters(datasets_home, tmp_path_factory):
    """An index of Reuters stories of one of four topics, and the topic of each."""
    folder = datasets_home / "reuters21578"
    source, topics = [], {}
    for part in (0, 1, 2, 3, 4, 5):
        with gzip.open(folder / f"reut2-{part:03}.sgm.gz", "rt", encoding="latin-1") as file:
            for story in file.read().split("</REUTERS>"):
                held = re.findall(
                    r"<D>(.*?)</D>", "".join(re.findall("<TOPICS>.*</TOPICS>", story))
                )
                body = re.search("<BODY>(.*?)</BODY>", story, re.DOTALL)
                if len(held) == 1 and held[0] in TOPICS and body:
                    identifier = re.findall(r'NEWID="(\d+)"', story)[0]
                    source.append({"id": identifier, "text": body[1]})
                    topics[identifier] = held[0]
    index = build(source, name="reuters", home=tmp_path_factory.mktemp("home"))
    yield index, topics
    index.close()


@pytest.mark.slow
def test_ten_labels_a_topic_sort_reuters(reuters):
    index, topics = reuters
    labels = {}
    for topic in TOPICS:
        held = [identifier for identifier in topics if topics[identifier] == topic]
        labels |= dict.fromkeys(held[:10], topic)
    found = classify(index, labels)
    right = [one.label == topics[one.id] for one in found]
    assert len(right) > 250
    assert sum(right) / len(right) > 0.8
    surest = right[: len(right) // 2]
    assert sum(surest) / len(surest) > sum(right) / len(right)
    texts = [index.document(one.id).text for one in found]
    by_text = classify_texts(index, labels, texts)
    same = [a.label == topics[b.id] for a, b in zip(by_text, found, strict=True)]
    assert sum(same) / len(same) > 0.8


def test_scores_are_those_of_ridge_regression(index):
    """(x - x̄)ᵀ (ZᵀZ + I)⁻¹ Zᵀ (Y - ȳ) + ȳ, Z the labelled coordinates less their mean x̄."""
    space = np.asarray(index.arrays.latent.documents, np.float64)
    Z = space[index.arrays.rows_of(index.doc_ids(list(LABELS)))]
    Y = np.array([[label == name for name in "abcd"] for label in LABELS.values()], float)
    mean, shares = Z.mean(axis=0), Y.mean(axis=0)
    Z = Z - mean
    weights = np.linalg.inv(Z.T @ Z + np.eye(Z.shape[1])) @ Z.T @ (Y - shares)
    for one in classify(index, LABELS, ["d3", "d20", "d44"]):
        (x,) = space[index.arrays.rows_of(index.doc_ids([one.id]))]
        assert list(one.scores.values()) == pytest.approx((x - mean) @ weights + shares)


def test_a_text_is_placed_by_its_features(index):
    """φ(x) V by its definition, of length 1: a1 twice and b2 once."""
    snapshot, settings = index.arrays, index.settings
    average = snapshot.content_counts_of(np.arange(len(index))).sum() / len(index)
    norm = settings.kernel_k1 * (1 - settings.b + settings.b * 3 / average)
    place = sum(
        (settings.kernel_k1 + 1) * count / (norm + count)
        * np.asarray(snapshot.latent.terms[snapshot.vocabulary.numbers[term]], np.float64)
        for term, count in (("a1", 2), ("b2", 1))
    )  # fmt: skip
    placed = text_coordinates(index, ["a1 b2 a1", "zebra"])
    assert placed[0] == pytest.approx(place / np.linalg.norm(place))
    assert not placed[1].any()
