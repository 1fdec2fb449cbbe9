"""Networks of terms, and WordNet's files."""

from __future__ import annotations

import numpy as np
import pytest

from klsa_search.errors import ArgumentError
from klsa_search.estimators import SemanticSmoothingKernel, TermNetwork

CHAIN = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e")]
LICENCE = "  1 This is a line of the licence\n"
INDEX = """\
dog n 1 1 @ 1 1 00000300
wolf n 1 1 @ 1 0 00000400
hound n 1 1 @ 1 0 00000300
bank n 2 1 @ 2 0 00000200 00000500
fido n 1 1 @ 1 0 00000600
"""
DATA = """\
00000100 03 n 01 entity 0 003 ~ 00000200 n 0000 ~ 00000500 n 0000 + 00000300 v 0101 | all there is
00000200 03 n 01 animal 0 002 @ 00000100 n 0000 ~ 00000300 n 0000 | a living thing
00000300 03 n 02 dog 0 hound 0 001 @ 00000200 n 0000 | it barks | loudly
00000400 03 n 01 wolf 0 001 @ 00000200 n 0000 | it howls
00000500 03 n 01 bank 0 001 @ 00000100 n 0000 | of a river
00000600 03 n 01 fido 0 001 @i 00000300 n 0000 | a dog
"""


@pytest.fixture
def wordnet(tmp_path):
    (tmp_path / "index.noun").write_text(LICENCE + INDEX)
    (tmp_path / "data.noun").write_text(LICENCE + DATA)
    return tmp_path


def test_terms_are_near_by_inverse_path_length():
    near = TermNetwork.of_terms(CHAIN).proximities(["a", "b", "d", "x"], longest=2)
    assert near.toarray() == pytest.approx(
        np.array([[1, 1 / 2, 0, 0], [1 / 2, 1, 1 / 3, 0], [0, 1 / 3, 1, 0], [0, 0, 0, 1]])
    )


def test_only_the_shortest_path_counts_and_none_beyond_the_longest():
    network = TermNetwork.of_terms([*CHAIN, ("a", "c")])
    assert network.proximities(["a", "c"]).toarray()[0, 1] == 1 / 2
    whole = network.proximities(list("abcde"), longest=9).toarray()
    assert np.array_equal(whole, whole.T)
    assert (whole > 0).all()
    assert np.array_equal(network.proximities(["a", "b"], longest=0).toarray(), np.eye(2))
    with pytest.raises(ArgumentError, match="longest = -1 is below 0"):
        network.proximities(["a"], longest=-1)


def test_wordnet_is_read_by_synsets_and_hypernyms(wordnet):
    """Synonyms are 1, dog - animal - wolf two edges apart, an instance one from its kind."""
    terms = ["dog", "hound", "wolf", "fido", "bank", "unknown"]
    near = TermNetwork.wordnet(wordnet).proximities(terms, longest=2).toarray()
    assert near[0] == pytest.approx([1, 1, 1 / 3, 1 / 2, 1 / 2, 0])  # a bank is an animal, too
    assert near[5] == pytest.approx([0, 0, 0, 0, 0, 1])
    assert np.array_equal(near, near.T)


def test_smoothing_through_a_network_joins_what_shares_no_term(wordnet):
    near = TermNetwork.wordnet(wordnet).proximities(["dog", "wolf", "unknown"])
    points = np.eye(3)
    K = SemanticSmoothingKernel(near).fit(points).kernel(points)
    assert K[0, 1] == pytest.approx(2 / 3)
    assert K[0, 2] == 0
    assert np.linalg.eigvalsh(K).min() >= 0


def test_files_that_are_missing_or_something_else_are_named(wordnet, tmp_path):
    with pytest.raises(ArgumentError, match=r"index\.noun is missing: name the folder"):
        TermNetwork.wordnet(tmp_path / "nowhere")
    (wordnet / "data.noun").write_text(LICENCE + "no such thing\n")
    with pytest.raises(ArgumentError, match=r"data\.noun:2 is no line of a WordNet database"):
        TermNetwork.wordnet(wordnet)
