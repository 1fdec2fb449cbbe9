"""SIGHUP: a request to reload, or the end of the terminal."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from types import FrameType

from klsa_search.cli.main import explain
from klsa_search.cli.systemd import notify_ready, notify_reloading
from klsa_search.errors import KlsaError
from klsa_search.service.server import Server
from klsa_search.service.tls import Tls


class Hangup:
    """Distinguishes the two reasons for SIGHUP; create it before a handler is installed."""

    def __init__(self) -> None:
        is_ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN  # started by nohup
        self._needs_terminal = not is_ignored and _has_terminal()

    def is_reload(self) -> bool:
        """Return whether SIGHUP requests a reload: the terminal of this process was not closed."""
        return not self._needs_terminal or _has_terminal()


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True


def handle_hangup(server: Server, tls: Tls | None, report: Callable[[str], None]) -> None:
    """Let SIGHUP reload the certificate, and stop the server if its terminal was closed."""
    hangup = Hangup()

    def on_hangup(kind: int, frame: FrameType | None) -> None:
        if not hangup.is_reload():
            server.handle_exit(signal.SIGTERM, frame)
            return
        notify_reloading()
        if tls is not None:
            _reload(tls, report)
        notify_ready()

    signal.signal(signal.SIGHUP, on_hangup)


def _reload(tls: Tls, report: Callable[[str], None]) -> None:
    """Use a renewed certificate, or report why it is refused."""
    try:
        tls.reload()
    except (KlsaError, OSError) as failure:
        report(f"warning: the certificate was not reloaded: {explain(failure)}")
    else:
        report(f"Reloaded the certificate `{tls.certificate}`")
