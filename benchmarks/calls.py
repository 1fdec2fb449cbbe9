"""Time rounds of calls to four processes, by Ray and by gRPC.

    python -m benchmarks.calls [--bytes N]

A search in four partitions takes three rounds, in each of which every partition gets and returns
some kilobytes. This is the median of 300 such searches that only return what they get, best of
three. It needs `pip install 'klsa-search[cluster]' grpcio`.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

_PROCESSES: Final = 4
_SEARCHES: Final = 300
_METHOD: Final = "/benchmarks/answer"


def _best(call_all: Callable[[], object]) -> float:
    """Return milliseconds of three rounds."""
    medians = []
    for _ in range(3):
        taken = []
        for _ in range(_SEARCHES):
            begun = time.perf_counter()
            for _ in range(3):
                call_all()
            taken.append(1000 * (time.perf_counter() - begun))
        medians.append(statistics.median(taken))
    return min(medians)


def time_ray(payload: bytes) -> float:
    """Return the time by Ray's calls of actors."""
    from klsa_search.cluster.ray import connect

    ray: Any = connect("local", _PROCESSES)

    class Actor:
        def answer(self, call: bytes) -> bytes:
            return call

    actors = [ray.remote(Actor).remote() for _ in range(_PROCESSES)]
    return _best(lambda: ray.get([actor.answer.remote(payload) for actor in actors]))


def time_grpc(payload: bytes) -> float:
    """Return the time by gRPC."""
    import grpc

    command = [sys.executable, "-m", "benchmarks.calls", "--serve"]
    servers = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(_PROCESSES)]
    ports = [int(server.stdout.readline()) for server in servers if server.stdout is not None]
    channels = [grpc.insecure_channel(f"127.0.0.1:{port}") for port in ports]
    calls = [channel.unary_unary(_METHOD) for channel in channels]
    found = _best(lambda: [each.result() for each in [call.future(payload) for call in calls]])
    for server in servers:
        server.kill()
    return found


def serve() -> None:
    """Serve one process of gRPC and print its port."""
    import grpc

    def answer(call: bytes, _: Any) -> bytes:
        return call

    _, service, method = _METHOD.split("/")
    handlers = {method: grpc.unary_unary_rpc_method_handler(answer)}
    server = grpc.server(ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
    print(server.add_insecure_port("127.0.0.1:0"), flush=True)
    server.start()
    server.wait_for_termination()


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.calls",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--bytes", type=int, default=20_000)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve()
        return
    payload = os.urandom(options.bytes)
    for name, measure in (("Ray", time_ray), ("gRPC", time_grpc)):
        print(f"{name}: {measure(payload):.1f} ms", flush=True)


if __name__ == "__main__":
    main()
