import json
import re
import signal
import socket
import subprocess
import sys
import time
from urllib.request import urlopen

import pytest

from klsa_search.cli.frame import run
from klsa_search.cli.serve import serve
from klsa_search.indexing import build

DOCUMENTS = [
    {"id": "1", "title": "Files", "text": "Compare files of floats line by line."},
    {"id": "2", "title": "Sockets", "text": "Read from a socket."},
]


@pytest.fixture(autouse=True)
def _keep_excepthook(monkeypatch):
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)


@pytest.fixture
def home(tmp_path):
    build(DOCUMENTS, name="files", home=tmp_path).close()
    return tmp_path


def leave(capsys, *arguments):
    with pytest.raises(SystemExit) as left:
        run(serve, [str(argument) for argument in arguments])
    return left.value.code, capsys.readouterr()


@pytest.mark.parametrize("kind", [signal.SIGTERM, signal.SIGINT])
def test_serves_until_it_is_stopped(home, kind):
    program = "from klsa_search.cli.serve import main; main()"
    command = [sys.executable, "-c", program, "--home", str(home), "--port", "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        try:
            first = server.stdout.readline()
            address = re.fullmatch(
                r"Serving files at (http://127\.0\.0\.1:\d+) \(Ctrl-C stops it\)\n", first
            )[1]
            server.stdout.readline()
            tried = re.fullmatch(r"Try +curl '(.+)'\n", server.stdout.readline())[1]
            assert tried.startswith(address)
            with urlopen(tried, timeout=30) as response:
                answer = json.load(response)
            assert answer["hits"][0]["id"] == "1"
            build(DOCUMENTS[1:], name="files", home=home).close()
            time.sleep(1.1)
            with urlopen(f"{address}/health", timeout=30) as response:
                assert json.load(response)["indexes"][0]["generation"] == "000002"
            server.send_signal(kind)
            assert server.wait(timeout=30) == 0
            assert server.stderr.read() == ""
        finally:
            server.kill()


def test_home_without_an_index(capsys, tmp_path):
    code, printed = leave(capsys, "--home", tmp_path / "none")
    assert code == 1
    assert printed.err.count("\n") == 1
    assert "klsa-index build python-docs --name python-docs" in printed.err


def test_damaged_index_is_told(capsys, home):
    (home / "files" / "CURRENT").write_text("000009\n")
    code, printed = leave(capsys, "--home", home)
    assert code == 1
    warning, error = printed.err.splitlines()
    assert warning.startswith("warning: files is not served: ")
    assert error.startswith("error: there is no index to serve")


def test_port_in_use(capsys, home):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        code, printed = leave(capsys, "--home", home, "--port", port)
    assert code == 1
    assert printed.err == (
        f"error: cannot listen on port {port} of 127.0.0.1: it is in use: "
        "stop what uses it, or choose another with --port\n"
    )
    assert printed.out == ""


def test_address_of_another_machine(capsys, home):
    code, printed = leave(capsys, "--home", home, "--host", "192.0.2.1", "--port", 0)
    assert code == 1
    assert "this machine has no such address" in printed.err


def test_a_home_that_is_a_file_is_wrong_usage(capsys, tmp_path):
    (tmp_path / "file").touch()
    assert leave(capsys, "--home", tmp_path / "file")[0] == 2


@pytest.mark.parametrize(
    "wrong", [["--port", "70000"], ["--port", "x"], ["--nope"], ["--host", "no host at all"]]
)
def test_wrong_usage(capsys, home, wrong):
    code, printed = leave(capsys, "--home", home, *wrong)
    assert code == 2
    assert "Traceback" not in printed.err
