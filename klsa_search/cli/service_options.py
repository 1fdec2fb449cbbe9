"""Options of klsa-serve, made from the settings of the service."""

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

from klsa_search.cli.options import FOLDER, type_of
from klsa_search.errors import KlsaError
from klsa_search.service.settings import PREFIX, ServiceSettings, shown_as

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


F = TypeVar("F", bound=Callable[..., Any])


def service_options(*names: str) -> Callable[[F], F]:
    """Decorate a command with --config, and an option for each of these settings, or for all.

    Type, limits, help and default come from the setting itself. What is not given arrives as None:
    the environment and the file may have it.
    """
    config = click.option(
        "--config",
        type=click.Path(path_type=Path, dir_okay=False, exists=True, readable=False),
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
    """The option of a setting."""
    own = "--" + name.replace("_", "-")
    return shown_as(field).option or (f"{own}/--no-{own[2:]}" if field.annotation is bool else own)


def default_of(field: FieldInfo) -> str:
    """The default of a setting, in words."""
    default = shown_as(field).default
    if default is None and isinstance(field.default, bool):
        return "yes" if field.default else "no"
    return default or ("none" if field.default in (None, ()) else f"{field.default}")


def _option(name: str, field: FieldInfo) -> Callable[[F], F]:
    many = get_origin(field.annotation) is tuple
    kind = _only(field.annotation)
    path = FOLDER if name == "home" else click.Path(path_type=Path, dir_okay=False)
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
    """The type of a setting that may also be None."""
    if isinstance(annotation, UnionType):
        return next(each for each in get_args(annotation) if each is not type(None))
    return annotation
