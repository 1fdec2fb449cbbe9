"""Slow request bodies, with a simulated clock."""

import asyncio
from contextlib import ExitStack

import pytest
from starlette.requests import Request

from klsa_search.errors import BodyTooSlow, TooManyWrites
from klsa_search.service.admission import SHORT, WAITING_WRITES, Writes
from klsa_search.service.middleware import bodies
from klsa_search.service.middleware.bodies import RequestBody
from klsa_search.service.routes.documents import size_of

RATE, WINDOW = 100, 10.0


@pytest.fixture(autouse=True)
def limits(monkeypatch):
    monkeypatch.setattr(bodies, "RATE", RATE)
    monkeypatch.setattr(bodies, "WINDOW", WINDOW)


def read(pieces, *, working=0.0):
    """Read a body of (seconds, bytes); the service works for some seconds after each piece."""
    now, left = 0.0, list(pieces)

    async def receive():
        nonlocal now
        if not left:
            await asyncio.Event().wait()  # nothing more ever comes
        seconds, size = left.pop(0)
        now += seconds
        return {"type": "http.request", "body": bytes(size), "more_body": size > 0}

    async def ask():
        nonlocal now
        body = RequestBody(receive)
        while (await body())["more_body"]:
            now += working
        return now

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bodies, "monotonic", lambda: now)
        return asyncio.run(ask())


END = (0.0, 0)


def test_a_body_that_comes_fast_enough_is_read_for_as_long_as_it_comes():
    assert read([*[(1.0, RATE)] * 1000, END]) == 1000


def test_a_small_body_has_a_window_of_time():
    assert read([(4.0, 1), (4.0, 1), END]) == 8


def test_a_body_that_comes_a_byte_a_second_is_given_up():
    with pytest.raises(BodyTooSlow, match=r"100 bytes a second over 10 s"):
        read([(1.0, 1)] * 11)


def test_a_fast_beginning_pays_for_no_slow_end():
    with pytest.raises(BodyTooSlow):
        read([(1.0, 10_000), *[(1.0, 1)] * 30])


def test_a_client_that_falls_silent_is_given_up(monkeypatch):
    monkeypatch.setattr(bodies, "WINDOW", 0.001)
    for beginning in ([], [(0.0, 1)], [(0.0, 10_000)]):
        with pytest.raises(BodyTooSlow):
            read(beginning)


def test_the_time_that_the_service_works_is_not_the_clients():
    assert read([*[(0.5, RATE)] * 100, END], working=1000.0) == 100_050


def test_the_end_of_the_connection_may_be_waited_for(monkeypatch):
    monkeypatch.setattr(bodies, "WINDOW", 0.001)

    async def receive():
        if silent:
            await asyncio.Event().wait()
        return {"type": "http.request", "body": b"", "more_body": False}

    async def read_all():
        nonlocal silent
        body = RequestBody(receive)
        await body()
        silent = True
        with pytest.raises(TimeoutError):  # and not BodyTooSlow
            await asyncio.wait_for(body(), 0.01)

    silent = False
    asyncio.run(read_all())


@pytest.mark.parametrize("size", [None, SHORT + 1])
def test_long_writes_leave_places_for_short_ones(size):
    writes = Writes()
    for _ in range(2):  # all places are free again
        with ExitStack() as held:
            for _ in range(WAITING_WRITES // 2):
                held.enter_context(writes.slot(size))
            with pytest.raises(TooManyWrites, match="long writes"), writes.slot(size):
                pass
            for _ in range(WAITING_WRITES // 2):
                held.enter_context(writes.slot(SHORT))
            with pytest.raises(TooManyWrites), writes.slot(1):
                pass


@pytest.mark.parametrize(
    ("headers", "size"),
    [
        ({"content-length": "12", "content-type": "application/json"}, 12),
        ({"content-length": "12", "content-type": "application/x-ndjson"}, None),
        ({"transfer-encoding": "chunked"}, None),
        ({"content-length": "12", "content-encoding": "gzip"}, None),
    ],
)
def test_a_body_of_lines_compressed_or_of_unknown_length_is_long(headers, size):
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    assert size_of(Request({"type": "http", "headers": raw})) == size
