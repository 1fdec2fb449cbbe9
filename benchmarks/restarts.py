"""Whether requests fail while workers are restarted and their certificate is renewed.

    python -m benchmarks.restarts HOME NAME QUERIES.tsv [--rate 500] [--times 5]
                                  [--certificate FILE] [--json FILE]

HOME is an index directory, NAME one of its indexes, to which documents are written. Requests arrive
at the rate, whether or not those before them are answered: of ten, eight searches over connections
that are kept, one over a connection of its own, and one write. Meanwhile two workers are restarted
one after another so many times by SIGHUP, each time when the last is over:

    workers      over HTTP
    certificate  over TLS, with the certificate of --certificate, which each worker loads

A request fails if its connection ends without an answer, or the answer is neither 200 nor 201. The
answers 429 and 503, by which a service with too little processor time refuses, count as refused. A
client sends a failed request again at once over a new connection: lost are those that fail twice.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import ssl
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from benchmarks.service_client import Address, Answer, Connection
from benchmarks.service_load import SERVICE, percentile

PATIENCE: Final = 60.0
"""Seconds after which a client gives up."""

PAUSE: Final = 1.0
"""Seconds of load before the first reload, and after each."""

REFUSED: Final = ("429", "503")
KNOWN: Final = ("200", "201", *REFUSED)


class Load:
    """Requests at a rate, until it is stopped."""

    def __init__(self, address: Address, requests: list[bytes], rate: float) -> None:
        self.address, self.requests, self.rate = address, requests, rate
        self.answers: list[Answer] = []
        self.stopped = False
        self.failed = 0  # the first time
        self._free: list[Connection] = []

    async def run(self) -> None:
        begun, asking = time.perf_counter(), set()
        turn = 0
        while not self.stopped:
            await asyncio.sleep(max(0, begun + turn / self.rate - time.perf_counter()))
            task = asyncio.create_task(self._ask(self.requests[turn % len(self.requests)]))
            asking.add(task)
            task.add_done_callback(asking.discard)
            turn += 1
        await asyncio.gather(*asking)
        for connection in self._free:
            connection.close()

    async def _ask(self, request: bytes) -> None:
        begun = time.perf_counter()
        free = [each for each in self._free if each.open]
        self._free = free
        # The one that was idle longest: the server may close it at any moment.
        connection = free.pop(0) if free else None
        status = await self._answer(request, connection)
        if str(status) not in KNOWN:
            self.failed += 1
            status = await self._answer(request, None)
        self.answers.append(Answer(status, time.perf_counter() - begun))

    async def _answer(self, request: bytes, connection: Connection | None) -> int:
        try:
            if connection is None:
                connection = await asyncio.wait_for(Connection.to(self.address), PATIENCE)
        except OSError:
            return 0
        answer = await connection.ask(request, PATIENCE)
        if connection.open:
            self._free.append(connection)
        return answer.status


def mixed(address: Address, queries: list[str], index: str) -> list[bytes]:
    """Return requests of which one in ten writes, and one in ten closes its connection."""
    mix: list[bytes] = []
    for number, search in enumerate(address.searches(queries, index)):
        if number % 10 == 0:
            document = [{"id": f"written-{number}", "text": queries[number]}]
            mix.append(address.post(f"/indexes/{index}/documents", document))
        elif number % 10 == 5:
            mix.append(search.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        else:
            mix.append(search)
    return mix


@contextmanager
def service(home: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], int, Path]]:
    """Run klsa-serve; yield its process, its port and the file of its messages."""
    command = [sys.executable, "-u", "-c", SERVICE, "--home", str(home), "--port", "0", *options]
    with (
        tempfile.NamedTemporaryFile("w") as messages,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=messages, text=True) as process,
    ):
        assert process.stdout is not None
        try:
            port = int(process.stdout.readline().partition("//127.0.0.1:")[2].split()[0])
            yield process, port, Path(messages.name)
        finally:
            process.terminate()


async def reloaded(process: subprocess.Popen[str], messages: Path) -> None:
    """Send SIGHUP, and wait for the messages that both workers ended."""
    ended = "Finished server process"
    expected = messages.read_text().count(ended) + 2
    process.send_signal(signal.SIGHUP)
    while messages.read_text().count(ended) < expected:
        if process.poll() is not None:
            raise SystemExit(f"the service ended: {messages.read_text()}")
        await asyncio.sleep(0.05)


async def under_load(load: Load, times: int, reload: Callable[[], Any]) -> dict[str, Any]:
    """Reload so many times while requests arrive; return what came of them."""
    running = asyncio.create_task(load.run())
    await asyncio.sleep(PAUSE)
    begun = time.perf_counter()
    for _ in range(times):
        await reload()
        await asyncio.sleep(PAUSE)
    seconds = time.perf_counter() - begun
    load.stopped = True
    await running
    statuses = Counter(str(answer.status) for answer in load.answers)
    return {
        "requests": len(load.answers),
        "failed": load.failed,
        "lost": sum(n for status, n in statuses.items() if status not in KNOWN),
        "refused": sum(n for status, n in statuses.items() if status in REFUSED),
        "statuses": dict(sorted(statuses.items())),
        "seconds_each": seconds / times,
        "p50": percentile(load.answers, 0.5),
        "p99": percentile(load.answers, 0.99),
        "slowest": percentile(load.answers, 1),
    }


async def measured(
    address: Address, options: argparse.Namespace, reload: Callable[[], Any]
) -> dict[str, Any]:
    queries = [line.rstrip("\n").partition("\t")[2] for line in options.queries.open()]
    load = Load(address, mixed(address, queries, options.name), options.rate)
    return await under_load(load, options.times, reload)


def restarted(options: argparse.Namespace, certificate: Path | None) -> dict[str, Any]:
    tls, given = None, ["--workers", "2"]
    if certificate is not None:
        tls = ssl.create_default_context()
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
        given += ["--tls-certificate", str(certificate)]
    with service(options.home, *given) as (process, port, messages):
        address = Address("127.0.0.1", port, tls=tls)
        return asyncio.run(measured(address, options, lambda: reloaded(process, messages)))


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.restarts",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("home", type=Path)
    parser.add_argument("name")
    parser.add_argument("queries", type=Path)
    parser.add_argument("--rate", type=float, default=500)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--certificate", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = {}
    for kind, certificate in {"workers": None, "certificate": options.certificate}.items():
        if kind == "certificate" and certificate is None:
            continue
        row = found[kind] = restarted(options, certificate)
        print(
            f"{kind}: {options.times} times, {row['seconds_each']:.1f} s each, "
            f"{row['requests']:,} requests, {row['failed']} failed, {row['lost']} lost, "
            f"{row['refused']} refused, "
            f"p50 {row['p50']:.1f} ms, "
            f"p99 {row['p99']:.0f} ms, slowest {row['slowest']:,.0f} ms; {row['statuses']}",
            flush=True,
        )
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
