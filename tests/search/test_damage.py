"""Opening an index names any file that differs from the build.

Compiled code trusts the values of arrays: undetected damage could crash it or change answers.
"""

import os
import random
import shutil

import pytest

from klsa_search import build, open_index
from klsa_search.errors import IndexDamaged
from klsa_search.storage.manifest import read_manifest
from tests.search.conftest import DOCUMENTS


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    index = build(DOCUMENTS, name="t", home=home, dimensions=2, z=2)
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


HARM = {
    "a bit": one_bit,
    "the last byte": lambda raw: raw[:-1] + bytes([raw[-1] ^ 255]),
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


def test_a_manifest_nested_too_deep_is_named(generation):
    path = generation / "manifest.json"
    size = path.stat().st_size
    path.write_text("[" * size)
    with pytest.raises(IndexDamaged, match=r"manifest\.json"):
        open_index(generation.parent)


def test_a_file_of_another_build_is_not_taken_up(generation):
    """Such as one left where a backup was laid over another generation."""
    stranger = generation / "all_expansion_rows.npy"
    assert not stranger.exists()
    stranger.write_bytes((generation / "lengths.npy").read_bytes())
    with pytest.raises(IndexDamaged, match=f"{stranger.name}` does not belong to this index"):
        open_index(generation.parent)
