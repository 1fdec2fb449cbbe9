"""Positive and negative examples: definition and worked example."""

from types import SimpleNamespace

import numpy as np
import pytest

from klsa_search.core.config import SearchSettings
from klsa_search.search.rankers.feedback import add_feedback

D = np.array([[6, 8, -1, 10], [0, 0, 0, 0], [-2, 2, 4, 0], [0, 0, 0, 0]], np.float32)
SCORES = np.array([3, 4, -1, 0], np.float32)


def expand(seeds, weights):
    return weights @ D[seeds]


def found(scores, positive, negative, living=None):
    snapshot = SimpleNamespace(expansion_of=lambda *_: SimpleNamespace(expand=expand), live=living)
    return add_feedback(
        snapshot,
        np.array(scores, np.float32),
        np.array(positive, np.int64),
        np.array(negative, np.int64),
        SearchSettings(z=2),
        2,
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
