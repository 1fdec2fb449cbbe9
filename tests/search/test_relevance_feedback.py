"""Positive and negative examples: definition and worked example, in any number of parts."""

from types import SimpleNamespace

import numpy as np
import pytest

from klsa_search import build
from klsa_search.cluster.remote import open_cluster_index
from klsa_search.core.parameters import RankingSettings
from klsa_search.errors import DocumentNotFound
from klsa_search.search.engine.evidence import LOCAL
from klsa_search.search.rankers.feedback import add_feedback
from tests.cluster.local_workers import LocalCluster
from tests.support.worlds import TOPIC_QUERIES, topic_records

D = np.array([[6, 8, -1, 10], [0, 0, 0, 0], [-2, 2, 4, 0], [0, 0, 0, 0]], np.float32)
SCORES = np.array([3, 4, -1, 0], np.float32)


def expand(seeds, weights, of_all):
    return weights @ D[seeds]


def found(scores, positive, negative, living=None):
    snapshot = SimpleNamespace(
        expansion_of=lambda *_: SimpleNamespace(expand=expand),
        live=living,
        ordinals_of=lambda doc_ids: doc_ids,
        partition=0,
    )
    return add_feedback(
        snapshot,
        np.array(scores, np.float32),
        tuple(np.array(ids, np.int64) if ids else None for ids in (positive, negative)),
        RankingSettings(z=2),
        LOCAL,
    ).tolist()


def test_parts_are_cut_at_0_scaled_by_the_first_and_weighted():
    # Lengths over documents 1 and 0, the first: 5 of the scores, 2 of D[2], 10 of D[0].
    assert found(SCORES, [2], []) == pytest.approx([0.6, 0.8 + 0.75, 1.5, 0])
    assert found(SCORES, [], [0]) == pytest.approx([0.6 - 0.09, 0.8 - 0.12, 0, 0])
    assert found(SCORES, [2], [0]) == pytest.approx([0.51, 1.43, 1.5, 0])


def test_without_a_query_examples_alone_say_what_is_found():
    # The length is that over document 2, the example itself.
    assert found([0, 0, 0, 0], [2], []) == pytest.approx([0, 0.75 * 2 / 4, 0.75, 0])


def test_deleted_documents_have_no_score():
    living = SimpleNamespace(allowed=np.array([True, False, True, True]))
    assert found(SCORES, [2], [], living) == pytest.approx([0.6, 0, 1.5, 0])


@pytest.fixture(scope="module")
def one(index_of):
    return index_of(topic_records(300))


@pytest.fixture(scope="module", params=[4, "cluster"])
def parts(tmp_path_factory, request):
    count = 3 if request.param == "cluster" else request.param
    home = tmp_path_factory.mktemp("parts")
    index = build(topic_records(300), name="parts", home=home, partitions=count, workers=1)
    if request.param == "cluster":
        index.close()
        index = open_cluster_index(home / "parts", LocalCluster())
    with index:
        yield index


FILTERED = {"filter": "year > 2005", "facets": ["kind"]}
EXAMPLES = [
    ({"positive": ["d1", "d7", "d30"]}, FILTERED),
    ({"negative": ["d4"]}, {}),
    ({"positive": ["d12"], "negative": ["d5", "d6", "d2"]}, {}),
]


@pytest.mark.parametrize(("examples", "options"), EXAMPLES)
def test_examples_of_any_partition_move_the_scores_of_all(one, parts, examples, options):
    """To the bit but for K, whose features partitions round before they compute with them."""
    for query in (*TOPIC_QUERIES[::2], ""):
        if not (query or "positive" in examples):
            continue
        answers = [
            each.search(query, 400, exact=True, **examples, **options) for each in (one, parts)
        ]
        expected, found = ({hit.id: hit.score for hit in each.hits} for each in answers)
        first = list(expected)[:10]
        assert len(found.keys() & set(first)) >= 9
        for id_ in first[:5]:
            assert found[id_] == pytest.approx(expected[id_], rel=0.05)
        if "positive" in examples:  # negative ones alone may be near to none of the first
            assert answers[0].total == pytest.approx(answers[1].total, rel=0.1)


def test_an_unknown_example_is_an_error_in_any_number_of_parts(one, parts):
    for index in (one, parts):
        with pytest.raises(DocumentNotFound, match="nothing"):
            index.search("word01", positive=["d1", "nothing"])
    view = parts.restricted("year = 2001")
    assert view.search("", positive=["d1"]).hits
    with pytest.raises(DocumentNotFound):
        view.search("", positive=["d2"])
