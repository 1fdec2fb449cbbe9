"""Vocabularies whose terms are in arrays: the same terms and numbers as those of strings."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import OSA

from klsa_search.core.array_types import SortedTexts
from klsa_search.kernels.vocabulary import StoredVocabulary, Vocabulary, code_points

CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\n")
TERMS = st.sets(st.text(CHARACTERS, min_size=1))


def stored(terms):
    """Return sorted terms as arrays."""
    lines = [f"{term}\n".encode() for term in terms]
    starts = np.cumsum([0, *map(len, lines)])
    return SortedTexts(np.frombuffer(b"".join(lines), np.uint8), starts, gap=1)


@given(terms=TERMS, others=TERMS)
def test_stored_terms_are_found(terms, others):
    names = sorted(terms)
    found = stored(names)
    assert len(found) == len(names)
    assert [found.find(term) for term in names] == list(range(len(names)))
    assert [found[place] for place in range(len(names))] == names == [*found]
    assert all(found.find(term) is None for term in others - terms)
    assert found.find("\ud800") is None


@given(terms=TERMS, words=TERMS, data=st.data())
def test_a_vocabulary_of_arrays_is_that_of_strings(terms, words, data):
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


WORDS = st.lists(st.text("abé水", min_size=1, max_size=4), max_size=30, unique=True)


@given(WORDS, st.lists(st.integers(1, 9), max_size=8), st.text("abé水", min_size=1, max_size=2))
def test_extended_vocabularies_have_the_terms_in_order(words, sizes, text):
    first = Vocabulary(sorted(words[: len(words) // 2]))
    vocabulary, later = first, words[len(words) // 2 :]
    for size in sizes:
        vocabulary, later = vocabulary.extended(later[:size]), later[size:]
    runs, terms = vocabulary.runs, vocabulary.terms
    beginning = sorted(term for term in terms if term.startswith(text))
    assert runs.names(text) == beginning
    assert [terms[number] for number in runs.numbers(text).tolist()] == beginning
    assert {*runs.ending_with(text)} == {term for term in terms if term.endswith(text)}
    assert [vocabulary.numbers[term] for term in terms] == [*range(len(terms))]
    assert runs.runs[0] is first.runs.runs[0]


def test_runs_remain_few():
    vocabulary = Vocabulary([f"a{number:04}" for number in range(1000)])
    for number in range(500):
        vocabulary = vocabulary.extended([f"b{number}"])
    assert len(vocabulary.runs.runs) < 12


TEXTS = st.text("abcé", max_size=9)


@given(st.sets(st.text("abcé", min_size=1), min_size=1), TEXTS, st.tuples(*[st.integers(0, 9)] * 2),
       st.integers(0, 4), st.none() | st.integers(0, 2), st.none() | st.integers(0, 9))  # fmt: skip
def test_terms_within_some_edits_are_near(terms, text, lengths, edits, fewer, beginning):
    (run,) = Vocabulary(sorted(terms)).runs.runs
    assert run.lengths.tolist() == [*map(len, sorted(terms))]
    near = run.letters.near(0, len(run), code_points(text), lengths, edits, fewer, beginning)
    expected = []
    for position, term in enumerate(sorted(terms)):
        typed = text if fewer is None else text[: max(len(term) - fewer, 0)]
        distance = OSA.distance(typed, term[:beginning])
        if lengths[0] <= len(term) <= lengths[1] and distance <= edits:
            expected.append((position, distance))
    assert [*zip(*map(np.ndarray.tolist, near), strict=True)] == expected


def test_nothing_is_near_a_very_long_text():
    (run,) = Vocabulary(["a" * 64, "a" * 65]).runs.runs
    for size, count in ((64, 2), (65, 0)):
        positions, _ = run.letters.near(0, 2, code_points("a" * size), (1, 99), 1)
        assert len(positions) == count


def test_a_vocabulary_without_new_terms_stays_the_same():
    vocabulary = Vocabulary(["wing"])
    assert vocabulary.extended([]) is vocabulary
