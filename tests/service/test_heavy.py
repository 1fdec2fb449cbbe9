"""Heavy requests have threads of their own: they hold up no light one."""

import threading

import pytest

from klsa_search.search import Index
from klsa_search.service.endpoints import mining
from klsa_search.service.messages.searching import SearchBody

from .sockets import LONG, serving


class Held:
    """Work that begins when it is let."""

    def __init__(self):
        self.begun = threading.Semaphore(0)
        self.let = threading.Event()

    def before(self, work, applies=lambda parameters: True):
        def held(*arguments, **parameters):
            if applies(parameters):
                self.begun.release()
                assert self.let.wait(LONG)
            return work(*arguments, **parameters)

        return held


@pytest.fixture
def held(monkeypatch):
    held = Held()
    exact = held.before(Index.search, lambda parameters: parameters.get("exact"))
    monkeypatch.setattr(Index, "search", exact)
    monkeypatch.setattr(mining, "related", held.before(mining.related))
    yield held
    held.let.set()


@pytest.mark.parametrize("path", ["/search?q=wing&exact=true", "/indexes/tiny/terms/wing/related"])
def test_light_requests_are_answered_while_heavy_ones_run(catalog_of, tiny_home, held, path):
    with serving(catalog_of(tiny_home), running=1, heavy=(1, 2)) as served:
        heavy = [served.client() for _ in range(3)]
        for client in heavy:
            client.ask(path)
        assert held.begun.acquire(timeout=LONG)
        while sum(served.heavy.load()) < 3:
            pass
        for _ in range(20):
            assert served.get("/search?q=wing")[0] == 200
            assert served.get("/documents/1")[0] == 200
        status, content = served.get(path)
        assert (status, content["error"]["code"]) == (503, "busy")
        assert served.heavy.load() == (1, 2)
        held.let.set()
        for client in heavy:
            assert client.answer()[0] == 200
            client.close()
        assert served.heavy.refused()["full"] == 1


@pytest.mark.parametrize(
    ("asked", "heavy"),
    [
        ({}, False),
        ({"k": 100}, False),
        ({"exact": False, "ranker": "bm25"}, False),
        ({"k": 101}, True),
        ({"offset": 91}, True),
        ({"page": 11}, True),
        ({"exact": True}, True),
        ({"min_score": 0.0}, True),
        ({"ranker": "lsi"}, True),
        ({"spectral": "exponential"}, True),
    ],
)
def test_which_searches_are_heavy(asked, heavy):
    assert SearchBody(q="wing", **asked).is_heavy == heavy
