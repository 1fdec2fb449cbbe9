"""Vocabularies whose terms are in arrays: the same terms and numbers as those of strings."""

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

from klsa_search.kernels.vocabulary import JoinedVocabulary, StoredTerms, Vocabulary

CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\n")
TERMS = st.sets(st.text(CHARACTERS, min_size=1))


def stored(terms: list[str]) -> StoredTerms:
    """Return sorted terms as arrays."""
    lines = [f"{term}\n".encode() for term in terms]
    starts = np.cumsum([0, *map(len, lines)])
    return StoredTerms(np.frombuffer(b"".join(lines), np.uint8), starts, gap=1)


@given(terms=TERMS, others=TERMS)
def test_stored_terms_are_found(terms: set[str], others: set[str]) -> None:
    names = sorted(terms)
    found = stored(names)
    assert len(found) == len(names)
    assert [found.find(term) for term in names] == list(range(len(names)))
    assert [found[place] for place in range(len(names))] == names == [*found]
    assert all(found.find(term) is None for term in others - terms)
    assert found.find("\ud800") is None


@given(terms=TERMS, words=TERMS, data=st.data())
def test_a_vocabulary_of_arrays_is_that_of_strings(
    terms: set[str], words: set[str], data: st.DataObject
) -> None:
    """Every term is in one of the four parts."""
    parts = data.draw(st.lists(st.integers(0, 3), min_size=len(terms), max_size=len(terms)))
    part_of = dict(zip(sorted(terms), parts, strict=True))
    first, own, written, others = ([t for t in part_of if part_of[t] == n] for n in range(4))
    new = [*written, *sorted(words - terms)]
    names = [term for term in part_of if part_of[term]]

    def places(of: list[str]) -> npt.NDArray[np.int32]:
        return np.array([names.index(term) for term in of], np.int32)

    new_places = np.array([names.index(n) if n in names else -1 for n in new], np.int32)
    arguments = Vocabulary(first), stored(names), places(own)
    base = JoinedVocabulary(*arguments)
    for vocabulary, expected in (
        (base, [*first, *own]),
        (base.extended(new), [*first, *own, *new]),
        (
            JoinedVocabulary(*arguments, new, places(others), new_places),
            [*first, *own, *new, *others],
        ),
    ):
        assert len(vocabulary) == len(expected)
        assert list(vocabulary.terms) == expected
        assert [vocabulary.terms[number] for number in range(len(expected))] == expected
        assert dict(vocabulary.numbers) == {term: n for n, term in enumerate(expected)}
        in_order = [expected[number] for number in vocabulary.runs.numbers("").tolist()]
        assert in_order == vocabulary.runs.names("") == sorted(expected)
        assert all(term not in vocabulary.numbers for term in (terms | words) - set(expected))
        left = {term: n for n, term in enumerate(expected) if n % 2}
        assert dict(vocabulary.without(np.arange(len(expected)) % 2 == 0).numbers) == left


def test_partitions_share_the_order_of_the_terms_of_a_build():
    first, terms = Vocabulary(["a", "d"]), stored(["b", "c", "e"])

    def vocabulary(own: list[int], words: list[str]) -> JoinedVocabulary:
        positions, others = np.array(own, np.int32), np.setdiff1d(np.arange(3), own)
        places = np.full(len(words), -1, np.int32)
        return JoinedVocabulary(first, terms, positions, words, others.astype(np.int32), places)

    one, other, later = vocabulary([0], []), vocabulary([1, 2], []), vocabulary([0], ["ab", "z"])
    orders = [[run.order for run in each.runs.runs[:2]] for each in (one, other, later)]
    assert orders[0] == orders[1] == orders[2]
    assert later.runs.numbers("").tolist() == [0, 3, 2, 5, 1, 6, 4]


def test_terms_without_accents_are_not_folded(monkeypatch):
    folded = []
    monkeypatch.setattr(
        "klsa_search.kernels.vocabulary.fold_accents", lambda text: folded.append(text) or "lodz"
    )
    terms = sorted(["飛機", "вода", "מטוס", "pump", "łódź"])
    assert Vocabulary(terms).runs.accented("lodz").tolist() == [terms.index("łódź")]
    assert folded == ["łódź"]
