"""Term networks, and the files of WordNet."""

import numpy as np
import pytest

from klsa_search.errors import ArgumentError
from klsa_search.estimators import SemanticSmoothingKernel, TermNetwork

CHAIN = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e")]
LICENCE = "".join(f"  {line} This is a line of the licence  \n" for line in range(1, 30))
# In the format of WordNet 3.0: lines end in blanks, twelve words are 0c in hexadecimal.
INDEX = """\
'hound n 1 1 @ 1 0 00000300
animal n 1 2 @ ~ 1 1 00000200
bank n 2 4 @ ~ #p ; 2 1 00000200 00000500
dog n 1 2 @ ~ 1 1 00000300
fido n 1 1 @i 1 0 00000600
grey_wolf n 1 1 @ 1 0 00000400
"""
DATA = """\
00000100 03 n 01 entity 0 003 ~ 00000200 n 0000 ~ 00000500 n 0000 + 00000300 v 0101 | all there is
00000200 05 n 01 animal 0 004 @ 00000100 n 0000 ~ 00000300 n 0000 ~ 00000400 n 0000 ;c 00000500 n 0000 | a living thing; "a | bar"
00000300 05 n 0c dog 0 Canis_familiaris 0 cur 0 hound 1 'hound 0 mutt 0 pooch 0 doggie 0 bow-wow 0 tyke 0 mongrel 0 whelp 2 003 @ 00000200 n 0000 + 00000700 v 0a01 ~i 00000600 n 0000 | it barks
00000400 05 n 02 wolf 0 grey_wolf 0 002 @ 00000200 n 0000 #m 00000300 n 0000 | it howls
00000500 17 n 01 bank 0 001 @ 00000100 n 0000 | of a river
00000600 18 n 01 Fido 0 001 @i 00000300 n 0000 | a dog
"""  # noqa: E501


@pytest.fixture
def wordnet(tmp_path):
    (tmp_path / "index.noun").write_text(LICENCE + INDEX.replace("\n", "  \n"))
    (tmp_path / "data.noun").write_text(LICENCE + DATA.replace("\n", "  \n"))
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
    for longest in (-1, 2.5, "2"):
        with pytest.raises(ArgumentError, match=f"longest = {longest!r} is not a whole number"):
            network.proximities(["a"], longest=longest)


def test_wordnet_is_read_by_synsets_and_hypernyms(wordnet):
    """Synonyms are 1, dog - animal - wolf two edges apart, an instance one from its kind.

    Other pointers are no edges: to parts and members, to what a field of knowledge is about, and
    to verbs.
    """
    terms = ["dog", "'hound", "grey wolf", "fido", "bank", "unknown"]
    near = TermNetwork.wordnet(wordnet).proximities(terms, longest=2).toarray()
    assert near[0] == pytest.approx([1, 1, 1 / 3, 1 / 2, 1 / 2, 0])  # a bank is an animal, too
    assert near[2] == pytest.approx([1 / 3, 1 / 3, 1, 0, 1 / 2, 0])
    assert near[5] == pytest.approx([0, 0, 0, 0, 0, 1])
    assert np.array_equal(near, near.T)


def test_invalid_utf_8_spoils_its_line_only(wordnet):
    odd = "garçon n 1 1 @ 1 0 00000500  \n".encode("latin-1")
    (wordnet / "index.noun").write_bytes((LICENCE + INDEX).encode() + odd)
    near = TermNetwork.wordnet(wordnet).proximities(["bank", "dog", "garçon"], longest=1)
    assert near.toarray()[0] == pytest.approx([1, 1 / 2, 0])


def test_smoothing_through_a_network_joins_what_shares_no_term(wordnet):
    near = TermNetwork.wordnet(wordnet).proximities(["dog", "grey wolf", "unknown"])
    points = np.eye(3)
    K = SemanticSmoothingKernel(near).fit(points).kernel(points)
    assert K[0, 1] == pytest.approx(2 / 3)
    assert K[0, 2] == 0
    assert np.linalg.eigvalsh(K).min() >= 0


def test_a_folder_without_the_files_is_named(wordnet, tmp_path):
    with pytest.raises(ArgumentError, match=r"index\.noun` is missing"):
        TermNetwork.wordnet(tmp_path / "nowhere")
    (wordnet / "data.noun").unlink()
    with pytest.raises(ArgumentError, match=r"data\.noun` is missing"):
        TermNetwork.wordnet(wordnet)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("data.noun", b"no such thing\n"),
        ("data.noun", b"\n"),
        ("data.noun", b"\x80\x00\xff\n"),
        ("data.noun", b"00000700 05 n 01 cat 0 002 @ 00000200 n 0000 + 000\n"),
        ("data.noun", b"00000700 05 n zz cat 0 001 @ 00000200 n 0000\n"),
        ("index.noun", b"cat n 2 1 @ 2 1 00000700\n"),
        ("index.noun", b"cat n 1 1 @ 1 1 meow\n"),
        ("index.noun", b"cat n\n"),
    ],
)
def test_a_line_that_is_none_is_named(wordnet, name, line):
    with (wordnet / name).open("ab") as file:
        file.write(line)
    with pytest.raises(ArgumentError, match=rf"{name}:\d+ is not a line"):
        TermNetwork.wordnet(wordnet)
