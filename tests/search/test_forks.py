"""An index opened before a fork works in the child, whatever threads are searching."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from klsa_search import build
from klsa_search.core import compiling, forks
from klsa_search.core.compiling import compiled
from klsa_search.errors import StoreError
from klsa_search.search.log_tailer import LogTailer
from tests.search.conftest import DOCUMENTS
from tests.support.forked import another_thread, in_child
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

FORKING = """
import os, sys, threading
from klsa_search import open_index
from tests.support.forked import ended

index = open_index(sys.argv[1])
expected = index.search("wing dough")
index.warm_up()
stop, begun = threading.Event(), threading.Barrier(5)

def search(number):
    begun.wait()
    while not stop.is_set():
        number += 4
        index.search(f"wings of doughs baked{number}s")  # words that nobody asked for before
        index.rank_many(["wing"] * 70, ranker="bm25", threads=2)
        with_own = open_index(sys.argv[1])
        with_own.search("oven", ranker="rm3")
        with_own.close()

threads = [threading.Thread(target=search, args=(number,)) for number in range(4)]
for thread in threads:
    thread.start()
begun.wait()
statuses = []
for number in range(int(sys.argv[2])):
    child = os.fork()
    if child == 0:
        assert index.search("wing dough") == expected
        assert index.document("b1").title == "Bread"
        index.search(f"ovens untold{number}s", ranker="bm25")
        index.scores("wing", ranker="rm3")
        open_index(sys.argv[1]).search("oven")
        sys.exit(0)
    statuses.append(ended(child))
stop.set()
for thread in threads:
    thread.join()
print(statuses)
"""


@pytest.mark.parametrize(
    ("spectral", "children"), [("gvsm", 2), pytest.param("squashing", 8, marks=pytest.mark.long)]
)
def test_children_of_a_process_whose_threads_search_answer_and_end(tmp_path, spectral, children):
    build(DOCUMENTS, name="t", home=tmp_path, dimensions=2, z=2, spectral=spectral).close()
    command = [sys.executable, "-W", "ignore", "-c", FORKING, str(tmp_path / "t"), str(children)]
    root = Path(__file__).parent.parent.parent
    assert (
        subprocess.check_output(command, text=True, cwd=root, timeout=PATIENCE)
        == f"{[0] * children}\n"
    )


def test_a_fork_waits_for_a_refresh_that_compiles(tmp_path, monkeypatch):
    """It waits for the refresh first: who refreshes gets the compilers, and then both are free."""
    index = build(DOCUMENTS, name="t", home=tmp_path, dimensions=2)
    refreshing, forking = threading.Event(), threading.Event()
    take_up = LogTailer.state

    def compile_first(*given, **options):
        refreshing.set()
        forking.wait(0.2)  # which comes if a fork takes the compilers first
        assert compiled(eval("lambda number: number + 1"))(1) == 2
        return take_up(*given, **options)

    def held():
        let_go = compiling._acquire_lock()
        forking.set()
        return let_go

    monkeypatch.setattr(LogTailer, "state", compile_first)
    monkeypatch.setattr(forks, "_acquirers", [held])
    with ThreadPoolExecutor(1) as threads:
        refresh = threads.submit(index.refresh)
        assert refreshing.wait(PATIENCE)

        def work():
            monkeypatch.undo()
            assert index.search("wing").hits
            index.add([{"id": "new", "text": "A wing."}])
            assert index.document("new").text == "A wing."

        assert in_child(work) == 0
        assert not refresh.result(PATIENCE)
    index.close()


def test_a_child_may_filter_while_another_thread_of_its_parent_does(tmp_path):
    index = build(DOCUMENTS, name="t", home=tmp_path, dimensions=2)
    years = iter(range(1000, 10**9))

    def work():
        index.search("wing", filter=f"year > {next(years)}")

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with another_thread(work):
            assert [in_child(work) for _ in range(5)] == [0] * 5
    finally:
        sys.setswitchinterval(interval)
    index.close()


def test_a_child_says_that_its_generation_was_removed(tmp_path):
    index = build(DOCUMENTS, name="t", home=tmp_path, dimensions=2)
    for path in index.path.iterdir():
        path.unlink()

    def work():
        assert index.search("wing").hits  # of what is mapped
        with pytest.raises(StoreError, match="removed or replaced since this process was forked"):
            index.document("b1")

    assert in_child(work) == 0
    assert index.document("b1").id == "b1"
    index.close()
