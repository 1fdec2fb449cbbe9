"""Vocabularies whose terms are in arrays: the same terms and numbers as those of strings."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from klsa_search.core.array_types import SortedTexts
from klsa_search.kernels.vocabulary import StoredVocabulary, Vocabulary

CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\n")
TERMS = st.sets(st.text(CHARACTERS, min_size=1))


def stored(terms: list[str]) -> SortedTexts:
    """Return sorted terms as arrays."""
    lines = [f"{term}\n".encode() for term in terms]
    starts = np.cumsum([0, *map(len, lines)])
    return SortedTexts(np.frombuffer(b"".join(lines), np.uint8), starts, gap=1)


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
    is_first = data.draw(st.lists(st.booleans(), min_size=len(terms), max_size=len(terms)))
    first, names = (
        [term for term, value in zip(sorted(terms), is_first, strict=True) if value is kind]
        for kind in (True, False)
    )
    new = sorted(words - terms)
    built = StoredVocabulary(Vocabulary(first), stored(names))
    extended = built.extended(new)
    for vocabulary, expected in (
        (built, [*first, *names]),
        (extended, [*first, *names, *new]),
        (extended.extended(["\n"]), [*first, *names, *new, "\n"]),
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


def test_terms_without_accents_are_not_folded(monkeypatch):
    folded = []
    monkeypatch.setattr(
        "klsa_search.kernels.vocabulary.fold_accents", lambda text: folded.append(text) or "lodz"
    )
    terms = sorted(["飛機", "вода", "מטוס", "pump", "łódź"])
    assert Vocabulary(terms).runs.accented("lodz").tolist() == [terms.index("łódź")]
    assert folded == ["łódź"]
