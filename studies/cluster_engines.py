"""Which engine runs a cluster: Ray against Dask, on the processors of one machine.

    python -m studies.cluster_engines --ray RAY_VENV/bin/python --dask DASK_VENV/bin/python

Each engine runs in its own environment (`ray[serve]`; `distributed fastapi uvicorn numpy`), every
measure in a process of its own, one after another, with four workers on the loopback:

start   seconds of importing, of starting, of the first task, of 40 tasks of 50 ms, and of stopping;
        processes at rest and their proportional memory; processes and megabytes left behind
calls   milliseconds of one call of an actor, and of one call of each of two, 8 B and 100 kB
map     seconds of 1,000 tasks of 5 ms, one of the workers killed half way or none; tasks lost,
        and tasks run twice; a task that kills each worker it meets
head    the same 1,000 tasks, GCS or scheduler killed half way: what becomes of the driver
driver  the driver killed: processes left after 15 s
pair    two drivers at once, each with a cluster of its own: right answers
serve   requests a second and milliseconds over HTTP of two replicas (Dask: FastAPI before two
        actors), by one and by eight connections
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, Protocol

WORKERS = 4
TASKS = 1000
PORT = 18017
GIVE_UP = 240.0
"""Seconds after which a driver counts as hanging; Ray's give up a lost GCS after 60."""
MEASURES = ("start", "calls", "map", "head", "driver", "pair", "serve")


class Engine(Protocol):
    def actors(self, count: int) -> list[Any]: ...
    def ask(self, actors: list[Any], argument: Any) -> list[int]: ...
    def map(self, seconds: float, count: int, notes: Path) -> Iterator[tuple[int, int]]: ...
    def suicide(self) -> None: ...
    def head(self) -> int: ...
    def serve(self, port: int) -> None: ...
    def close(self) -> None: ...


class Sizer:
    def size(self, argument: Any) -> int:
        return int(argument.nbytes)


def short(number: int, seconds: float, notes: str) -> tuple[int, int]:
    with open(notes, "a") as file:
        file.write(f"{number}\n")
    time.sleep(seconds)
    return number, os.getpid()


def kill_own_worker() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class RayEngine:
    def __init__(self, folder: Path, apart: bool = False) -> None:
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        # On a busy machine the proxy of Serve takes longer to start than the 5 s it is given.
        os.environ["RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S"] = "60"
        import ray

        self.ray = ray
        ray.init(
            address="local",
            num_cpus=WORKERS,
            include_dashboard=False,
            log_to_driver=False,
            object_store_memory=200 << 20,
            _temp_dir=str(folder),
        )

    def actors(self, count: int) -> list[Any]:
        return [self.ray.remote(Sizer).remote() for _ in range(count)]

    def ask(self, actors: list[Any], argument: Any) -> list[int]:
        return list(self.ray.get([each.size.remote(argument) for each in actors]))

    def map(self, seconds: float, count: int, notes: Path) -> Iterator[tuple[int, int]]:
        task = self.ray.remote(short)
        waiting = [task.remote(number, seconds, str(notes)) for number in range(count)]
        while waiting:
            done, waiting = self.ray.wait(waiting)
            yield from self.ray.get(done)

    def suicide(self) -> None:
        self.ray.get(self.ray.remote(kill_own_worker).remote())

    def head(self) -> int:
        return next(each for each in descendants() if "gcs_server" in command(each))

    def serve(self, port: int) -> None:
        from ray import serve

        class Answer:
            async def __call__(self, request: Any) -> dict[str, int]:
                return {"size": len(request.query_params["q"])}

        serve.start(http_options={"host": "127.0.0.1", "port": port})
        deployment = serve.deployment(num_replicas=2, ray_actor_options={"num_cpus": 0})(Answer)
        serve.run(deployment.bind())

    def close(self) -> None:
        self.ray.shutdown()


class DaskEngine:
    def __init__(self, folder: Path, apart: bool = False) -> None:
        import distributed
        from distributed.deploy.subprocess import SubprocessCluster

        self.dask = distributed
        if apart:
            self.cluster = SubprocessCluster(
                host="127.0.0.1",
                n_workers=WORKERS,
                threads_per_worker=1,
                scheduler_kwargs={"dashboard": False},
                worker_kwargs={"local_directory": str(folder)},
            )
        else:
            self.cluster = distributed.LocalCluster(
                n_workers=WORKERS,
                threads_per_worker=1,
                host="127.0.0.1",
                dashboard_address=None,
                local_directory=str(folder),
            )
        self.client = distributed.Client(self.cluster)

    def actors(self, count: int) -> list[Any]:
        made = [self.client.submit(Sizer, actor=True, pure=False) for _ in range(count)]
        return [each.result() for each in made]

    def ask(self, actors: list[Any], argument: Any) -> list[int]:
        return [each.result() for each in [each.size(argument) for each in actors]]

    def map(self, seconds: float, count: int, notes: Path) -> Iterator[tuple[int, int]]:
        submit = self.client.get_executor(pure=False).submit
        waiting = [submit(short, number, seconds, str(notes)) for number in range(count)]
        yield from (each.result() for each in as_completed(waiting))

    def suicide(self) -> None:
        self.client.submit(kill_own_worker).result()

    def head(self) -> int:
        return next(each for each in descendants() if " scheduler" in command(each))

    def serve(self, port: int) -> None:
        import uvicorn
        from fastapi import FastAPI

        app = FastAPI()
        address = self.client.scheduler.address
        ready: dict[str, Any] = {}

        class Answer:
            def answer(self, q: str) -> dict[str, int]:
                return {"size": len(q)}

        @app.get("/")
        async def answer(q: str) -> Any:
            if not ready:
                client = await self.dask.Client(address, asynchronous=True)
                made = [client.submit(Answer, actor=True, pure=False) for _ in range(2)]
                ready.update(actors=[await each for each in made], client=client, made=made, turn=0)
            ready["turn"] ^= 1
            return await ready["actors"][ready["turn"]].answer(q)

        config = uvicorn.Config(app, host="127.0.0.1", port=port, log_level="error")
        threading.Thread(target=uvicorn.Server(config).run, daemon=True).start()

    def close(self) -> None:
        self.client.close()
        self.cluster.close()


ENGINES: dict[str, Any] = {"ray": RayEngine, "dask": DaskEngine}


def descendants(root: int | None = None) -> list[int]:
    """Processes below one, this one by default, that are not zombies."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if state != "Z":
            parents[int(stat.parent.name)] = int(parent)
    found = [root or os.getpid()]
    for each in found:
        found += [child for child, parent in parents.items() if parent == each]
    return found[1:]


def alive(processes: list[int]) -> list[int]:
    found = []
    for each in processes:
        try:
            state = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if state != "Z":
            found.append(each)
    return found


def processor() -> float:
    """Seconds of processors that this process and those below took, the ended ones that were reaped
    included: what a busy machine distorts least."""
    ticks = 0
    for each in [os.getpid(), *descendants()]:
        try:
            after_name = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        ticks += sum(map(int, after_name[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def command(process: int) -> str:
    return Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode()


def memory(process: int) -> float:
    """Megabytes, pages that several processes share divided among them."""
    for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    raise LookupError(f"/proc/{process}/smaps_rollup has no Pss")


def size_of(folder: Path) -> float:
    """Megabytes."""
    files = [each for each in folder.rglob("*") if each.is_file() and not each.is_symlink()]
    return sum(each.stat().st_blocks * 512 for each in files) / 1e6


def quantiles(milliseconds: list[float]) -> str:
    ordered = sorted(milliseconds)
    return f"{ordered[len(ordered) // 2]:.2f} / {ordered[len(ordered) * 99 // 100]:.2f}"


def start(name: str, folder: Path) -> dict[str, Any]:
    clock = [time.perf_counter()]
    __import__({"ray": "ray", "dask": "distributed"}[name])
    clock.append(time.perf_counter())
    engine: Engine = ENGINES[name](folder)
    clock.append(time.perf_counter())
    list(engine.map(0.0, 1, folder / "first"))
    clock.append(time.perf_counter())
    list(engine.map(0.05, 40, folder / "forty"))
    clock.append(time.perf_counter())
    spent = processor()
    time.sleep(3)
    processes = descendants()
    rest = sum(map(memory, processes))
    before = time.perf_counter()
    engine.close()
    steps = [f"{late - early:.1f}" for early, late in pairwise(clock)]
    stopped = time.perf_counter() - before
    time.sleep(1)
    return {
        "import, start, first task, 40 tasks of 50 ms, stop (s)": ", ".join(steps)
        + f", {stopped:.1f}",
        "processor until the 40 are done (s)": f"{spent:.1f}",
        "processes besides the driver, memory at rest (MB)": f"{len(processes)}, {rest:.0f}",
        "left when stopped: processes, files (MB)": f"{len(alive(processes))}, "
        f"{size_of(folder):.1f}",
    }


def calls(name: str, folder: Path) -> dict[str, Any]:
    import numpy as np

    engine: Engine = ENGINES[name](folder)
    pair = engine.actors(2)
    for _ in range(100):
        engine.ask(pair, np.zeros(1))
    found = {}
    for label, argument in (("8 B", np.zeros(1)), ("100 kB", np.zeros(12_500))):
        for actors in (pair[:1], pair):
            times = []
            spent = processor()
            for _ in range(TASKS):
                before = time.perf_counter()
                sizes = engine.ask(actors, argument)
                times.append((time.perf_counter() - before) * 1e3)
                if sizes != [argument.nbytes] * len(actors):
                    raise SystemExit(f"{name} answered {sizes}")
            spent = (processor() - spent) / TASKS * 1e3
            label_of_all = f"call of {len(actors)}, {label}: median / p99, processor (ms)"
            found[label_of_all] = f"{quantiles(times)}, {spent:.2f}"
    engine.close()
    return found


def mapped(engine: Engine, folder: Path, victim: str | None) -> dict[str, Any]:
    """1,000 short tasks, of which a worker or the head dies half way."""
    notes = folder / f"notes-{victim}"
    list(engine.map(0.05, 40, folder / "warm"))
    before, spent = time.perf_counter(), processor()
    done: set[int] = set()
    for number, worker in engine.map(0.005, TASKS, notes):
        done.add(number)
        if victim and len(done) == TASKS // 2:
            os.kill(worker if victim == "worker" else engine.head(), signal.SIGKILL)
    took, spent = time.perf_counter() - before, processor() - spent
    runs = Counter(notes.read_text().split())
    again = sum(times > 1 for times in runs.values())
    said = f"{took:.1f}, {spent:.1f}, {TASKS - len(done)}, {again}"
    return {f"map, {victim} killed: s, processor s, lost, run twice": said}


def map_(name: str, folder: Path) -> dict[str, Any]:
    engine: Engine = ENGINES[name](folder)
    found = {**mapped(engine, folder, None), **mapped(engine, folder, "worker")}
    before = time.perf_counter()
    try:
        engine.suicide()
    except Exception as error:  # noqa: BLE001 - which one it is, is what is asked
        took = time.perf_counter() - before
        found["task that kills its workers: error, s"] = f"{type(error).__name__}, {took:.1f}"
    engine.close()
    return found


def head(name: str, folder: Path) -> dict[str, Any]:
    engine: Engine = ENGINES[name](folder, apart=True)
    return {f"ended: {key}": value for key, value in mapped(engine, folder, "head").items()}


def driver(name: str, folder: Path) -> dict[str, Any]:
    child = subprocess.Popen(
        arguments(sys.executable, name, "idle", folder), stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    while not (line := child.stdout.readline()).startswith("["):
        pass
    processes = json.loads(line)
    child.kill()
    child.wait()
    time.sleep(15)
    return {"driver killed: processes left of": f"{len(alive(processes))} of {len(processes)}"}


def idle(name: str, folder: Path) -> dict[str, Any]:
    engine: Engine = ENGINES[name](folder)
    list(engine.map(0.05, 40, folder / "warm"))
    print(json.dumps(descendants()), flush=True)
    time.sleep(GIVE_UP)
    return {}


def pair(name: str, folder: Path) -> dict[str, Any]:
    before = time.perf_counter()
    children = []
    for own in ("a", "b"):
        (folder / own).mkdir()
        line = arguments(sys.executable, name, "one", folder / own)
        children.append(subprocess.Popen(line, stdout=subprocess.PIPE, text=True))
    answers = [json.loads(each.communicate()[0].splitlines()[-1])["right"] for each in children]
    took = time.perf_counter() - before
    return {"two clusters at once: right, s": f"{sum(answers)} of 2, {took:.1f}"}


def one(name: str, folder: Path) -> dict[str, Any]:
    engine: Engine = ENGINES[name](folder)
    right = {number for number, _ in engine.map(0.005, TASKS, folder / "notes")}
    engine.close()
    return {"right": right == set(range(TASKS))}


def serve(name: str, folder: Path) -> dict[str, Any]:
    engine: Engine = ENGINES[name](folder)
    before = time.perf_counter()
    engine.serve(PORT)
    while not answers():
        time.sleep(0.05)
    found = {"serve: s until it answers": f"{time.perf_counter() - before:.1f}"}
    request(500)
    for connections in (1, 8):
        before, spent = time.perf_counter(), processor()
        with ThreadPoolExecutor(connections) as crowd:
            times = list(chain.from_iterable(crowd.map(request, [TASKS] * connections)))
        rate = len(times) / (time.perf_counter() - before)
        each_took = (processor() - spent) / len(times) * 1e3
        label = f"serve, {connections} connections: requests/s, median / p99, processor (ms)"
        found[label] = f"{rate:.0f}, {quantiles(times)}, {each_took:.1f}"
    engine.close()
    return found


def answers() -> bool:
    try:
        request(1)
    except OSError:
        return False
    return True


def request(count: int) -> list[float]:
    """Milliseconds of each of some requests, one after another, of one connection."""
    connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=60)
    times = []
    for _ in range(count):
        before = time.perf_counter()
        connection.request("GET", "/?q=abc")
        answer = connection.getresponse()
        body = answer.read()
        times.append((time.perf_counter() - before) * 1e3)
        if answer.status != 200 or json.loads(body) != {"size": 3}:
            raise SystemExit(f"port {PORT} answered {answer.status} {body[:80]!r}")
    connection.close()
    return times


INSIDE: dict[str, Callable[[str, Path], dict[str, Any]]] = {
    "start": start,
    "calls": calls,
    "map": map_,
    "head": head,
    "driver": driver,
    "pair": pair,
    "serve": serve,
    "idle": idle,
    "one": one,
}


def arguments(python: str, engine: str, measure: str, folder: Path) -> list[str]:
    return [python, __file__, "--inside", engine, measure, str(folder)]


def measured(python: str, engine: str, measure: str) -> dict[str, Any]:
    """What a measure says in an environment of its own, or how it ended."""
    # Ray's sockets are files of at most 107 characters.
    folder = Path(tempfile.mkdtemp(prefix="engine-"))
    before = time.perf_counter()
    line = arguments(python, engine, measure, folder)
    child = subprocess.Popen(
        line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    below: list[int] = []
    try:
        printed, said = child.communicate(timeout=GIVE_UP)
        ended = f"code {child.returncode}: {(said.strip().splitlines() or [''])[-1][:120]}"
    except subprocess.TimeoutExpired:
        below = [child.pid, *descendants(child.pid)]
        printed, ended = "", "hangs"
    for each in alive(below):
        os.kill(each, signal.SIGKILL)
    child.wait()
    shutil.rmtree(folder, ignore_errors=True)
    if child.returncode == 0:
        return dict(json.loads(printed.splitlines()[-1]))
    return {f"{measure}: ended with": f"{ended}, {time.perf_counter() - before:.0f} s"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--ray", metavar="PYTHON", help="of an environment that has ray[serve]")
    parser.add_argument("--dask", metavar="PYTHON", help="of one with distributed and fastapi")
    parser.add_argument("--measure", action="append", choices=MEASURES, help="some, not all")
    parser.add_argument("--inside", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        engine, measure, folder = options.inside
        print(json.dumps(INSIDE[measure](engine, Path(folder))))
        return
    for measure in options.measure or MEASURES:
        for engine in ENGINES:
            if python := getattr(options, engine):
                for what, value in measured(python, engine, measure).items():
                    print(f"{engine:6}{what:70}{value}", flush=True)


if __name__ == "__main__":
    main()
