"""Writers that run out of memory raise an error and keep acknowledged writes."""

import os
import resource
import shutil
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from klsa_search import build, open_index
from klsa_search.cli.main import explain
from klsa_search.errors import KlsaError
from klsa_search.indexing import refit
from klsa_search.storage.maintenance import verify
from tests.support.forked import in_child

pytestmark = pytest.mark.slow

PLAIN = {"stop_words": "none", "stemmer": "none"}
SPARE = [2**power for power in range(16, 30)]
"""Bytes of address space that are left: from too few for anything to enough for all."""


def documents(numbers):
    """Documents that take a megabyte each to write: 20,000 different words."""
    return [
        {"id": str(n), "text": f"shared {' '.join(f'w{n * 7 + k}' for k in range(20_000))}"}
        for n in numbers
    ]


@contextmanager
def limited(spare):
    """Let the process map so many bytes more than it has."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * os.sysconf("SC_PAGESIZE") + spare, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def starved(work, spare):
    """Do the work with so little memory; whether it was done."""
    try:
        with limited(spare):
            work()
    except (MemoryError, OSError, KlsaError) as error:
        message = explain(error)
        assert "memory" in message, message
        assert "repair" not in message, message
        return False
    return True


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    home = tmp_path_factory.mktemp("memory")
    build(documents(range(4)), name="index", home=home, **PLAIN).close()
    return home / "index"


def ids_of(path):
    verify(path)
    with closing(open_index(path)) as index:
        found = index.ids()
        assert {hit.id for hit in index.search("shared", 100).hits} == set(found)
        return found


CHANGES = {
    "add": (lambda index: index.add(documents(range(10, 14))), ["10", "11", "12", "13"]),
    "refit": (lambda index: refit(index.path.parent).close(), []),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_without_memory_is_whole_or_absent(built, tmp_path, change):
    work, added = CHANGES[change]
    outcomes = set()
    for spare in SPARE:
        path = shutil.copytree(built, tmp_path / f"{spare}" / "index")

        def child(path=path, spare=spare):
            with closing(open_index(path)) as index:
                index.add(documents([8]))  # acknowledged, and everything compiled and loaded
                done = starved(lambda: work(index), spare)
                path.with_name("done").write_text(str(done))
                found = [id_ for id_ in index.ids() if id_ in added]
                assert found in ([added] if done else [[], added])
                index.add(documents([9]))  # goes on with memory

        assert in_child(child) == 0, spare
        done = path.with_name("done").read_text() == "True"
        found = ids_of(path)
        assert {"0", "1", "2", "3", "8", "9"} <= set(found)
        assert [id_ for id_ in found if id_ in added] in ([added] if done else [[], added])
        outcomes.add(done)
    assert True in outcomes  # all may be done in memory that earlier tests left free
