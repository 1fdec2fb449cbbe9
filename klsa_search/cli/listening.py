"""The address that a service listens on."""

from __future__ import annotations

import errno
import ipaddress
import socket

import click

from klsa_search.errors import KlsaError

_REFUSALS = {
    errno.EADDRINUSE: "address in use; stop the other process, or choose another port with --port",
    errno.EADDRNOTAVAIL: "not an address of this machine; choose another with --host",
    errno.EACCES: "permission denied; choose a port above 1023 with --port",
}


_READING = 30
"""Seconds in which a client may take nothing of its answer, before the connection is closed."""


def listen(host: str, port: int) -> socket.socket:
    """Take the address, so that it is ours before it is announced."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        made = socket.create_server(address[:2], family=family, backlog=2048)
        # The same with TCP as its protocol, where create_server leaves 0. asyncio sets TCP_NODELAY
        # on TCP alone, and without it an answer on a kept connection waits 45 ms for the client.
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP, made.detach())
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # which connections inherit
            timeout = 1000 * _READING
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, timeout)
        return listener
    except socket.gaierror as failure:
        raise click.BadParameter(
            f"unknown host {host!r} ({failure.strerror}); give a name or an address of this "
            "machine",
            param_hint="--host",
        ) from None
    except OSError as failure:
        fact = _REFUSALS.get(
            failure.errno or 0, f"{failure.strerror}; choose another address with --host or --port"
        )
        raise KlsaError(f"cannot listen on `{host}` port {port}: {fact}") from failure


def is_of_this_machine(listener: socket.socket) -> bool:
    """Whether no other machine can reach the address."""
    return ipaddress.ip_address(listener.getsockname()[0].partition("%")[0]).is_loopback
