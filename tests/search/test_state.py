"""The state of an index is replaced as a whole, and a closed index stays closed."""

import gc
import shutil
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from klsa_search import build, open_index
from klsa_search.errors import StoreError
from klsa_search.search.parts import generation, open_parts, part_set
from klsa_search.search.parts.generation import OpenGeneration
from klsa_search.search.state.state import open_state
from tests.search.conftest import DOCUMENTS
from tests.search.test_closing import held
from tests.support.waiting import PATIENCE


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    home = tmp_path_factory.mktemp("swapping")
    build(DOCUMENTS, name="t", home=home, dimensions=2, z=2).close()
    return home / "t"


@pytest.fixture
def path(built, tmp_path):
    return shutil.copytree(built, tmp_path / "t")


def add(path, *ids):
    with open_index(path) as writer:
        writer.add([{"id": each, "text": "dough of a wing"} for each in ids])


def closed_within(monkeypatch, index, owner, name):
    """Have a thread close the index after the named function has worked for `refresh`."""
    work = getattr(owner, name)

    def closing(*given, **options):
        made = work(*given, **options)
        other = threading.Thread(target=index.close)
        other.start()
        other.join(PATIENCE)
        assert not other.is_alive()  # it does not wait for the end of a refresh
        return made

    monkeypatch.setattr(owner, name, closing)


def refused(index):
    with pytest.raises(StoreError, match="is closed"):
        index.refresh()
    with pytest.raises(StoreError, match="is closed"):
        index.search("wing")


def test_an_index_closed_while_it_takes_up_writes_stays_closed(path, monkeypatch):
    index = open_index(path)
    add(path, "new")
    closed_within(monkeypatch, index, OpenGeneration, "refresh")
    refused(index)


@pytest.mark.parametrize(
    ("module", "step"), [(generation, "open_state"), (open_parts, "OpenGeneration")]
)
def test_an_index_closed_while_it_opens_a_generation_stays_closed(path, monkeypatch, module, step):
    index = open_index(path)
    build(DOCUMENTS[:3], name="t", home=path.parent, dimensions=2, z=2, replace=True).close()
    closed_within(monkeypatch, index, module, step)
    refused(index)
    monkeypatch.undo()
    if Path("/proc/self/fd").exists():
        assert not held(path)


def test_a_generation_whose_writes_cannot_be_read_is_not_left_open(path, monkeypatch):
    index = open_index(path)
    build(DOCUMENTS[:3], name="t", home=path.parent, dimensions=2, z=2, replace=True).close()
    opened = []

    def failing(generation):
        opened.append(weakref.ref(generation.state))
        raise StoreError("no log")

    monkeypatch.setattr(OpenGeneration, "refresh", failing)
    with pytest.raises(StoreError, match="no log"):
        index.refresh()
    assert opened[0]() is None
    assert len(index) == len(DOCUMENTS)
    assert index.document("w1").id == "w1"
    monkeypatch.undo()
    assert index.refresh()
    assert len(index) == 3
    index.close()


@pytest.mark.slow
def test_refreshes_and_closes_of_many_threads_leave_every_index_closed(path):
    """A pinned index is of one state: it has the documents that it counts."""
    add(path, "one")
    indexes = [open_index(path) for _ in range(10)]
    add(path, "two")
    begin = threading.Barrier(3)

    def work(do):
        try:
            for index in indexes:
                begin.wait(PATIENCE)
                with suppress(StoreError):  # it is closed
                    do(index)
        except BaseException:
            begin.abort()
            raise

    def pin(index):
        for _ in range(20):
            pinned = index.snapshot()
            assert len(pinned) == len(pinned.ids())

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(3) as pool:
            list(pool.map(work, (lambda index: index.refresh(), pin, lambda index: index.close())))
    finally:
        sys.setswitchinterval(interval)
    for index in indexes:
        refused(index)


def test_a_restricted_state_goes_with_its_state(path, monkeypatch):
    with open_index(path) as index:
        restrict, made = part_set.restricted_to, []

        def restricting(state, allowed):
            found = restrict(state, allowed)
            made.append(weakref.ref(found.snapshot))
            if len(made) == 1:  # written before the first is cached
                index.add([{"id": "new", "text": "dough"}])
            return found

        monkeypatch.setattr(part_set, "restricted_to", restricting)
        index.restricted("year > 0")
        assert len(index.restricted("year > 0")) == len(index.restricted("year > 0"))
        assert len(made) == 2
        gc.collect()
        assert made[0]() is None
        before = index.snapshot()
        for each in (index, before, index, before):
            each.restricted("year > 0")
        assert len(made) == 2


@pytest.mark.parametrize("opens", ["open_index", "refresh"])
def test_a_generation_that_is_removed_while_it_is_opened_is_followed(opens, path, monkeypatch):
    """Two builds remove the generation that CURRENT named when opening began."""
    index = open_index(path)
    if opens == "refresh":
        build(DOCUMENTS, name=path.name, home=path.parent, replace=True).close()
    opened = []

    def open_slowly(generation, terms=None):
        opened.append(generation.name)
        if len(opened) == 1:
            monkeypatch.undo()  # the builds open what they have built
            for _ in range(2):
                build(DOCUMENTS, name=path.name, home=path.parent, replace=True).close()
            assert not generation.exists()
        return open_state(generation, terms)

    monkeypatch.setattr(generation, "open_state", open_slowly)
    if opens == "refresh":
        assert index.refresh()
    else:
        index.close()
        index = open_index(path)
    assert index.generation == f"{int(opened[0]) + 2:06d}"
    assert len(index) == len(DOCUMENTS)
    index.close()
