"""klsa-serve --workers: several processes at one address."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from klsa_search.cli import workers as module
from klsa_search.cli.workers import Workers
from klsa_search.indexing import build
from klsa_search.service.settings import ServiceSettings
from tests.waiting import wait_until

LONG = 60.0
SERVE = "from klsa_search.cli.serve import main; main()"
DOCUMENTS = [
    {"id": "1", "title": "Files", "text": "Read files in a coroutine, line by line."},
    {"id": "2", "title": "Sockets", "text": "Read from a socket."},
]

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")


@pytest.fixture
def service(tmp_path):
    build(DOCUMENTS, name="files", home=tmp_path).close()
    command = [sys.executable, "-c", SERVE, "--home", str(tmp_path), "--port", "0"]
    with subprocess.Popen(
        [*command, "--workers", "2"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            found = re.search(r" at (http://127.0.0.1:\d+) ", process.stdout.readline())
            yield process, found[1]
        finally:
            process.kill()


def workers_of(process):
    """Process numbers by worker."""
    found = {}
    for child in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
        told = Path(f"/proc/{child}/cmdline").read_text().split("\0")
        if "klsa_search.cli.worker" in told:
            found[told[told.index("klsa_search.cli.worker") + 1]] = int(child)
    return found


def asked(address):
    """What is found, with its scores."""
    with urlopen(f"{address}/search?q=read", timeout=LONG) as answer:
        found = json.load(answer)
    return {hit["id"]: hit["score"] for hit in found["hits"]}


def worker_at(address):
    """Which worker answered."""
    with urlopen(f"{address}/metrics", timeout=LONG) as answer:
        told = answer.read().decode()
    return re.search(r'^klsa_running\{pool="search",worker="(\d)"\}', told, re.MULTILINE)[1]


def test_each_answers_alike_and_what_one_writes_all_find(service):
    _, address = service
    before = asked(address)
    assert list(before) == ["2", "1"]
    assert all(asked(address) == before for _ in range(10))
    body = json.dumps([{"id": "3", "text": "Read a pipe."}]).encode()
    kind = {"Content-Type": "application/json"}
    write = Request(f"{address}/indexes/files/documents", data=body, headers=kind)
    assert urlopen(write, timeout=LONG).status in (200, 201)
    wait_until(lambda: all("3" in asked(address) for _ in range(10)))
    after = asked(address)
    assert all(asked(address) == after for _ in range(10))
    # What they counted is told together, whichever is asked.
    with urlopen(f"{address}/metrics", timeout=LONG) as answer:
        told = answer.read().decode()
    searches = re.search(
        r'^klsa_requests_total\{method="GET",route="/search",status="200"\} (\S+)', told, re.M
    )
    assert float(searches[1]) >= 32


def test_one_that_dies_is_started_anew_and_all_end_together(service):
    process, address = service
    wait_until(lambda: {worker_at(address) for _ in range(10)})
    before = workers_of(process)
    assert sorted(before) == ["0", "1"]
    os.kill(before["0"], signal.SIGKILL)
    assert all(asked(address) for _ in range(10))  # the other one answers meanwhile
    wait_until(lambda: workers_of(process).get("0", before["0"]) != before["0"])
    wait_until(lambda: worker_at(address) == "0")
    now = workers_of(process)
    assert now["1"] == before["1"]
    process.send_signal(signal.SIGTERM)
    assert process.wait(LONG) == 0
    assert "worker 0 was ended by signal 9; another takes its place" in process.stderr.read()
    assert not any(Path(f"/proc/{each}").exists() for each in now.values())


def test_a_terminal_that_is_closed_ends_all_and_leaves_nothing(tmp_path):
    home, scratch = tmp_path / "home", tmp_path / "scratch"
    build(DOCUMENTS, name="files", home=home).close()
    scratch.mkdir()
    command = [sys.executable, "-c", SERVE, "--home", str(home), "--port", "0", "--workers", "2"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, env=os.environ | {"TMPDIR": str(scratch)}
    ) as process:
        wait_until(lambda: len(workers_of(process)) == 2)
        process.send_signal(signal.SIGHUP)
        assert process.wait(LONG) == 0
    assert list(scratch.glob("klsa-metrics-*")) == []


class Process:
    """One that has ended, or goes on."""

    def __init__(self, returncode=None):
        self.returncode = returncode

    def poll(self):
        return self.returncode

    def terminate(self):
        pass

    def wait(self):
        pass


def test_one_that_cannot_be_started_ends_no_other(monkeypatch, tmp_path):
    said = []
    workers = Workers(ServiceSettings(home=tmp_path, workers=2), None, said.append)

    def ends(*_):
        workers._leave()
        return Process()

    steps = iter([Process(), Process(-9), OSError(12, "no memory"), ends])

    def start(*given):
        step = next(steps)
        if isinstance(step, OSError):
            raise step
        return step(*given) if callable(step) else step

    for name, value in (("_REST", 0.0), ("_LOOK", 0.0)):
        monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(module.signal, "signal", lambda *_: None)
    monkeypatch.setattr(workers, "_start", start)
    workers.run()
    assert [line.split(" (")[0] for line in said] == [
        "warning: worker 1 was ended by signal 9; another takes its place",
        "warning: worker 1 cannot be started",
        "warning: worker 1 was ended by signal 9; another takes its place",
    ]


def test_they_end_with_the_process_that_started_them(service):
    process, address = service
    assert asked(address)
    at_work = workers_of(process)
    process.kill()
    wait_until(lambda: not any(_runs(each) for each in at_work.values()))


def _runs(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
