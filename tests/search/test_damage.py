"""Opening an index names any file that differs from the build.

Compiled code trusts the values of arrays: undetected damage could crash it or change answers.
"""

from __future__ import annotations

import json
import os
import random
import shutil

import pytest

from klsa_search import build, open_index
from klsa_search.errors import IndexDamaged
from klsa_search.storage.manifest import read_manifest
from tests.search.conftest import DOCUMENTS


@pytest.fixture(scope="module", params=["squashing", "gvsm"])
def sound(request, tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    index = build(DOCUMENTS, name="t", home=home, dimensions=2, z=2, spectral=request.param)
    index.close()
    return index.path


@pytest.fixture
def generation(sound):
    """A generation that was checked; what is damaged in it is mended behind each test."""
    aside = sound.parent.with_name("aside")
    shutil.copytree(sound, aside)
    yield sound
    shutil.rmtree(sound)
    aside.rename(sound)


def one_bit(raw):
    place = random.Random(len(raw)).randrange(len(raw))
    return raw[:place] + bytes([raw[place] ^ 16]) + raw[place + 1 :]


def a_block(raw):
    place = len(raw) // 2
    return raw[:place] + bytes(~each & 255 for each in raw[place : place + 16]) + raw[place + 16 :]


HARM = {
    "a bit": one_bit,
    "sixteen bytes": a_block,
    "the last byte": lambda raw: raw[:-1] + bytes([raw[-1] ^ 255]),
    "the header": lambda raw: bytes([raw[0] ^ 1]) + raw[1:],
    "zeros": lambda raw: raw[:128] + bytes(len(raw) - 128) if any(raw[128:]) else bytes(len(raw)),
    "ones": lambda raw: raw[:128] + b"\xff" * (len(raw) - 128) or b"\xff" * len(raw),
    "nothing but ones": lambda raw: b"\xff" * len(raw),
}


@pytest.mark.parametrize("harm", HARM)
def test_damage_of_any_file_is_named_at_the_first_opening(generation, harm):
    names = list(read_manifest(generation).files)
    assert len(names) > 15
    for name in names:
        path = generation / name
        raw, times = path.read_bytes(), path.stat()
        harmed = HARM[harm](raw)
        if harmed == raw or not raw:
            continue
        assert len(harmed) == len(raw)
        path.write_bytes(harmed)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # as a failing disk would
        with pytest.raises(IndexDamaged, match=f"{name}` has changed since it was built") as told:
            open_index(generation.parent)
        assert "klsa-index repair " in told.value.message
        path.write_bytes(raw)
    open_index(generation.parent).close()


WORDS = {
    "fewer lines": lambda raw: raw.replace(b"\n", b"x", 1),
    "more lines": lambda raw: b"a\n" + raw[2:],
    "another order": lambda raw: b"".join(sorted(raw.splitlines(keepends=True), reverse=True)),
    "no text": lambda raw: b"\xfe" + raw[1:],
}


@pytest.mark.parametrize("harm", WORDS)
def test_a_vocabulary_with_other_words_is_named(generation, harm):
    path = generation / "vocabulary.txt"
    raw = path.read_bytes()
    path.write_bytes(WORDS[harm](raw))
    assert path.stat().st_size == len(raw)
    with pytest.raises(IndexDamaged, match=r"vocabulary\.txt` has changed"):
        open_index(generation.parent)


def test_a_manifest_nested_too_deep_is_named(generation):
    path = generation / "manifest.json"
    size = path.stat().st_size
    path.write_text("[" * size)
    with pytest.raises(IndexDamaged, match=r"manifest\.json"):
        open_index(generation.parent)


def test_a_file_of_another_build_is_not_taken_up(generation):
    """Such as one left where a backup was laid over another generation."""
    absent = {"expansion.npy", "elsewhere_rows.npy"} - names(generation)
    stranger = generation / sorted(absent)[-1 if len(absent) == 1 else 1]
    stranger.write_bytes((generation / "lengths.npy").read_bytes())
    with pytest.raises(IndexDamaged, match=f"{stranger.name}` does not belong to this index"):
        open_index(generation.parent)


def names(generation):
    return set(json.loads((generation / "manifest.json").read_text())["files"])
