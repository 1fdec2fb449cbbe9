"""Quantised mean lengths, and saturated postings shared between processes."""

import shutil
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klsa_search import build, open_index
from klsa_search.indexing import refit
from klsa_search.indexing.verify import verify_deep
from klsa_search.kernels.bm25 import length_step, live_length, quantised_length
from klsa_search.kernels.postings import Postings, postings_arrays
from tests.support.worlds import counts_of, random_documents

TEXTS = random_documents(80, 45, seed=5)
LONG = " ".join(TEXTS[:4])


def test_the_length_stays_until_the_mean_is_more_than_a_step_away():
    step = 2 ** (1 / 64)
    for steps in (0.4, 0.6, 0.99, -0.99):
        assert live_length(64.0, 64.0 * step**steps) == 64.0
    assert live_length(64.0, 64.0 * step**1.01) == pytest.approx(64.0 * step)
    assert live_length(64.0, 64.0 * step**7.4) == pytest.approx(64.0 * step**7)
    assert live_length(64.0, 0.0) == 64.0


@given(st.floats(1, 200))
def test_the_length_is_at_most_a_step_away(mean):
    assert abs(np.log2(live_length(64.0, mean) / mean)) <= 1 / 64 + 1e-12


@pytest.mark.parametrize("bits", [6, 13])
def test_postings_are_those_made_by_the_other_norms(bits, monkeypatch):
    monkeypatch.setattr("klsa_search.kernels.postings.ONE_BLOCK", 2**bits)
    counts = counts_of(*random_documents(200, seed=4))
    ones = np.ones(200)
    norms = np.linspace(0.5, 3, 200)
    before = Postings.of(counts.matrix, ones, 1.2, block_bits=6)
    found = before.saturated(lambda first, after: counts.matrix[first:after], norms)
    expected = Postings.of(counts.matrix, norms, 1.2, block_bits=6)
    for name, array in postings_arrays(expected).items():
        assert np.array_equal(postings_arrays(found)[name], array)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    home = tmp_path_factory.mktemp("saturating")
    records = [{"id": str(n), "text": text} for n, text in enumerate(TEXTS)]
    build(records, name="i", home=home, stop_words="none", stemmer="none").close()
    return home / "i"


@pytest.fixture
def path(built, tmp_path):
    return shutil.copytree(built, tmp_path / "i")


@pytest.fixture
def made(monkeypatch):
    """How often all postings are saturated."""
    calls = []

    def saturated(self, counts, norms, former=Postings.saturated):
        calls.append(self)
        return former(self, counts, norms)

    monkeypatch.setattr(Postings, "saturated", saturated)
    return calls


def write(path, *texts, at=0):
    with open_index(path) as index:
        index.add({"id": f"late {at + n}", "text": text} for n, text in enumerate(texts))
        return answers(index)


def answers(index):
    return [(*map(np.ndarray.tolist, index.rank(text, 50)),) for text in TEXTS[::20]]


def opened(path):
    with open_index(path) as index:
        return answers(index)


def files(path):
    return sorted(path.glob("0*/saturated-*"))


def test_a_reader_maps_the_postings_that_another_made(path, made):
    found = write(path, *[LONG] * 8)
    assert len(made) == len(files(path)) == 1
    assert opened(path) == found
    assert len(made) == 1
    verify_deep(path)


def test_a_file_that_is_damaged_is_made_again(path, made):
    found = write(path, *[LONG] * 8)
    [file] = files(path)
    intact = file.read_bytes()
    changed = intact[:100] + bytes([intact[100] ^ 1]) + intact[101:]
    for number, damaged in enumerate((None, intact[:-1], changed), 2):
        file.unlink()
        if damaged is not None:
            file.write_bytes(damaged)
        assert opened(path) == found == opened(path)
        assert len(made) == number


def test_without_the_file_each_has_its_own(path, made, monkeypatch, caplog):
    found = write(path, *[LONG] * 8)
    files(path)[0].unlink()

    def refused(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("klsa_search.delta.postings.FileLock", refused)
    assert opened(path) == found
    assert (len(made), files(path)) == (2, [])
    assert "Permission denied" in caplog.text


@pytest.mark.slow
def test_one_of_several_readers_makes_the_postings(path, made):
    found = write(path, *[LONG] * 8)
    files(path)[0].unlink()
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(opened, [path] * 4)) == [found] * 4
    assert len(made) == 2


def put_late(path, steps):
    """Put a document whose words bring the mean so many steps from the length of the build."""
    with open_index(path) as index:
        lengths = index.arrays.lengths[: len(TEXTS)]
        mean = quantised_length(lengths.mean()) * 2 ** (steps / 64)
        words = round(mean * (len(TEXTS) + 1) - lengths.sum())
        index.add([{"id": "late", "text": "t00 " * words}])
        return length_step(index.arrays.average_length)


def test_files_of_the_steps_next_to_the_last_stay(path):
    def kept():
        return {int(file.name.split("-", 1)[1].rpartition("-")[0]) for file in files(path)}

    first = put_late(path, 1.2)
    assert kept() == {first}
    assert put_late(path, 2.4) == first + 1
    assert kept() == {first, first + 1}
    assert put_late(path, 4.6) == first + 4
    assert kept() == {first + 4}
    assert put_late(path, 3.7) == first + 3
    assert kept() == {first + 3, first + 4}


@pytest.mark.slow
def test_how_often_a_reader_refreshes_does_not_matter(path):
    """One reader sees the mean go up and back, the other only where it ends."""
    with open_index(path) as often, open_index(path) as once:
        up = put_late(path, 1.2)
        assert often.refresh()
        assert put_late(path, 0.3) == up - 1
        assert often.refresh()
        assert once.refresh()
        assert once.arrays.average_length == often.arrays.average_length
        assert answers(once) == answers(often) == opened(path)


@pytest.mark.slow
def test_files_go_with_far_lengths_and_with_their_generation(path):
    write(path, *[LONG] * 8)
    first = files(path)
    write(path, *[LONG] * 40, at=8)
    second = files(path)
    assert not set(first) & set(second)
    generation = second[0].parent
    for _ in range(2):
        refit(path).close()
    assert not generation.exists()
