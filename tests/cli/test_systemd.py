"""Sockets of systemd, and messages to it."""

import os
import re
import socket
import subprocess
import sys

import pytest

from klsa_search.cli import systemd

PASSED = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ.update(LISTEN_PID=str(os.getpid() + int(sys.argv[3])), LISTEN_FDS=sys.argv[2])
from klsa_search.cli.systemd import passed_socket
from klsa_search.errors import KlsaError
try:
    passed = passed_socket()
    print(passed and passed.getsockname()[1])
except KlsaError as error:
    print(error)
"""


def passed(listener, count=1, other_process=0):
    """What a process makes of a socket that it gets as systemd passes it."""
    descriptor = listener.fileno()
    command = [sys.executable, "-c", PASSED, str(descriptor), str(count), str(other_process)]
    return subprocess.check_output(command, pass_fds=[descriptor], text=True, timeout=60).strip()


@pytest.mark.parametrize(
    ("count", "other_process", "found"),
    [(1, 0, None), (1, 1, "None"), (0, 0, "None"), (2, 0, "systemd passed 2 sockets")],
)
def test_the_socket_of_this_process_is_used(count, other_process, found):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        assert passed(listener, count, other_process).startswith(found or port)


def test_a_socket_that_is_not_tcp_is_refused(tmp_path):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        assert "not TCP" in passed(listener)


@pytest.mark.parametrize("abstract", [False, True])
def test_the_manager_is_notified(tmp_path, monkeypatch, abstract):
    name = f"@klsa-test-{os.getpid()}" if abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(name.replace("@", "\0", 1))
        manager.settimeout(60)
        monkeypatch.setenv("NOTIFY_SOCKET", name)
        systemd.notify_ready()
        systemd.notify_reloading()
        systemd.notify_stopping()
        told = [manager.recv(100).decode() for _ in range(3)]
    assert re.fullmatch(r"READY=1 RELOADING=1\nMONOTONIC_USEC=\d+ STOPPING=1", " ".join(told))


def test_without_a_manager_nothing_is_sent(monkeypatch):
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    systemd.notify_ready()
