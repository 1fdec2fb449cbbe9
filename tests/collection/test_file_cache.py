"""A file cache: files are read again if they have changed, or were not stored."""

import os

import pytest

from klsa_search.collection import open_collection
from klsa_search.collection.files import reading
from klsa_search.collection.folder import FileCache
from klsa_search.errors import DocumentNotFound


@pytest.fixture
def folder(tmp_path):
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text(f"text of {name}")
    return tmp_path


class World:
    """A folder that is read again and again into a mapping, with the files that are opened."""

    def __init__(self, folder, monkeypatch):
        self.stored, self.opened = {}, []
        self.collection = open_collection(folder)
        self.cache = self.collection.cache = FileCache(self.document)
        read = reading.documents_of_file

        def spied(path, *args):
            self.opened.append(path.name)
            return read(path, *args)

        monkeypatch.setattr(reading, "documents_of_file", spied)

    def document(self, id_):
        if id_ not in self.stored:
            raise DocumentNotFound(id_)
        return self.stored[id_]

    def read(self, *, stored=True):
        self.opened.clear()
        found = {document.id: document for document in self.collection.documents()}
        if stored:
            self.stored = found
            self.cache.commit()
        else:
            self.cache.discard()
        return {id_: document.text for id_, document in found.items()}


@pytest.fixture
def world(folder, monkeypatch):
    return World(folder, monkeypatch)


def test_only_changed_files_are_read(world, folder):
    first = world.read()
    assert (world.read(), world.opened) == (first, [])
    (folder / "a.txt").write_text("other")
    (folder / "c.txt").write_text("new")
    (folder / "b.txt").unlink()
    assert world.read() == {"a.txt": "other", "c.txt": "new"}
    assert world.opened == ["a.txt", "c.txt"]
    (folder / "c.txt").rename(folder / "b.txt")
    assert world.read() == {"a.txt": "other", "b.txt": "new"}
    assert world.opened == ["b.txt"]


def test_a_change_of_the_same_size_and_time_is_noticed(world, folder):
    world.read()
    status = (folder / "a.txt").stat()
    (folder / "a.txt").write_text("TEXT of a.txt")
    os.utime(folder / "a.txt", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert world.read()["a.txt"] == "TEXT of a.txt"


def test_files_that_were_not_stored_are_read_again(world, folder):
    world.read()
    (folder / "a.txt").write_text("other")
    world.read(stored=False)
    assert world.read()["a.txt"] == "other"
    del world.stored["b.txt"]  # by another process
    assert world.read() == {"a.txt": "other", "b.txt": "text of b.txt"}
    assert world.opened == ["b.txt"]
