"""Configure uvicorn, TLS and the limits of the process."""

from __future__ import annotations

import os
import resource
import ssl
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

import uvicorn
from fastapi import FastAPI

from klsa_search.errors import SettingsError


@dataclass(frozen=True)
class Tls:
    """A certificate and its private key, in one file or two, read at start-up only.

    SettingsError if they do not match; OSError.
    """

    certificate: Path
    key: Path | None = None

    def __post_init__(self) -> None:
        """Check that both can be loaded."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            # The empty password keeps OpenSSL from prompting on the terminal.
            context.load_cert_chain(self.certificate, self.key, password=lambda: "")
        except FileNotFoundError:
            gone = next(path for path in (self.certificate, self.key) if path and not path.exists())
            raise FileNotFoundError(2, "No such file or directory", str(gone)) from None
        except ssl.SSLError as wrong:
            with_key = f" and {self.key}" if self.key else ""
            raise SettingsError(
                f"`{self.certificate}`{with_key} cannot be used for TLS "
                f"({wrong.reason or wrong}); give a certificate in PEM, and its "
                "key without a password",
                field="tls_certificate",
            ) from None


def tls_of(certificate: Path | None, key: Path | None) -> Tls | None:
    """Return the TLS configuration; None without a certificate, SettingsError for a key alone."""
    if certificate is not None:
        return Tls(certificate, key)
    if key is not None:
        raise SettingsError(
            f"`{key}` is a key without certificate; give --tls-certificate too", field="tls_key"
        )
    return None


GRACE: Final = 8
"""Seconds that running requests have to finish when the service stops."""

STOP_TIMEOUT: Final = GRACE + 5
"""Seconds after the signal at which a server that still runs counts as hung."""

_KEEP_ALIVE: Final = 60
"""Seconds that an idle connection is kept open."""

_DESCRIPTORS: Final = 16_384
"""File descriptors of a process: one for each connection and each array of an open index."""


def make_server(app: FastAPI, *, tls: Tls | None = None, grace: float = GRACE) -> uvicorn.Server:
    """Return a server for an application.

    grace  seconds that running requests have when the server stops; after that their connections
           are closed without an answer
    """
    return uvicorn.Server(
        uvicorn.Config(
            app,
            loop="asyncio",  # uvloop accepts one connection in an iteration: too slow under load
            http="httptools",
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="error",
            access_log=False,
            proxy_headers=False,
            timeout_keep_alive=_KEEP_ALIVE,
            timeout_graceful_shutdown=grace,  # type: ignore[arg-type]  # a float works too
            ssl_certfile=tls.certificate if tls else None,
            ssl_keyfile=tls.key if tls else None,
        )
    )


def raise_descriptor_limit() -> None:
    """Raise the limit of file descriptors to what the service can use, if the system allows it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def end_process(code: int) -> NoReturn:
    """End the process while threads run, as compiled code cannot be interrupted.

    No data is lost: writes to an index are atomic.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
