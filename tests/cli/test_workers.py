"""klsa-serve --workers: several processes at one address."""

import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, RemoteDisconnected
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from klsa_search.indexing.build import build
from klsa_search.service.keys import add_key
from tests.support.acknowledged import (
    DOCUMENTS,
    KINDS,
    creations,
    deletes,
    refits,
    stale_answers,
    writes,
)
from tests.support.hostile import hostile_folder, imported_from
from tests.support.processes import run
from tests.support.waiting import PATIENCE, wait_until

ROUNDS = {writes: 500, deletes: 500, creations: 500, refits: 10}
"""Changes made of each kind; 100 of a kind without a row."""

SERVE = "from klsa_search.cli.serve import main; main()"
PEM, RENEWED = (Path(__file__).with_name(name) for name in ("localhost.pem", "renewed.pem"))

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc"),
]


@contextmanager
def service(folder, *options, count=2):
    """Run a service with workers that answer requests; yield its process and address."""
    hostile, scratch = hostile_folder(folder), folder / "scratch"
    scratch.mkdir()
    fixed = ["--home", str(folder / "home"), "--port", "0", "--workers", str(count)]
    with subprocess.Popen(
        [sys.executable, "-P", "-c", SERVE, *fixed, *options],  # as a console script imports
        cwd=hostile,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(scratch)},
    ) as process:
        try:
            address = re.search(r" at (https?://127.0.0.1:\d+) ", process.stdout.readline())[1]
            answer_of(address, "/health/live")
            wait_until(lambda: len(workers_of(process)) == count)
            yield process, address
        finally:
            process.kill()
    assert imported_from(hostile) == []


@pytest.fixture
def home(tmp_path):
    build(DOCUMENTS, name="files", home=tmp_path / "home").close()
    return tmp_path / "home"


def read(path):
    """Return a file of /proc; nothing for a process that has just ended."""
    try:
        return path.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def workers_of(process):
    """Return the process numbers of the workers."""
    children = map(int, read(Path(f"/proc/{process.pid}/task/{process.pid}/children")).split())
    return {pid for pid in children if "spawn_main" in read(Path(f"/proc/{pid}/cmdline"))}


def runs(pid):
    status = read(Path(f"/proc/{pid}/stat"))
    return bool(status) and status.rpartition(")")[2].split()[0] != "Z"


def answer_of(address, path, method="GET", body=None):
    data = None if body is None else json.dumps(body).encode()
    request = Request(address + path, data, {"Content-Type": "application/json"}, method=method)
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    with urlopen(request, timeout=PATIENCE, context=trusting) as answer:
        return json.load(answer)


def stopped(process):
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) == 0
    return process.stderr.read()


def test_counts_of_all_workers_are_summed(tmp_path, home):
    with service(tmp_path) as (process, address):
        folders = {
            Path(re.search(r"PROMETHEUS_MULTIPROC_DIR=(/dev/shm/klsa-workers-\w+)\0", told)[1])
            for told in (read(Path(f"/proc/{pid}/environ")) for pid in workers_of(process))
        }  # a full disk kills no worker
        assert len(folders) == 1
        for _ in range(20):
            answer_of(address, "/search?q=read")

        def counted():
            with urlopen(f"{address}/metrics", timeout=PATIENCE) as answer:
                text = answer.read().decode()
            sample = r'^klsa_requests_total\{method="GET",route="/search",status="200"\} (\S+)'
            return float(re.search(sample, text, re.MULTILINE)[1])

        wait_until(lambda: counted() == 20)
        stopped(process)
    assert not any(folder.exists() for folder in folders)
    assert list((tmp_path / "scratch").glob("klsa-workers-*")) == []


def test_a_killed_worker_is_replaced_and_all_stop_together(tmp_path, home):
    with service(tmp_path) as (process, address):
        before = workers_of(process)
        killed = min(before)
        os.kill(killed, signal.SIGKILL)
        assert all(answer_of(address, "/search?q=read")["hits"] for _ in range(10))
        wait_until(lambda: len(workers_of(process) - before) == 1)
        workers = workers_of(process)
        assert f"Child process [{killed}] died" in stopped(process)
        assert not any(map(runs, workers))


def test_workers_stop_with_the_process_that_started_them(tmp_path, home):
    with service(tmp_path) as (process, _):
        workers = workers_of(process)
        process.kill()
        wait_until(lambda: not any(map(runs, workers)))


def test_a_hangup_replaces_all_workers_and_refuses_no_connection(tmp_path, home):
    config = tmp_path / "klsa.toml"
    config.write_text('title = "before"\n')
    with service(tmp_path, "--config", str(config)) as (process, address):
        before = workers_of(process)
        config.write_text('title = "after"\n')
        process.send_signal(signal.SIGHUP)

        def replaced():
            with suppress(RemoteDisconnected):  # accepted by a worker that ended before it was read
                assert answer_of(address, "/search?q=read")["hits"]
            return len(workers_of(process)) == 2 and not workers_of(process) & before

        wait_until(replaced)
        request = Request(f"{address}/", headers={"Accept": "text/html"})
        with urlopen(request, timeout=PATIENCE) as page:
            assert "<title>after" in page.read().decode()
        stopped(process)


def test_a_hangup_with_invalid_settings_keeps_the_workers(tmp_path, home):
    config = tmp_path / "klsa.toml"
    config.write_text('title = "before"\n')
    with service(tmp_path, "--config", str(config)) as (process, address):
        started = (line for line in process.stderr if "Application startup complete" in line)
        for _ in range(2):  # a worker that still starts would read the invalid settings
            next(started)
        before = workers_of(process)
        config.write_text("threads = 0\n")
        process.send_signal(signal.SIGHUP)
        for line in process.stderr:
            if "aborting the restart" in line:
                break
        wait_until(lambda: workers_of(process) == before)  # a list may miss one while another ends
        assert answer_of(address, "/search?q=read")["hits"]
        stopped(process)


def test_a_hangup_loads_a_renewed_certificate(tmp_path, home):
    certificate = tmp_path / "certificate.pem"
    shutil.copy(PEM, certificate)
    with service(tmp_path, "--tls-certificate", str(certificate)) as (process, address):
        port = int(address.rpartition(":")[2])
        first = ssl.get_server_certificate(("127.0.0.1", port))
        assert first in PEM.read_text()
        shutil.copy(RENEWED, certificate)
        process.send_signal(signal.SIGHUP)
        wait_until(lambda: ssl.get_server_certificate(("127.0.0.1", port)) in RENEWED.read_text())
        stopped(process)


def test_invalid_settings_of_a_worker_end_the_service(tmp_path, home):
    """The process that starts them accepts the setting, and a worker does not."""
    program = (
        "import os; from klsa_search.cli import serving; "
        "serving._announce = lambda *_, **__: os.environ.update(KLSA_THREADS='0'); " + SERVE
    )
    fixed = ["--home", str(home), "--port", "0", "--workers", "2"]
    command = [sys.executable, "-c", program, *fixed]
    done = run(*command)
    assert "KLSA_THREADS" in done.stderr
    assert "failed to start, stopping the parent process" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode == 1


@pytest.mark.timeout(3600)  # thousands of requests, one after another
@pytest.mark.parametrize("kind", KINDS)
def test_acknowledged_changes_are_visible_in_four_workers(kind, tmp_path):
    home = tmp_path / "home"
    for name in ("files", "other", "rebuilt"):
        build(DOCUMENTS, name=name, home=home).close()
    key = add_key(home / ".keys.json", "tests", ["search", "write"])
    with service(tmp_path, count=4) as (process, address):

        def ask(method, path, body=None, key=key):
            connection = HTTPConnection(address.removeprefix("http://"), timeout=PATIENCE)
            headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            content = json.load(answer)
            connection.close()
            return answer.status, content

        stale, answers = stale_answers(kind, ask, home, ROUNDS.get(kind, 100))
        assert stale == []
        assert answers
        stopped(process)
