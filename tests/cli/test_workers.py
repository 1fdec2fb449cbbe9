"""klsa-serve --workers: several processes at one address."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from klsa_search.cli import workers as module
from klsa_search.cli.workers import Workers
from klsa_search.errors import SettingsError
from klsa_search.indexing.build import build
from klsa_search.service.settings import ServiceSettings
from tests.support.hostile import hostile_folder, imported_from
from tests.support.waiting import wait_until

LONG = 300.0
SERVE = "from klsa_search.cli.serve import main; main()"
DOCUMENTS = [
    {"id": "1", "title": "Files", "text": "Read files in a coroutine, line by line."},
    {"id": "2", "title": "Sockets", "text": "Read from a socket."},
]

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")


HELD = """
import os, signal, sys
if "klsa_search.cli.refit_child" in sys.orig_argv:
    try:
        os.close(os.open(__file__ + ".held", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        pass
    else:
        os.kill(os.getpid(), signal.SIGSTOP)
"""
"""Stops the first process that refits before it does anything."""


@pytest.fixture
def service(tmp_path, compiled_writing):
    home, first = tmp_path / "home", tmp_path / "first"
    build(DOCUMENTS, name="files", home=home).close()
    first.mkdir()
    hostile = hostile_folder(tmp_path)
    (first / "sitecustomize.py").write_text(HELD)
    path = os.pathsep.join(filter(None, [str(first), os.environ.get("PYTHONPATH")]))
    options = ["--home", str(home), "--port", "0", "--workers", "2"]
    with subprocess.Popen(
        [sys.executable, "-P", "-c", SERVE, *options],  # as a console script imports
        cwd=hostile,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": path},
    ) as process:
        try:
            found = re.search(r" at (http://127.0.0.1:\d+) ", process.stdout.readline())
            yield process, found[1]
        finally:
            process.kill()
    assert imported_from(hostile) == []


def told_by(path):
    """What the system tells of a process or a thread; nothing of one that has just ended."""
    try:
        return path.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def workers_of(process):
    """Process numbers by worker."""
    found = {}
    for child in told_by(Path(f"/proc/{process.pid}/task/{process.pid}/children")).split():
        told = told_by(Path(f"/proc/{child}/cmdline")).split("\0")
        if "klsa_search.cli.worker" in told:
            found[told[told.index("klsa_search.cli.worker") + 1]] = int(child)
    return found


def refits_of(process):
    """Process numbers of refits, by that of the worker."""
    found = {}
    for worker in workers_of(process).values():
        for task in Path(f"/proc/{worker}/task").iterdir():
            for child in told_by(task / "children").split():
                if "klsa_search.cli.refit_child" in told_by(Path(f"/proc/{child}/cmdline")):
                    found[worker] = int(child)
    return found


def asked(address):
    """What is found, with its scores."""
    with urlopen(f"{address}/search?q=read", timeout=LONG) as answer:
        found = json.load(answer)
    return {hit["id"]: hit["score"] for hit in found["hits"]}


def worker_at(process, address):
    """The number of the worker that answers a new connection."""
    return worker_of(process, HTTPConnection(address.removeprefix("http://"), timeout=LONG))


def worker_of(process, connection):
    """The number of the worker at the other end of a connection."""
    answer_of(connection, "GET", "/health/live")
    ends = [end[1] for end in (connection.sock.getpeername(), connection.sock.getsockname())]
    wanted = [f"0100007F:{port:04X}" for port in ends]
    sockets = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()]
    inode = next(each[9] for each in sockets if each[1:3] == wanted)
    for number, worker in workers_of(process).items():
        for descriptor in Path(f"/proc/{worker}/fd").iterdir():
            with suppress(FileNotFoundError):
                if os.readlink(descriptor) == f"socket:[{inode}]":
                    return number
    raise AssertionError("no worker has the connection")


def searches_told(address):
    """How many searches the metrics count."""
    with urlopen(f"{address}/metrics", timeout=LONG) as answer:
        told = answer.read().decode()
    counted = r'^klsa_requests_total\{method="GET",route="/search",status="200"\} (\S+)'
    return float(re.search(counted, told, re.MULTILINE)[1])


def kept_to_each(process, address):
    """A connection to each of two workers, by its number."""
    found = {}

    def connected():
        connection = HTTPConnection(address.removeprefix("http://"), timeout=LONG)
        found.setdefault(worker_of(process, connection), connection)
        return len(found) == 2

    wait_until(connected)
    return found


def answer_of(connection, method, path, body=None):
    headers = {} if body is None else {"Content-Type": "application/json"}
    connection.request(method, path, body, headers)
    return connection.getresponse().read()


def begun_by(connection):
    return json.loads(answer_of(connection, "POST", "/indexes/files/refit", b"{}"))


def refit_of(connection):
    return json.loads(answer_of(connection, "GET", "/jobs?index=files"))["jobs"][0]


def test_each_answers_alike_and_what_one_writes_all_find(service):
    _, address = service
    searches = 0

    def found():
        nonlocal searches
        searches += 1
        return asked(address)

    before = found()
    assert list(before) == ["2", "1"]
    assert all(found() == before for _ in range(10))
    body = json.dumps([{"id": "3", "text": "Read a pipe."}]).encode()
    kind = {"Content-Type": "application/json"}
    write = Request(f"{address}/indexes/files/documents", data=body, headers=kind)
    assert urlopen(write, timeout=LONG).status in (200, 201)

    def all_alike():  # whichever of them is asked, and one may be asked seldom
        first, *others = (found() for _ in range(20))
        return "3" in first and all(each == first for each in others)

    wait_until(all_alike)
    # What they counted is told together, whichever is asked; a request once it is answered.
    wait_until(lambda: searches_told(address) == searches)


def test_one_that_dies_is_started_anew_and_all_end_together(service):
    process, address = service
    wait_until(lambda: sorted(workers_of(process)) == ["0", "1"])
    before = workers_of(process)
    wait_until(lambda: {worker_at(process, address) for _ in range(10)} == set(before))
    os.kill(before["0"], signal.SIGKILL)
    assert all(asked(address) for _ in range(10))  # the other one answers meanwhile
    wait_until(lambda: workers_of(process).get("0", before["0"]) != before["0"])
    wait_until(lambda: worker_at(process, address) == "0")
    now = workers_of(process)
    assert now["1"] == before["1"]
    process.send_signal(signal.SIGTERM)
    assert process.wait(LONG) == 0
    assert "worker 0 was killed by signal 9" in process.stderr.read()
    assert not any(Path(f"/proc/{each}").exists() for each in now.values())


@contextmanager
def started(folder):
    """A service whose workers run, and which leaves no folder behind."""
    home, scratch = folder / "home", folder / "scratch"
    build(DOCUMENTS, name="files", home=home).close()
    scratch.mkdir()
    command = [sys.executable, "-c", SERVE, "--home", str(home), "--port", "0", "--workers", "2"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=os.environ | {"TMPDIR": str(scratch)}
    ) as process:
        process.address = re.search(r" at (http://[^ ]+) ", process.stdout.readline())[1]
        wait_until(lambda: len(workers_of(process)) == 2)
        yield process
    assert list(scratch.glob("klsa-workers-*")) == []


IN_TERMINAL = """
import os, pty, sys
child, terminal = pty.fork()
if child == 0:
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
print(child, flush=True)
sys.stdin.read()
os.close(terminal)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
"""Runs Python in a terminal that is closed when stdin is."""


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_terminal_that_is_closed_ends_the_service(tmp_path, workers):
    home = tmp_path / "home"
    build(DOCUMENTS, name="files", home=home).close()
    options = ["--home", str(home), "--port", "0", "--workers", workers]
    told = tmp_path / "told"
    program = f"import sys; sys.stdout = open({str(told)!r}, 'w', 1); {SERVE}"
    with subprocess.Popen(
        [sys.executable, "-c", IN_TERMINAL, "-c", program, *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        process.stdout.readline()

        def answers():
            found = re.search(r" at (http://127.0.0.1:\d+) ", told.read_text())
            return bool(found and asked(found[1]))

        wait_until(told.exists)
        wait_until(lambda: "Authentication" in told.read_text())
        wait_until(answers)
        process.stdin.close()
        assert process.stdout.read().strip() == "0"


def test_a_hangup_restarts_one_after_another_and_loses_no_request(tmp_path):
    with started(tmp_path) as process:
        before = workers_of(process)
        kept = HTTPConnection(process.address.removeprefix("http://"), timeout=LONG)
        wait_until(lambda: answer_of(kept, "GET", "/health/ready") and asked(process.address))
        process.send_signal(signal.SIGHUP)

        def restarted():
            assert asked(process.address)  # over a new connection
            assert answer_of(kept, "GET", "/search?q=read")
            now = workers_of(process)
            return now.keys() == before.keys() and not set(now.values()) & set(before.values())

        wait_until(restarted)
        kept.close()
        process.send_signal(signal.SIGTERM)
        assert process.wait(LONG) == 0


class Process:
    """A process that was started."""

    def __init__(self, log):
        self.log = log

    def terminate(self):
        self.log.append("terminated")

    def send_signal(self, kind):
        self.log.append(kind)

    def wait(self, _=None):
        pass


class Fake:
    """A worker that has ended, or runs."""

    def __init__(self, number, exit_code=None, *, is_ready=True):
        self.number = number
        self.exit_code = exit_code
        self.is_ready = is_ready
        self.may_be_replaced = exit_code is not None
        self.log = []
        self.process = Process(self.log)

    def close(self):
        pass


def supervised(monkeypatch, folder, started, reread=None):
    """Run two workers that `started` returns or raises; return what was reported."""
    said = []
    settings = ServiceSettings(home=folder, workers=2)
    workers = Workers(settings, socket.socket(), said.append, reread or (lambda: settings))

    def start(*given):
        step = next(steps)
        if isinstance(step, OSError):
            raise step
        return step(workers, *given) if callable(step) else step

    steps = iter(started)
    monkeypatch.setattr(module, "_POLL_INTERVAL", 0.0)
    monkeypatch.setattr(module.signal, "signal", lambda *_: None)
    monkeypatch.setattr(workers, "_start", start)
    return workers, said


def test_one_that_cannot_be_started_ends_no_other(monkeypatch, tmp_path):
    def ends(workers, *_):
        workers._on_signal(signal.SIGTERM)
        return Fake(1)

    steps = [Fake(0), Fake(1, -9), OSError(12, "no memory"), ends]
    workers, said = supervised(monkeypatch, tmp_path, steps)
    workers.run()
    assert [line.split(" (")[0] for line in said] == [
        "warning: worker 1 was killed by signal 9; starting a new one",
        "warning: worker 1 could not be started",
        "warning: worker 1 was killed by signal 9; starting a new one",
    ]


def test_a_worker_retires_when_its_successor_is_ready(monkeypatch, tmp_path):
    first, second, other = Fake(0), Fake(1), Fake(1)
    early = Fake(0, is_ready=False)

    def begin(workers, *_):
        workers._on_signal(signal.SIGHUP)
        return second

    def make_ready(_):
        assert early.is_ready or first.log == []
        early.is_ready = True

    def last(workers, *_):
        assert first.log == [module.RETIRE]
        assert second.log == []
        workers._on_signal(signal.SIGTERM)
        return other

    workers, said = supervised(monkeypatch, tmp_path, [first, begin, early, last])
    monkeypatch.setattr(module.time, "sleep", make_ready)
    workers.run()
    assert said == ["Restarting the workers one after another"]
    assert all(each.log[-1] == "terminated" for each in (first, second, early, other))


def test_a_successor_that_ends_abandons_the_restart(monkeypatch, tmp_path):
    first, failed = Fake(0), Fake(0, 1, is_ready=False)

    def begin(workers, *_):
        workers._on_signal(signal.SIGHUP)
        return Fake(1)

    def fail(workers, *_):
        workers._on_signal(signal.SIGTERM)
        return failed

    workers, said = supervised(monkeypatch, tmp_path, [first, begin, fail])
    workers.run()
    workers._check_successor(failed)
    assert said[-1] == (
        "warning: the restart was abandoned: worker 0 exited with status 1; the other workers "
        "continue"
    )
    assert first.log == ["terminated"]


def test_invalid_settings_restart_nothing(monkeypatch, tmp_path):
    def reread():
        raise SettingsError("port = x: not a number", field="port")

    workers, said = supervised(monkeypatch, tmp_path, [], reread)
    workers._begin_restart()
    assert said == ["warning: nothing was restarted: port = x: not a number"]
    assert not workers._outdated


def test_they_end_with_the_process_that_started_them(service):
    process, address = service
    assert asked(address)
    at_work = workers_of(process)
    command = told_by(Path(f"/proc/{next(iter(at_work.values()))}/cmdline"))
    folder = Path(command.rstrip("\0").rpartition("\0")[2])
    assert folder.is_dir()
    process.kill()
    wait_until(lambda: not any(_runs(each) for each in at_work.values()))
    assert not folder.exists()


def _state_of(process):
    """A letter; Z where it has ended, or is no more."""
    told = told_by(Path(f"/proc/{process}/stat"))
    return told.rpartition(")")[2].split()[0] if told else "Z"


def _runs(process):
    return _state_of(process) != "Z"


def test_a_refit_is_one_to_all_and_ends_with_the_worker_that_runs_it(service):
    process, address = service
    asked_of = kept_to_each(process, address)
    begun = begun_by(asked_of["0"])
    assert begun_by(asked_of["1"])["id"] == begun["id"]
    wait_until(lambda: refits_of(process))
    [(worker, refitting)] = refits_of(process).items()
    wait_until(lambda: _state_of(refitting) == "T")  # until it is told to go on
    [other] = (number for number, each in workers_of(process).items() if each != worker)
    assert refit_of(asked_of["0"]) == refit_of(asked_of["1"])
    assert refit_of(asked_of["1"])["state"] == "running"
    assert begun_by(asked_of["1"]) == refit_of(asked_of["0"])
    assert list(refits_of(process)) == [worker]
    os.kill(worker, signal.SIGKILL)
    os.kill(refitting, signal.SIGCONT)
    wait_until(lambda: not _runs(refitting))
    wait_until(lambda: refit_of(asked_of[other])["error"] is not None)
    assert "the process of the refit" in refit_of(asked_of[other])["error"]
    assert begun_by(asked_of[other])["id"] == begun["id"] + 1  # may be begun again


def test_a_second_signal_ends_all_at_once(tmp_path):
    with started(tmp_path) as process:
        workers = workers_of(process)
        for each in workers.values():
            os.kill(each, signal.SIGSTOP)  # who is stopped ends by no signal but one
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)  # the order in which it takes them is its own
        assert process.wait(LONG) in (128 + signal.SIGINT, 128 + signal.SIGTERM)
    wait_until(lambda: not any(_runs(each) for each in workers.values()))


def test_one_that_does_not_end_in_its_time_is_ended(monkeypatch, tmp_path):
    class Stuck(Process):
        ended = False

        def wait(self, seconds=None):
            if not self.ended:
                raise subprocess.TimeoutExpired("worker", seconds)

        def kill(self):
            said.append("killed")
            self.ended = True

    stuck = Fake(0)
    stuck.process = Stuck([])
    workers, said = supervised(monkeypatch, tmp_path, [stuck, Fake(1)])
    monkeypatch.setattr(module, "STOP_TIMEOUT", 0.0)
    workers._on_signal(signal.SIGTERM)
    workers.run()
    assert workers._listener.fileno() == -1
    assert said == ["warning: worker 0 did not stop within 0 s and was killed", "killed"]
