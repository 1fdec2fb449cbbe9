"""Changes that one process of a service has acknowledged, as the others answer then."""

import shutil
import threading
import timeit
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import cycle

import pytest

from klsa_search.core.child_processes import command_of
from klsa_search.indexing.build import build
from klsa_search.search.index import open_index
from klsa_search.service.admission import Writes
from klsa_search.service.application import CHILD
from klsa_search.service.changes import ChangeNotices
from klsa_search.service.jobs import Jobs
from klsa_search.service.keys import add_key
from klsa_search.service.middleware.auth import Keys
from klsa_search.service.open_indexes import OpenIndexes
from tests.support.acknowledged import (
    DOCUMENTS,
    KINDS,
    aliases,
    creations,
    keys,
    refits,
    stale_answers,
    writes,
)
from tests.support.application import app_of_indexes
from tests.support.client import AppClient
from tests.support.waiting import PATIENCE

QUICK = (writes, creations, aliases, keys)
"""One of each file that a change is announced for: a log, a generation, the catalogue, keys."""


@pytest.fixture(scope="module")
def built_home(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    for name in ("files", "other", "rebuilt"):
        build(DOCUMENTS, name=name, home=home).close()
    return home


@pytest.fixture
def service(built_home, tmp_path):
    """Ask one of two services of a directory, in turns; neither scans it by itself."""
    home = shutil.copytree(built_home, tmp_path, dirs_exist_ok=True)
    key = add_key(home / ".keys.json", "tests", ["search", "write"])
    keys = Keys(home / ".keys.json", ())
    opened = [OpenIndexes(home, interval=3600) for _ in range(2)]
    command = command_of(CHILD, "refit", "--home", str(home))
    jobs = [Jobs(open_indexes, command, share=None) for open_indexes in opened]
    clients = [
        AppClient(app_of_indexes(open_indexes, writes=Writes(), jobs=each, keys=keys))
        for open_indexes, each in zip(opened, jobs, strict=True)
    ]
    turns = cycle(clients)

    def ask(method, path, body=None, key=key):
        headers = {"Authorization": f"Bearer {key}"}
        answer = next(turns).request(method, path, json=body, headers=headers)
        return answer.status_code, answer.json()

    with jobs[0]:
        yield ask, home
    for each in opened:
        each.close()


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[] if kind in QUICK else pytest.mark.slow) for kind in KINDS]
)
def test_acknowledged_changes_are_visible_in_all_processes(kind, service):
    ask, home = service
    stale, answers = stale_answers(kind, ask, home, 1 if kind is refits else 2)
    assert stale == []
    assert answers


def test_comparing_a_word_costs_microseconds(tmp_path):
    changes = ChangeNotices(tmp_path)
    changes.announce("files")
    assert min(timeit.repeat(lambda: changes.version("files"), number=1000, repeat=20)) < 0.01


def test_words_differ_after_each_change_in_any_process(tmp_path):
    one, other = ChangeNotices(tmp_path), ChangeNotices(tmp_path)
    seen = [other.version(None), other.version("files")]
    for name in ("files", "files", None):
        one.announce(name)
        seen.append(other.version(name))
    assert len(set(seen)) == 4  # both versions are zeros at first
    assert other.version("other") == bytes(8)


def test_a_directory_that_does_not_exist_yet_has_no_words(tmp_path):
    changes = ChangeNotices(tmp_path / "later")
    changes.announce("files")
    assert changes.version("files") == b""
    (tmp_path / "later").mkdir()
    assert changes.version("files") == bytes(8)


def test_an_index_that_a_scan_is_opening_is_waited_for(built_home, tmp_path):
    """It was created by another process, and the scan found it before the request came."""
    home = shutil.copytree(built_home, tmp_path, dirs_exist_ok=True)
    opening, may_open = threading.Event(), threading.Event()

    def open_slowly(path):
        if path.name == "made":
            opening.set()
            assert may_open.wait(PATIENCE)
        return open_index(path)

    with (
        OpenIndexes(home, interval=3600, opener=open_slowly) as open_indexes,
        ThreadPoolExecutor() as pool,
    ):
        build(DOCUMENTS, name="made", home=home).close()
        open_indexes.start_scan()
        assert opening.wait(PATIENCE)
        ChangeNotices(home).announce(None)
        caught_up = pool.submit(open_indexes.catch_up, "made")
        wait([caught_up], 0.2)
        may_open.set()
        caught_up.result(PATIENCE)
        with open_indexes.use_if_current("made") as index:
            assert index.name == "made"
