"""Configure uvicorn, check its certificate, and set the limits of the process."""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import ssl
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NoReturn

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from klsa_search.errors import SettingsError
from klsa_search.service.settings import ServiceSettings

GRACE: Final = 8  # seconds that running requests have to finish when a process stops
_KEEP_ALIVE: Final = 60  # seconds that an idle connection is kept open
_WORKER_TIMEOUT: Final = 120
"""Seconds for a worker to open the indexes, and to answer the process that started it."""

DESCRIPTORS: Final = 65_536
"""File descriptors of a process: one for each connection and each array of an open index."""


def configured(
    app: FastAPI | Callable[[], FastAPI], settings: ServiceSettings, *, grace: int = GRACE
) -> uvicorn.Config:
    """Return the configuration of a server.

    app    the application, or with several workers the function that each calls to create its own
    grace  seconds that running requests have when a process stops; after that they get 500
    """
    has_workers = settings.workers > 1
    return uvicorn.Config(
        app,
        factory=has_workers,
        workers=settings.workers,
        timeout_worker_healthcheck=_WORKER_TIMEOUT,
        timeout_graceful_shutdown=grace,
        timeout_keep_alive=_KEEP_ALIVE,
        loop="asyncio",  # uvloop accepts one connection in an iteration: too slow under load
        http=HttpProtocol,
        ws="none",
        lifespan="on",
        log_config=None,
        log_level="info" if has_workers else "error",  # starts and ends of workers
        access_log=False,
        proxy_headers=False,
        root_path=settings.root_path,
        ssl_certfile=settings.tls_certificate,
        ssl_keyfile=settings.tls_key,
    )


def check_certificate(certificate: Path | None, key: Path | None) -> None:
    """Raise SettingsError unless a certificate and its key, in one file or two, match; OSError."""
    if certificate is None:
        if key is not None:
            raise SettingsError(
                f"`{key}` is a key without certificate; give --tls-certificate too", field="tls_key"
            )
        return
    try:
        # The empty password keeps OpenSSL from prompting on the terminal.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, lambda: "")
    except FileNotFoundError:
        gone = next(path for path in (certificate, key) if path and not path.exists())
        raise FileNotFoundError(2, "No such file or directory", str(gone)) from None
    except ssl.SSLError as wrong:
        with_key = f" and {key}" if key else ""
        raise SettingsError(
            f"`{certificate}`{with_key} cannot be used for TLS ({wrong.reason or wrong}); give a "
            "certificate in PEM, and its key without a password",
            field="tls_certificate",
        ) from None


_MAX_JOINED: Final = 2**16  # bytes up to which a write is joined with the one before


LINGER: Final = 1.0
"""Seconds for which idle connections stay open when a process stops: a request that is on its way
when its connection is closed would fail.
"""


class HttpProtocol(HttpToolsProtocol):
    """HTTP that sends head and body of an answer by one system call, and stops after `LINGER`."""

    _is_stopping = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin a connection."""
        super().connection_made(_JoinedWrites(transport))  # type: ignore[arg-type]

    def on_headers_complete(self) -> None:
        """Begin a request, the last one of this connection if the process stops."""
        super().on_headers_complete()
        if self._is_stopping:
            self.cycle.keep_alive = False

    def shutdown(self) -> None:
        """End the connection after the next answer, or when it stays idle."""
        self._is_stopping = True
        if self.cycle is None or self.cycle.response_complete:
            self.loop.call_later(LINGER, super().shutdown)
        else:
            super().shutdown()


class _JoinedWrites:
    """A transport that joins a write with the next one in the same iteration of the event loop."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._held = b""

    def write(self, data: bytes) -> None:
        """Write data with what is held, or hold it until the end of the iteration."""
        if len(data) > _MAX_JOINED:  # to copy it would take longer than a call
            self._flush()
            self._transport.write(data)
        elif self._held:
            self._held = b"".join((self._held, data))
            self._flush()
        else:
            self._held = data
            asyncio.get_running_loop().call_soon(self._flush)

    def close(self) -> None:
        """Close the connection when all is written."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        held, self._held = self._held, b""
        if held and not self._transport.is_closing():
            self._transport.write(held)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


def log_no_cancellations() -> None:
    """Keep the tracebacks of requests that the end of the service cancels out of the log."""
    logging.getLogger("uvicorn.error").addFilter(
        lambda record: (
            not (record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError))
        )
    )


def raise_descriptor_limit() -> None:
    """Raise the limit of file descriptors to what the service can use, if the system allows it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def end_process(code: int) -> NoReturn:
    """End the process while threads run, as the extension module cannot be interrupted.

    No data is lost: writes to an index are atomic.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
