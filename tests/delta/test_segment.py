"""Delta segments in files: reading inverts writing, and damage is detected."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from klsa_search import build
from klsa_search.delta.folding import DeltaBuilder
from klsa_search.delta.segment import DeltaSegment, read_segment, write_segment
from tests.delta.worlds import PLAIN, epoch_of, topic_world


@pytest.fixture(scope="module")
def segment(tmp_path_factory):
    world = topic_world()
    index = build(world[::2], name="base", home=tmp_path_factory.mktemp("segment"), **PLAIN)
    yield DeltaBuilder(epoch_of(index)).fold(world[1::2])
    index.close()


def test_a_segment_is_read_back_unchanged(segment, tmp_path):
    path = tmp_path / "a.npz"
    write_segment(path, segment, "key")
    write_segment(path, segment, "key")
    back = read_segment(path, "key")
    for field in fields(DeltaSegment):
        one, other = (np.asarray(getattr(each, field.name)) for each in (segment, back))
        assert (one.dtype, one.tolist()) == (other.dtype, other.tolist()), field.name


def test_numpy_can_read_it(segment, tmp_path):
    write_segment(tmp_path / "a.npz", segment, "key")
    with np.load(tmp_path / "a.npz") as arrays:
        assert arrays["rows"].tolist() == segment.rows.tolist()
        assert arrays["first"] == segment.first


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
