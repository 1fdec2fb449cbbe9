"""Delta segments in files: reading inverts writing, and damage is detected."""

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klsa_search import build
from klsa_search._native import encode_pairs
from klsa_search.delta.folding import DeltaBuilder
from klsa_search.delta.segment import DeltaSegment, read_segment, write_segment
from klsa_search.delta.statistics import FeatureNumbers, most_frequent
from tests.delta.worlds import PLAIN, epoch_of, topic_world


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Statistics of a build, and later documents, of which each has a new term."""
    texts = topic_world()
    index = build(texts[::2], name="base", home=tmp_path_factory.mktemp("segment"), **PLAIN)
    later = [replace(text, text=f"{text.text} new{n // 2}") for n, text in enumerate(texts[1::2])]
    yield epoch_of(index), later
    index.close()


@pytest.fixture(scope="module")
def segment(world):
    epoch, documents = world
    return DeltaBuilder(epoch).fold(documents)


def assert_equal(one, other):
    for field in fields(DeltaSegment):
        first, second = (np.asarray(getattr(segment, field.name)) for segment in (one, other))
        assert (first.dtype, first.tolist()) == (second.dtype, second.tolist()), field.name


def test_a_segment_is_read_back_unchanged(segment, tmp_path):
    path = tmp_path / "a.npz"
    write_segment(path, segment, "key")
    write_segment(path, segment, "key")
    assert_equal(segment, read_segment(path, "key"))


def test_a_segment_of_other_documents_is_refused(segment, tmp_path):
    write_segment(tmp_path / "a.npz", segment, "key")
    with pytest.raises(ValueError, match="of other documents"):
        read_segment(tmp_path / "a.npz", "other")


def test_the_same_segment_is_the_same_bytes(segment, tmp_path):
    for name in ("a.npz", "b.npz"):
        write_segment(tmp_path / name, segment, "key")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_every_kind_of_damage_is_detected(segment, tmp_path):
    path = tmp_path / "a.npz"
    write_segment(path, segment, "key")
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    places = [0, 1, len(whole) - 1, len(whole) - 9, *rng.integers(0, len(whole), 200).tolist()]
    for place in places:
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        with pytest.raises(ValueError, match="is damaged"):
            read_segment(path, "key")
    for content in (b"", whole[:-1], whole[:5], whole + b"\n", bytes(len(whole))):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="is damaged"):
            read_segment(path, "key")


@st.composite
def known_features(draw):
    """How many documents hold each term, keys of pairs and how many hold those."""
    terms = draw(st.lists(st.integers(1, 300), min_size=1, max_size=12))
    size = len(terms)
    keys = [lesser * size + other for lesser in range(size) for other in range(lesser + 1, size)]
    chosen = sorted(draw(st.sets(st.sampled_from(keys)))) if keys else []
    held = draw(st.lists(st.integers(2, 2**20), min_size=len(chosen), max_size=len(chosen)))
    return np.array(terms), np.array(chosen, np.int64), np.array(held, np.int64)


@given(known_features())
def test_numbers_and_frequencies_come_back(features):
    terms, keys, held = features
    numbers_of = FeatureNumbers.of(encode_pairs(keys, held, len(terms)), terms)
    both = np.concatenate((terms, held))
    numbers = np.empty(len(both), np.int64)
    numbers[np.argsort(-both, kind="stable")] = np.arange(len(both))
    assert numbers_of.terms.tolist() == numbers[: len(terms)].tolist()
    assert numbers_of.find(keys, len(terms)).tolist() == numbers[len(terms) :].tolist()
    assert numbers_of.document_frequencies(numbers).tolist() == both.tolist()
    assert numbers_of.by_number[numbers].tolist() == list(range(len(both)))


@given(known_features(), st.integers(0, 5))
def test_a_pair_that_is_not_a_feature_has_no_number(features, more):
    """Keys may be made with more terms than the epoch knows."""
    terms, keys, held = features
    numbers_of = FeatureNumbers.of(encode_pairs(keys, held, len(terms)), terms)
    size = len(terms) + more
    all_pairs = [(a, b) for a in range(size) for b in range(a + 1, size)]
    found = numbers_of.find(np.array([a * size + b for a, b in all_pairs], np.int64), size)
    known = {(int(key) // len(terms), int(key) % len(terms)) for key in keys}
    assert [number >= 0 for number in found.tolist()] == [pair in known for pair in all_pairs]


def test_a_pair_takes_three_bytes():
    rng = np.random.default_rng(0)
    lesser, greater = np.sort(rng.zipf(1.3, (2, 200_000)) % 50_000, axis=0)
    keys = np.unique(lesser.astype(np.int64) * 50_000 + greater)
    held = 2 + rng.zipf(2.0, len(keys)) % 1000
    assert len(encode_pairs(keys, held, 50_000)) < 3 * len(keys) + 50_000


@given(st.lists(st.integers(0, 6), max_size=40), st.integers(0, 40))
def test_the_most_frequent_pairs_have_numbers_and_the_first_of_equal_ones(held, most):
    held = np.array(held, np.int64)
    numbered = most_frequent(held, most)
    wanted = np.sort(np.argsort(-held, kind="stable")[:most])
    assert np.flatnonzero(numbered).tolist() == wanted.tolist()
