"""Cached segments make opening faster and never change results."""

import shutil
from contextlib import closing
from dataclasses import fields

import pytest

from benchmarks.faults.children import without_privileges
from klsa_search import build, open_index
from klsa_search.delta import segment
from klsa_search.delta.folding import DeltaBuilder
from klsa_search.storage.generations import writing
from klsa_search.storage.write_log_writer import LogWriter
from tests.support.forked import in_child
from tests.support.worlds import random_documents

TEXTS = random_documents(60, 45, seed=3)


def records(numbers, mark=""):
    return [{"id": str(n), "text": f"{TEXTS[n % 60]} {mark}"} for n in numbers]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    home = tmp_path_factory.mktemp("kept")
    build(records(range(40)), name="i", home=home, stop_words="none", stemmer="none").close()
    return home / "i"


@pytest.fixture
def path(built, tmp_path, monkeypatch):
    monkeypatch.setattr(segment, "BLOCK", 5)
    return shutil.copytree(built, tmp_path / "i")


@pytest.fixture
def folded(monkeypatch):
    """How many documents are folded."""
    counts = []

    def fold(self, documents, former=DeltaBuilder.fold):
        counts.append(len(documents))
        return former(self, documents)

    monkeypatch.setattr(DeltaBuilder, "fold", fold)
    return counts


def files(path):
    return sorted(file.name for file in path.glob("0*/delta-*"))


def answers(index):
    return [index.rank(query, 50)[1].tolist() for query in TEXTS[40:60:4]]


def write(path, *batches):
    index = open_index(path)
    for batch in batches:
        index.add(batch)
    found = answers(index)
    index.close()
    return found


def opened(path):
    index = open_index(path)
    found = answers(index)
    index.close()
    return found


def test_a_reader_folds_only_documents_that_are_not_cached(path, folded):
    found = write(path, records(range(40, 45)), records([45, 46]))
    assert len(files(path)) == 1
    folded.clear()
    assert opened(path) == found
    assert folded == [2]


def test_there_are_few_files_however_it_was_written(path, folded):
    found = write(path, *(records([40 + n % 20], f"x{n}") for n in range(15)))
    assert len(files(path)) == 15 // 5
    assert not list(path.glob("0*/.delta*"))
    folded.clear()
    assert opened(path) == found
    assert folded == []


def test_a_file_that_is_damaged_is_made_again(path, folded):
    found = write(path, records(range(40, 50)), records(range(50, 60)))
    first, second, *_ = sorted(path.glob("0*/delta-*"))
    intact = first.read_bytes()
    middle = len(intact) // 2
    flipped = intact[:middle] + bytes([intact[middle] ^ 1]) + intact[middle + 1 :]
    for damaged in (flipped, b"", None, second.read_bytes()):
        first.unlink() if damaged is None else first.write_bytes(damaged)
        folded.clear()
        assert opened(path) == found
        assert folded == [5]
        assert first.read_bytes() == intact


def test_files_of_another_layout_are_made_again(path, folded, monkeypatch):
    with monkeypatch.context() as earlier:
        names = [field.name for field in fields(segment.DeltaSegment)[2:]]
        earlier.setattr(segment, "_ARRAYS", names)
        found = write(path, records(range(40, 50)))
    folded.clear()
    assert opened(path) == found
    assert sum(folded) == 10


def test_undone_writes_are_not_read_from_the_cache(path, folded):
    write(path, records(range(40, 44)), records(range(50, 59), "gone"))
    generation = next(path.glob("0*"))
    with writing(path), LogWriter(generation) as writer:
        writer.undo()
    found = write(path, records(range(50, 59), "there"))
    folded.clear()
    assert opened(path) == found
    assert folded == [3]
    for file in generation.glob("delta-*"):
        file.unlink()
    assert opened(path) == found


def test_files_of_another_index_are_of_no_use(path, tmp_path):
    other = shutil.copytree(path, tmp_path / "other")
    write(path, records(range(40, 49)))
    found = write(other, records(range(40, 49), "other"))
    for file in path.glob("0*/delta-*"):
        shutil.copy(file, next(other.glob("0*")))
    assert opened(other) == found


@pytest.mark.slow
def test_files_of_the_same_documents_after_another_build_are_of_no_use(path, tmp_path):
    write(path, records(range(40, 49)))
    build(records(range(30)), name="other", home=tmp_path, stop_words="none", k1=2.0).close()
    found = write(tmp_path / "other", records(range(40, 49)))
    [own] = (tmp_path / "other").glob("0*/delta-*")
    [strange] = path.glob("0*/delta-*")
    assert strange.name != own.name
    shutil.copy(strange, own)
    assert opened(tmp_path / "other") == found


def test_a_reader_needs_no_right_to_write(path):
    found = write(path, records(range(40, 49)))
    [file] = path.glob("0*/delta-*")
    file.unlink()  # which a reader that may write makes again
    generation = next(path.glob("0*"))

    def read():
        with without_privileges():
            assert opened(path) == found

    generation.chmod(0o555)
    assert in_child(read) == 0
    generation.chmod(0o755)
    assert files(path) == []


def test_a_full_disk_is_not_an_error(path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(segment, "write_segment", full)
    found = write(path, records(range(40, 49)))
    assert files(path) == []
    assert opened(path) == found


def test_a_reader_reads_what_another_process_saved(path, folded):
    with closing(open_index(path)) as reader, closing(open_index(path)) as writer:
        writer.add(records(range(40, 45), "new"))
        writer.add(records(range(45, 50), "newer"))
        folded.clear()
        reader.refresh()
        assert folded == []
        assert answers(reader) == answers(writer)


def test_a_reader_saves_the_blocks_that_it_completes(path, folded):
    """Also if they were folded in several steps."""
    with closing(open_index(path)) as reader:
        with writing(path), LogWriter(reader.path) as writer:
            for begin in range(40, 52, 4):
                writer.append(open_documents(range(begin, begin + 4)))
                reader.refresh()
        assert len(files(path)) == 2
        folded.clear()
        assert opened(path) == answers(reader)
        assert folded == [2]


def open_documents(numbers):
    from klsa_search import Document

    return [Document(**one) for one in records(numbers)]
