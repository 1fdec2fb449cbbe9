"""Slow sockets: clients that send nothing, half a request, or never read; others are served."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.faults.children import call
from benchmarks.faults.serving import Server
from benchmarks.faults.tally import Tally
from benchmarks.faults.world import NAME, Place

_TOLD = 300  # times that a client comes again
_OTHERS = 20
_ENOUGH = 3
_HEAD = "Host: 127.0.0.1\r\nContent-Type: application/json\r\n"
KINDS = {
    "idle": "",
    "half a head": f"GET /search?q=boat1 HTTP/1.1\r\n{_HEAD}",
    "half a body": f'POST /search HTTP/1.1\r\n{_HEAD}Content-Length: 100\r\n\r\n{{"q": ',
    "slow reader": f"GET /search?index={NAME}&q=shared1&k=1000 HTTP/1.1\r\n{_HEAD}\r\n" * 20,
}


def run(folder: Path, *, sockets: int = 300) -> list[Tally]:
    """Search while so many slow sockets are open on a service, a quarter of each kind."""
    place = Place(folder / "slow", "gvsm", 300)
    call(place.do, "old").given().expect_done()
    others = Tally("service: slow sockets", f"another's search beside {sockets} slow sockets")
    with Server(place.home) as server, contextlib.ExitStack() as held:
        for kind in list(KINDS) * (sockets // len(KINDS)):
            held.enter_context(_connected(server.port, KINDS[kind]))
        for _ in range(_OTHERS):
            path = f"/search?index={NAME}&q=boat1"
            asked, told = server.get(path), 0
            # Slow readers have asked for something too, all at once.
            while asked.outcome == 503 and told < _TOLD:
                time.sleep(0.2)
                asked, told = server.get(path), told + 1
            if asked.outcome == 200:
                others.survive("answered 200, after 503 at first" if told else "answered 200")
            else:
                others.fail(str(asked.outcome), f"after {asked.seconds:.1f} s: {asked.body!r}")
            if others.failed.total() >= _ENOUGH:
                break
    return [others]


@contextlib.contextmanager
def _connected(port: int, text: str) -> Iterator[socket.socket]:
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.settimeout(5)
        # What the service refuses at once is no slow socket any more, and no failure either.
        with contextlib.suppress(OSError):
            slow.connect(("127.0.0.1", port))
            slow.sendall(text.encode())
        yield slow
