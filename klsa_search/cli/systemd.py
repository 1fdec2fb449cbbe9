"""The socket that systemd passes to a service, and messages about the state of the service.

See sd_listen_fds(3) and sd_notify(3).
"""

from __future__ import annotations

import os
import socket
import time
from typing import Final

from klsa_search.errors import KlsaError

_FIRST: Final = 3
"""File descriptor of the first socket that is passed."""


def passed_socket() -> socket.socket | None:
    """Return the listening socket that systemd passed to this process, if it did.

    KlsaError if there are several, or one that is not TCP.
    """
    if os.environ.pop("LISTEN_PID", None) != str(os.getpid()):
        return None
    count = int(os.environ.pop("LISTEN_FDS", "0"))
    os.environ.pop("LISTEN_FDNAMES", None)
    if count == 0:
        return None
    if count > 1:
        raise KlsaError(
            f"systemd passed {count} sockets: the service listens on one; keep one ListenStream= "
            "line in the socket unit"
        )
    passed = socket.socket(fileno=_FIRST)
    passed.set_inheritable(False)
    tcp = (socket.SOCK_STREAM, socket.IPPROTO_TCP)
    if passed.family not in (socket.AF_INET, socket.AF_INET6) or (passed.type, passed.proto) != tcp:
        raise KlsaError(
            "systemd passed a socket that is not TCP; give an address and a port in the "
            "ListenStream= line of the socket unit"
        )
    return passed


def notify_ready() -> None:
    """Report to systemd that the service answers requests, after a start or a reload."""
    _notify("READY=1")


def notify_reloading() -> None:
    """Report to systemd that a reload has begun."""
    _notify(f"RELOADING=1\nMONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}")


def notify_stopping() -> None:
    """Report to systemd that the service stops."""
    _notify("STOPPING=1")


def _notify(state: str) -> None:
    """Send a state to the service manager, if there is one."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    if address.startswith("@"):  # an abstract socket of Linux
        address = "\0" + address[1:]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.connect(address)
        manager.sendall(state.encode())
