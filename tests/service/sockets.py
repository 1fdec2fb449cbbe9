"""A server on a real socket, and a client that can misbehave."""

import asyncio
import http.client
import json
import socket
import threading
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import uvicorn

from klsa_search.service.admission import Admission
from klsa_search.service.server import configured
from klsa_search.service.settings import ServiceSettings
from tests.support.application import app_of_indexes
from tests.support.waiting import PATIENCE, wait_until


class _Impatient:
    """The asyncio of a server: it pauses for 0.1 s two or three times before it has stopped."""

    def __getattr__(self, name: str) -> Any:
        return getattr(asyncio, name)

    def sleep(self, seconds: float) -> Any:
        return asyncio.sleep(seconds / 20)


class Served:
    """A server at work in a thread."""

    def __init__(self, server, admission, heavy, listener):
        self.server = server
        self.admission = admission
        self.heavy = heavy
        self.address = listener.getsockname()
        self.thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})

    def client(self):
        return Client(self.address)

    def get(self, path):
        """Status and JSON of one request over a connection of its own."""
        with self.client() as client:
            return client.get(path)

    def stop(self):
        """What a signal does."""
        self.server.should_exit = True

    def wait_for_end(self):
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()


@contextmanager
def serving(
    open_indexes,
    *,
    grace=PATIENCE,
    linger=0.02,
    hosts=None,
    heavy=(1, 8),
    keys=None,
    writes=None,
    jobs=None,
    recorder=None,
    page=None,
    **admission,
):
    """Serve indexes until the block ends."""
    desk = Admission(**admission)
    slow = Admission(running=heavy[0], waiting=heavy[1])
    app = app_of_indexes(
        open_indexes,
        admission=desk,
        heavy=slow,
        allowed_hosts=hosts or ("*",),
        keys=keys,
        writes=writes,
        jobs=jobs,
        recorder=recorder,
        page=page,
    )
    server = uvicorn.Server(configured(app, ServiceSettings(), grace=grace))
    quick = patch.object(uvicorn.server, "asyncio", _Impatient())
    brief = patch("klsa_search.service.server.LINGER", linger)
    with quick, brief, socket.create_server(("127.0.0.1", 0)) as listener:
        served = Served(server, desk, slow, listener)
        served.thread.start()
        try:
            wait_until(lambda: server.started)
            yield served
        finally:
            served.stop()
            served.wait_for_end()


class Client:
    """One connection."""

    def __init__(self, address, *, receive_buffer=None):
        self.socket = socket.socket()
        self.socket.settimeout(PATIENCE)
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.connect(address)
        self.file = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.file.close()
        self.socket.close()

    def send(self, text):
        self.socket.sendall(text.encode())

    def ask(self, path, method="GET"):
        self.send(f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")

    def answer(self, method="GET"):
        """Status, head and JSON of the next answer; None where the connection ends instead."""
        try:
            first = self.file.readline()
        except ConnectionResetError:
            return None
        if not first:
            return None
        head = http.client.parse_headers(self.file)
        body = b"" if method == "HEAD" else self.file.read(int(head["content-length"]))
        is_json = head["content-type"] == "application/json"  # not if the server itself refuses
        return int(first.split()[1]), head, json.loads(body) if body and is_json else None

    def get(self, path):
        self.ask(path)
        status, _, content = self.answer()
        return status, content

    def is_ended(self):
        """Whether the server ended the connection, without another byte; waits for it."""
        try:
            return self.file.read(1) == b""
        except ConnectionResetError:
            return True
