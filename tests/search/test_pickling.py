"""A pickled index opens at the same path in another process."""

import multiprocessing
import os
import pickle
import shutil
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from klsa_search import build, open_index
from klsa_search.errors import IndexNotFound, QueryError, StoreError
from klsa_search.search.parts import open_parts
from klsa_search.storage.maintenance import delete_index
from tests.search.conftest import DOCUMENTS
from tests.search.test_closing import held

LATER = {"id": "w9", "title": "Later", "text": "A wing of plywood."}


@pytest.fixture
def path(index_of, tmp_path):
    return shutil.copytree(index_of(DOCUMENTS, name="t").path.parent, tmp_path / "t")


@pytest.mark.slow
def test_another_process_answers_as_this_one(path, monkeypatch):
    monkeypatch.chdir(path.parent)
    index = open_index("t")  # by a path that only this folder gives a meaning
    index.add([LATER])
    spawned = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, spawned, os.chdir, ("/",)) as pool:
        there = pool.submit(index.search, "plywood wing", explain=True, highlight=True)
        assert there.result() == index.search("plywood wing", explain=True, highlight=True)
        with pytest.raises(QueryError) as refused:
            pool.submit(index.search, "wing", alpha=2.0).result()
    assert refused.value.field == "alpha"


def test_unpickling_opens_the_index_as_it_is_then(path):
    index = open_index(path)
    packed = pickle.dumps(index)
    index.add([LATER])
    build([LATER], name="t", home=path.parent, replace=True).close()
    opened = pickle.loads(packed)
    assert (opened.generation, opened.ids()) == ("000002", ["w9"])
    assert opened.delete(["w9"]) == 1


def test_a_pinned_one_is_what_it_was(path):
    index = open_index(path)
    index.write([index.document("b1")], ["b2"])
    index.set_synonyms({"plane": ["wing"]})
    pinned = index.snapshot()
    packed = pickle.dumps(pinned)
    index.add([LATER])
    index.set_synonyms({})
    build([LATER], name="t", home=path.parent, replace=True).close()
    opened = pickle.loads(packed)
    assert (opened.generation, opened.last_write) == (pinned.generation, pinned.last_write)
    assert opened.ids() == pinned.ids()
    assert opened.synonyms == pinned.synonyms
    for query in ("plane", "sourdough bread"):
        assert np.array_equal(opened.scores(query), pinned.scores(query))
    assert not opened.refresh()
    with pytest.raises(StoreError, match="snapshot"):
        opened.delete(["b1"])


def test_a_snapshot_does_not_open_another_build_of_the_same_name(path, monkeypatch):
    index = open_index(path)
    packed, built = pickle.dumps(index.snapshot()), index.manifest.build
    index.close()
    delete_index(path)
    with build([LATER], name="t", home=path.parent) as other:
        assert other.generation == index.generation
        same_time = other.manifest.model_copy(update={"build": built})
        monkeypatch.setattr(open_parts, "read_manifest", lambda _: same_time)
        with pytest.raises(IndexNotFound, match="no longer exists"):
            pickle.loads(packed)


def test_unpickling_a_deleted_index_names_it(path):
    index = open_index(path)
    packed, pinned = pickle.dumps(index), pickle.dumps(index.snapshot())
    for text in ("wing", "bread"):  # the generation before the last goes
        build([{"id": "1", "text": text}], name="t", home=path.parent, replace=True).close()
    with pytest.raises(IndexNotFound, match="no longer exists"):
        pickle.loads(pinned)
    shutil.rmtree(path)
    with pytest.raises(IndexNotFound, match=f"no index at `{path}"):
        pickle.loads(packed)


def test_a_closed_one_is_not_pickled(path):
    index = open_index(path)
    index.close()
    with pytest.raises(StoreError, match="is closed"):
        pickle.dumps(index)


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs /proc")
def test_an_unpickled_index_closes_its_files_and_a_snapshot_none(path):
    index = open_index(path)
    pinned = index.snapshot()
    apart = pickle.loads(pickle.dumps(pinned))
    pinned.close()
    assert index.document("b1").title == "Bread"
    index.close()
    assert apart.document("b1").title == "Bread"
    apart.close()
    assert not held(path)
