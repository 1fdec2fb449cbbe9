"""What is written in one turn of the event loop leaves in one call, in its order."""

import asyncio

import pytest

from klsa_search.service.protocol.together import _MOST, Together


class Transport:
    """Notes what is done to it."""

    def __init__(self):
        self.done = []

    def write(self, data):
        self.done.append(bytes(data))

    def close(self):
        self.done.append("close")

    def abort(self):
        self.done.append("abort")


def written(*turns):
    """What reaches the connection, given what is done to it in each turn of the loop."""
    transport = Transport()

    async def act():
        together = Together(transport, asyncio.get_running_loop())
        for turn in turns:
            turn(together)
            await asyncio.sleep(0)
            await asyncio.sleep(0)

    asyncio.run(act())
    return transport.done


def pieces(*some):
    def write(together):
        for piece in some:
            together.write(piece)

    return write


def test_one_turn_is_one_call():
    assert written(pieces(b"head", b"", b"body"), pieces(b"next")) == [b"headbody", b"next"]


def test_what_is_large_is_not_joined():
    large = b"x" * _MOST
    assert written(pieces(b"head", large, b"end")) == [b"head", large, b"end"]


@pytest.mark.parametrize("before", [(), (b"a", b"b")])
def test_what_leaves_at_once_stays_behind_what_is_held(before):
    def act(together):
        pieces(*before)(together)
        together.write_at_once(b"c")
        together.write(b"d")

    assert written(act) == [*([b"ab"] if before else []), b"c", b"d"]


def test_to_close_writes_what_is_held_and_to_abort_drops_it():
    def close(together):
        together.write(b"a")
        together.close()

    def abort(together):
        together.write(b"a")
        together.abort()

    assert written(close) == [b"a", "close"]
    assert written(abort) == ["abort"]
