"""No route waits for a file, a file lock or a refresh in the event loop."""

import asyncio
import shutil
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from fastapi import FastAPI

from klsa_search.search.index import Index
from klsa_search.service.admission import Admission, Writes
from klsa_search.service.jobs import Jobs
from klsa_search.service.open_indexes import OpenIndexes
from tests.support.application import app_of_indexes
from tests.support.client import AppClient
from tests.support.endpoints import ENDPOINTS

from .test_scopes import ask

EVENTS = {"open", "os.listdir", "os.scandir", "os.rename", "sqlite3.connect", "subprocess.Popen"}
EVENTS |= {"fcntl.flock", "fcntl.lockf", "time.sleep"}
_recording: list[Counter[str]] = []


def record(what):
    """Count something that blocks, if it is done in an event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    for recorded in _recording:
        recorded[what] += 1


@pytest.fixture(scope="module", autouse=True)
def _heard():
    if sys.version_info < (3, 12) and sys.gettrace():
        # Python 3.11 lets threads switch inside an audit hook, and then cannot trace the next
        # thread: it ends before it begins, whatever test started it.
        pytest.skip("an audit hook ends traced threads of Python 3.11")
    # A hook stays until the process ends; this one does next to nothing while nobody records.
    sys.addaudithook(lambda event, _: record(event) if _recording and event in EVENTS else None)


@contextmanager
def recorded():
    _recording.append(Counter())
    try:
        yield _recording[-1]
    finally:
        _recording.clear()


@pytest.fixture(scope="module")
def client(two_home, tmp_path_factory):
    """A service with all that it can do, over a home of its own."""
    home = shutil.copytree(two_home, tmp_path_factory.mktemp("loop"), dirs_exist_ok=True)
    with OpenIndexes(home, interval=3600) as open_indexes:
        jobs = Jobs(open_indexes, [], share=None)
        yield AppClient(app_of_indexes(open_indexes, writes=Writes(), jobs=jobs))


@pytest.mark.parametrize(
    "reads",
    [pytest.param(True, id="reads"), pytest.param(False, id="writes", marks=pytest.mark.slow)],
)
def test_no_route_blocks_the_event_loop(client, monkeypatch, reads):
    refresh = vars(Index)["refresh"]

    def recording(index):
        record("refresh")
        return refresh.__get__(index, Index)()

    monkeypatch.setattr(Index, "refresh", recording)
    blocking = {}
    asked = [endpoint for endpoint in ENDPOINTS if (endpoint.method == "GET") == reads]
    assert asked
    for endpoint in asked:
        ask((client, {}), endpoint, None)  # what is loaded at its first use
        with recorded() as calls:
            answer = ask((client, {}), endpoint, None)
        assert answer.status_code != 500, (endpoint, answer.text)
        blocking |= {str(endpoint): dict(calls)} if calls else {}
    assert blocking == {}


@pytest.mark.parametrize(
    ("parameters", "inline"),
    [
        ("q=wing", True),
        ("q=wing&k=20&fields=title", True),
        ("q=wing&highlight=true&facets=year&filter=year>1900", True),
        ("q=heat of the boun&prefix=last", True),
        ("q=wing&facets=year&max_facet_values=101", False),
        ("q=wing&k=21", False),
        ("q=wing&explain=true&k=20", False),
        ("q=wing&exact=true", False),
        ("q=wingg", False),
        ("q=wingg lay&prefix=last", False),
        ('q="boundary layer"', False),
    ],
)
def test_cheap_searches_run_in_the_event_loop(two_home, parameters, inline):
    runs = []

    class Noticing(Admission):
        async def run(self, work):
            runs.append(work)
            return await super().run(work)

    with OpenIndexes(two_home, interval=3600) as open_indexes:
        admission = Noticing(inline_seconds=300.0)
        client = AppClient(
            app_of_indexes(open_indexes, admission=admission, heavy=Noticing(running=1))
        )
        answer = client.get(f"/search?index=first&{parameters}")
    assert answer.status_code == 200, answer.text
    assert bool(runs) != inline


def test_the_schema_is_made_once_and_not_in_the_event_loop(two_home, monkeypatch):
    made = []
    generate = FastAPI.openapi

    def noting(app):
        if app.openapi_schema is None:
            made.append(app)
        record("schema")
        return generate(app)

    monkeypatch.setattr(FastAPI, "openapi", noting)
    with OpenIndexes(two_home, interval=3600) as open_indexes, ThreadPoolExecutor(2) as clients:
        client = AppClient(app_of_indexes(open_indexes))
        with recorded() as calls:
            first, second = clients.map(client.get, ["/openapi.json"] * 2)
    assert first.json() == second.json() != {}
    assert len(made) == 1
    assert calls == {}


def test_blocking_calls_are_detected(tmp_path):
    async def blocks():
        (tmp_path / "file").write_text("")

    with recorded() as blocking:
        asyncio.run(blocks())
    assert blocking == {"open": 1}
