"""Options of klsa-serve, generated from the settings of the service, and its socket."""

from __future__ import annotations

import errno
import ipaddress
import socket
from collections.abc import Callable
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin

import click
from pydantic.fields import FieldInfo

from klsa_search.cli.options import EXISTING_FILE, FILE, FOLDER, type_of
from klsa_search.errors import KlsaError
from klsa_search.service.settings import PREFIX, ServiceSettings, shown_as

_REFUSALS = {
    errno.EADDRINUSE: "address in use; stop the other process, or choose another port with --port",
    errno.EADDRNOTAVAIL: "not an address of this machine; choose another with --host",
    errno.EACCES: "permission denied; choose a port above 1023 with --port",
}


_USER_TIMEOUT = 30
"""Seconds after which a connection is closed if the client reads nothing of a response."""


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens at the address; KlsaError if that is not possible."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        created = socket.create_server(address[:2], family=family, backlog=2048)
        # create_server leaves the protocol 0, and asyncio sets TCP_NODELAY for TCP only. Without
        # it a response on a kept connection waits 45 ms for the client.
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP, created.detach())
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # inherited by connections
            timeout = 1000 * _USER_TIMEOUT
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


def is_loopback(listener: socket.socket) -> bool:
    """Return whether no other machine can reach the address."""
    return ipaddress.ip_address(listener.getsockname()[0].partition("%")[0]).is_loopback


F = TypeVar("F", bound=Callable[..., Any])


def service_options(*names: str) -> Callable[[F], F]:
    """Return a decorator that adds --config, and an option for each of these settings, or all.

    Type, limits, help and default are those of the setting. An option that was not given is None,
    as the environment or the file may set it.
    """
    config = click.option(
        "--config",
        type=EXISTING_FILE,
        envvar=f"{PREFIX}CONFIG",
        show_envvar=True,
        help="Read service settings from this TOML file",
    )

    def decorate(function: F) -> F:
        for name in reversed(names or tuple(ServiceSettings.model_fields)):
            function = _option(name, ServiceSettings.model_fields[name])(function)
        return config(function)

    return decorate


def flag_of(name: str, field: FieldInfo) -> str:
    """Return the option of a setting."""
    option = "--" + name.replace("_", "-")
    return shown_as(field).option or (
        f"{option}/--no-{option[2:]}" if field.annotation is bool else option
    )


def default_of(field: FieldInfo) -> str:
    """Return the default of a setting, in words."""
    default = shown_as(field).default
    if default is None and isinstance(field.default, bool):
        return "yes" if field.default else "no"
    return default or ("none" if field.default in (None, ()) else f"{field.default}")


def _option(name: str, field: FieldInfo) -> Callable[[F], F]:
    many = get_origin(field.annotation) is tuple
    kind = _only(field.annotation)
    path = FOLDER if name == "home" else FILE
    return click.option(
        flag_of(name, field),
        name,
        default=None,
        multiple=many,
        metavar=shown_as(field).metavar,
        type=path if kind is Path else str if many else type_of(kind, field.metadata),
        callback=(lambda _context, _option, values: values or None) if many else None,
        help=f"{field.description}{'; repeatable' if many else ''}  [default: {default_of(field)}]",
    )


def _only(annotation: Any) -> Any:
    """Return the type of a setting, without None."""
    if isinstance(annotation, UnionType):
        return next(kind for kind in get_args(annotation) if kind is not type(None))
    return annotation
