"""The forward index: counts and offsets are read as written; invalid bytes are not followed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klsa_search import _native
from klsa_search.analysis.terms import LAST_STOP_CODE, SHORT_CODES
from klsa_search.core.field_weights import DEFAULT, SearchedFields
from klsa_search.kernels.counts import CountsBuilder
from klsa_search.storage.forward_index import Forward, codes_of, write_forward

TERMS = 20_000
"""So many that the rarest take three bytes."""

words = st.one_of(st.just(-1), st.integers(0, 5), st.integers(0, TERMS - 1))
few = st.lists(words, max_size=12)
documents = st.lists(st.tuples(few, few, st.lists(words, max_size=60)), min_size=1, max_size=6)


def written(folder, given, weights=(1, 1)):
    """The forward index of documents as numbers, their counts, and the builder's terms."""
    builder = CountsBuilder(weights=weights)
    # One document that holds every term, so that every number has one.
    parts = len(weights)
    whole = [(*[[]] * (parts - 1), list(range(TERMS))), *given]
    flat = [word for document in whole for part in document for word in part]
    lengths = [len(part) for document in whole for part in document]
    builder.extend(
        0,
        np.array(flat, np.int32),
        np.array(lengths, np.int32),
        parts,
        map("{:05d}".format, range(TERMS)),
    )
    counts = builder.finish()
    write_forward(folder, builder.blocks(), counts)
    names = ("title", *map(str, range(parts - 2)), "text")
    return Forward.open(folder, SearchedFields(names, weights)), counts


def places_of(forward, document, terms):
    """Places of some terms in the text of a document, and which it is."""
    codes = codes_of(forward.ranks[terms])
    places, which = forward.words.find_words(document, codes)
    return [(place, terms[number]) for place, number in zip(places, which, strict=True)]


@given(
    given=documents,
    sought=st.sets(st.integers(0, 8), min_size=1, max_size=6),
    weights=st.tuples(st.integers(1, 4), st.integers(1, 16), st.integers(1, 2)),
)
def test_counts_and_places_come_back(tmp_path_factory, given, sought, weights):
    forward, counts = written(tmp_path_factory.mktemp("forward"), given, weights)
    positions = np.arange(len(given)) + 1
    found = forward.counts(positions)
    assert found.dtype == np.float32
    assert (found != counts.matrix[positions]).nnz == 0
    terms = sorted(sought)
    for document, (*_, text) in enumerate(given, start=1):
        wanted = [(place, word) for place, word in enumerate(text) if word in sought]
        assert places_of(forward, document, terms) == wanted


def test_frequent_terms_and_stop_words_take_a_byte(tmp_path):
    stops = [-1, *range(-2, -67, -1)]
    forward, _ = written(tmp_path, [([3, *stops], [3, 3, *stops, 3]), ([], [])])
    sizes = np.diff(forward.parts[0][1])[1:]
    # The length of the title, and one byte a word.
    assert sizes.tolist() == [1 + 4 + 2 * len(stops), 1]
    assert places_of(forward, 1, [3]) == [(0, 3), (1, 3), (2 + len(stops), 3)]


def test_codes_of_terms_and_stop_words_differ():
    coded = codes_of(np.arange(100_000, dtype=np.int32))
    assert (np.diff(coded) > 0).all()
    assert coded[0] == 2 * SHORT_CODES + 2
    assert coded[60] == LAST_STOP_CODE + 1
    assert (coded[:60] < 128).all()


def test_more_stop_words_take_two_bytes(tmp_path):
    first = -2 - 129 + 1
    stops = [*range(first, -1 - LAST_STOP_CODE - 1, -1)]
    forward, _ = written(tmp_path, [([3], [*stops, 3]), ([], [])])
    assert np.diff(forward.parts[0][1]).tolist()[1:] == [3 + 2 * len(stops), 1]
    assert places_of(forward, 1, [3]) == [(len(stops), 3)]
    (three,) = codes_of(forward.ranks[[3]]).tolist()
    for code, of in ((LAST_STOP_CODE, 1), (LAST_STOP_CODE - 1, 1), (129, 0)):
        pattern = np.array([code, three], np.int64)
        assert forward.words.find_phrase(np.array([1]), pattern, -1, 1).tolist() == [bool(of)]


def test_stop_words_match_alike_by_word_or_as_written(tmp_path):
    it, capital_it, to = -2, -3, -4
    texts = [[5, it, 6], [5, capital_it, 6], [5, to, 6], [5, -1, 6], [5, 6]]
    forward, _ = written(tmp_path, [([], text) for text in texts])
    documents, (five, six) = np.arange(1, 6), codes_of(forward.ranks[[5, 6]]).tolist()

    def matching(stop, stops):
        pattern = np.array([five, stop, six], np.int64)
        found = forward.words.find_phrase(documents, pattern, -1, stops)
        weights = np.ones(2, np.int64)
        counts = forward.words.count_phrase(documents, pattern, weights, stops)
        assert (counts > 0).tolist() == found.tolist()
        return np.flatnonzero(found).tolist()

    assert matching(-2, 0) == [0, 1, 2, 3]
    assert matching(1, 1) == matching(2, 1) == [0, 1]
    assert (matching(1, 2), matching(2, 2), matching(3, 2)) == ([0], [1], [2])
    assert matching(-2, 1) == [3]


def test_a_collection_of_nothing_has_one_too(tmp_path):
    builder = CountsBuilder()
    write_forward(tmp_path, builder.blocks(), builder.finish())
    assert Forward.open(tmp_path, SearchedFields.of(DEFAULT)).counts(
        np.zeros(0, np.int64)
    ).shape == (0, 0)


@given(
    codes=st.binary(max_size=40),
    begin=st.integers(-50, 50) | st.integers(-(2**62), 2**62),
    end=st.integers(-50, 50) | st.integers(-(2**62), 2**62),
    parts=st.integers(2, 5),
)
def test_whatever_the_bytes_are_nothing_outside_is_read(codes, begin, end, parts):
    content = np.frombuffer(codes, np.uint8)
    words = _native.ForwardCodes(_native.DocumentBytes([(content, np.array([begin, end]))]), parts)
    places, which = words.find_words(0, np.array([8, 9, 200, 2**33, -(10**9)]))
    assert len(places) == len(which) <= len(codes)
    assert (places >= 0).all()
    assert (which < 4).all()  # none has a negative code
    document, weights = np.zeros(1, np.int64), np.ones(parts, np.int64)
    assert 0 <= words.count_term(document, 8, weights)[0] <= len(codes)
    assert words.count_following(document, np.array([8]), 50).sum() <= len(codes)
    assert words.find_phrase(document, np.array([8, 9]), -1, 1).shape == (1,)


@pytest.mark.parametrize("starts", [[0, 5, 2], [-9, 4, 6], [0, 2**40, 2**41]])
def test_damaged_starts_give_counts_of_something(tmp_path, starts):
    forward, _ = written(tmp_path, [([1], [2, 3])])
    ((codes, _),) = forward.parts
    damaged = codes[:6], np.array(starts, np.int64)
    forward = Forward([damaged], forward.ranks, forward.fields)
    assert forward.counts(np.array([0, 1])).shape == (2, TERMS)
