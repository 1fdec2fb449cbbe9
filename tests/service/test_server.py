"""Overload and shutdown, over real sockets."""

import threading

import pytest

from klsa_search.search.index import Index
from tests.support.waiting import PATIENCE, wait_until

from .sockets import serving

SHORT = 0.05  # seconds that are over at once


class Searches:
    """Every search waits until it is let."""

    def __init__(self):
        self.begun = threading.Semaphore(0)
        self.let = threading.Event()

    def wait_for(self, count):
        for _ in range(count):
            assert self.begun.acquire(timeout=PATIENCE)


@pytest.fixture
def searches(monkeypatch):
    held, search = Searches(), Index.search

    def wait(*arguments, **parameters):
        held.begun.release()
        assert held.let.wait(PATIENCE)
        return search(*arguments, **parameters)

    monkeypatch.setattr(Index, "search", wait)
    yield held
    held.let.set()


def asking(served, count, path="/search?q=wing"):
    """Connections that have each asked once."""
    clients = [served.client() for _ in range(count)]
    for client in clients:
        client.ask(path)
    return clients


def test_excess_requests_are_refused_at_once_and_health_always_answers(
    indexes_of, tiny_home, searches
):
    with serving(indexes_of(tiny_home), running=2, waiting=3) as served:
        admitted = asking(served, 5)
        searches.wait_for(2)
        wait_until(lambda: sum(served.admission.load()) == 5)
        for _ in range(10):
            for path in ("/search?q=wing", "/documents/1", "/docs"):
                with served.client() as client:
                    client.ask(path)
                    status, head, content = client.answer()
                assert (status, content["error"]["code"]) == (503, "busy")
                assert head["retry-after"] == "1"
                assert head["x-request-id"]
            for path in ("/health", "/"):
                assert served.get(path)[0] == 200
        searches.let.set()
        for client in admitted:
            assert client.answer()[0] == 200
            client.close()
        assert served.get("/search?q=wing")[0] == 200


def test_a_request_that_waits_too_long_is_refused(indexes_of, tiny_home, searches):
    with serving(indexes_of(tiny_home), running=1) as served:
        (first,) = asking(served, 1)
        searches.wait_for(1)
        served.admission.queue_timeout = SHORT
        status, content = served.get("/search?q=wing")
        assert (status, content["error"]["code"]) == (503, "busy")
        searches.let.set()
        assert first.answer()[0] == 200
        first.close()


def test_a_search_that_takes_too_long_is_cancelled(indexes_of, tiny_home, searches):
    with serving(indexes_of(tiny_home), running=1, request_timeout=SHORT) as served:
        status, content = served.get("/search?q=wing")
        assert (status, content["error"]["code"]) == (503, "timed_out")
        searches.let.set()


def test_stopping_answers_what_is_under_way_and_closes_what_is_idle(
    indexes_of, tiny_home, searches
):
    with serving(indexes_of(tiny_home), running=1) as served:
        (running,) = asking(served, 1)
        searches.wait_for(1)
        (waiting,) = asking(served, 1)
        wait_until(lambda: sum(served.admission.load()) == 2)
        idle = served.client()
        assert idle.get("/health")[0] == 200
        served.stop()
        assert idle.is_ended()
        searches.let.set()
        for client in (running, waiting):
            status, head, _ = client.answer()
            assert (status, head["connection"]) == (200, "close")
            assert client.is_ended()
            client.close()
        idle.close()
        served.wait_for_end()


def test_stopping_ends_though_a_search_does_not(indexes_of, tiny_home, searches):
    with serving(indexes_of(tiny_home), running=1, grace=0.05) as served:
        (running,) = asking(served, 1)
        searches.wait_for(1)
        served.stop()
        served.wait_for_end()
        answer = running.answer()  # uvicorn may have the time to answer 500
        assert answer is None or answer[0] == 500
        assert served.admission.is_busy
        running.close()
        searches.let.set()


def test_a_request_that_arrives_while_the_service_stops_is_answered(indexes_of, tiny_home):
    with (
        serving(indexes_of(tiny_home), linger=PATIENCE) as served,
        served.client() as idle,
        served.client() as new,
    ):
        assert idle.get("/health")[0] == 200
        wait_until(lambda: len(served.server.server_state.connections) == 2)
        served.stop()
        wait_until(lambda: not served.server.servers[0].is_serving())
        for client in (idle, new):
            client.ask("/search?q=wing")
            status, head, _ = client.answer()
            assert (status, head["connection"]) == (200, "close")
            assert client.is_ended()
        served.wait_for_end()
