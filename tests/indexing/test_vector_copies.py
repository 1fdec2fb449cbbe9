"""Copies of an index keep the vectors of its documents: backup, restore, follower, refit."""

import uuid
from contextlib import closing

import pytest

from klsa_search import build, open_index
from klsa_search.collection.vectors import quantised, vectors_of
from klsa_search.indexing.rewrite import refit
from klsa_search.storage.backup import back_up
from klsa_search.storage.maintenance import copy_index
from klsa_search.storage.repository import Repository
from klsa_search.storage.restore import follow, restore_index

ROWS = {"a": [1, 2, 3], "b": [3, -1, 1], "c": [0, 5, 1]}


def record(id_):
    return {"id": id_, "text": f"text of {id_}", "_vectors": {"m": ROWS[id_]}}


@pytest.fixture
def home(tmp_path):
    home = tmp_path / "home"
    with closing(build([record("a"), record("b")], name="cars", home=home)) as index:
        index.add([record("c")])
    return home


def restored(home, tmp_path):
    repository = Repository(f"memory://{uuid.uuid4().hex}/backups")
    back_up(repository, home)
    restore_index(repository, "cars", tmp_path / "copy")
    return tmp_path / "copy"


def followed(home, tmp_path):
    repository = Repository(f"memory://{uuid.uuid4().hex}/backups")
    back_up(repository, home)
    follow(repository, tmp_path / "follower")
    return tmp_path / "follower" / "cars"


def copied(home, tmp_path):
    copy_index(home / "cars", tmp_path / "copy")
    return tmp_path / "copy"


def rewritten(rewrite):
    def path_of(home, _):
        path = home / "cars"
        done = rewrite(path)
        if hasattr(done, "close"):
            done.close()
        return path

    return path_of


@pytest.mark.parametrize(
    "copy",
    [restored, followed, copied, rewritten(refit)],
    ids=["restored", "followed", "copied", "refitted"],
)
def test_a_copy_has_the_vectors(home, tmp_path, copy):
    with closing(open_index(copy(home, tmp_path))) as index:
        for id_, row in ROWS.items():
            assert vectors_of(index.document(id_))["m"].tolist() == quantised(row).tolist()
            assert index.search("", 1, vector={"m": row})[0].id == id_
        assert [each.documents for each in index.vector_spaces] == [3]
