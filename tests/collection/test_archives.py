import errno
import os
import zipfile

import pytest

from klsa_search.collection import open_collection
from klsa_search.collection.files import archives


@pytest.fixture
def packed(tmp_path):
    path = tmp_path / "notes.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("a.txt", f"b/{'水' * 300}.txt", "c.txt"):
            archive.writestr(name, f"Text of {name[0]}")
    return path


def test_files_of_an_archive_may_have_long_names(packed):
    documents = list(open_collection(packed).documents())
    assert [document.text for document in documents] == ["Text of a", "Text of b", "Text of c"]
    assert documents[1].id == f"b/{'水' * 300}.txt"
    assert documents[1].title == "水" * 300


def test_a_full_disk_is_no_damage_of_an_archive(packed, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(archives.shutil, "copyfileobj", full)
    with pytest.raises(OSError, match="No space left"):
        list(open_collection(packed, on_error="skip").documents())
