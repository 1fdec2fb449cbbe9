"""What klsa-serve does once it knows what it is to do: open, listen, announce, serve."""

from __future__ import annotations

import errno
import gc
import ipaddress
import signal
import socket
import sys
from collections.abc import Collection, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NoReturn

import click

from klsa_search.cli.beside import MODULE
from klsa_search.cli.compiling import watch_compiling
from klsa_search.cli.refitting import MODULE as REFITTING
from klsa_search.compiled.beside import compile_beside, missing
from klsa_search.errors import KlsaError, SettingsError, StoreError
from klsa_search.search.engine.reverse import Reversing
from klsa_search.service import Catalog, create_app
from klsa_search.service.access import Keys
from klsa_search.service.admission import Admission
from klsa_search.service.descriptors import raise_limit
from klsa_search.service.hosts import names_of_this_machine
from klsa_search.service.refitting import Refits
from klsa_search.service.server import Server, end
from klsa_search.service.settings import ServiceSettings
from klsa_search.service.writing import Writes
from klsa_search.store import indexes_in

_TURN = 0.0001
"""Seconds after which a thread at work gives way to another that waits to run Python. The event
loop waits so long at each of some ten steps of a request, and for each thread: with Python's own
5 ms it refuses 40 requests a second while two threads compute, and 400 with this.
"""

_REFUSALS = {
    errno.EADDRINUSE: "it is in use: stop what uses it, or choose another with --port",
    errno.EADDRNOTAVAIL: "this machine has no such address: choose another with --host",
    errno.EACCES: "it is for the system alone: choose one above 1023 with --port",
}


def serve_until_stopped(settings: ServiceSettings) -> None:
    """Serve every index of a home until SIGINT or SIGTERM.

    StoreError if there is none, KlsaError if the address cannot be had.
    """
    raise_limit()
    names = {settings.host, *settings.allowed_hosts, *names_of_this_machine()}
    _tell_opening(settings.home)
    compile_beside(MODULE)
    with watch_compiling(_tell_compiling), Catalog(settings.home) as catalog:
        served = _served(catalog)
        with _listen(settings.host, settings.port) as listener:
            keys = _keys(settings, listener)
            writes = None if settings.writable is False else Writes()
            _announce(served, listener, _told_of_writes(settings, listener, keys), keys)
            if missing()[0]:
                click.echo(
                    "Compiling the query engine, once on this machine, in a process beside: until "
                    "that is done answers take longer (/health tells)",
                    err=True,
                )
            refits = None
            if writes is not None:
                Reversing.ready()  # compiles beside what the first write would wait for
                command = (sys.executable, "-m", REFITTING, "--home", str(settings.home), "--")
                share = settings.refit_at
                refits = Refits(catalog, command, share=share) if share else None
            _run(catalog, names, listener, writes, refits, keys)


def _keys(settings: ServiceSettings, listener: socket.socket) -> Keys:
    """The keys, and what is allowed without; SettingsError where others could ask without."""
    anybody = {"search", "write"} if _is_writable(settings, listener) else {"search"}
    keys = Keys(settings.keys_file, anybody)
    if not (keys.needed or settings.allow_no_keys or _is_of_this_machine(listener)):
        raise SettingsError(
            f"other machines can reach {settings.host}, and there are no keys "
            f"({settings.keys_file}): make one with klsa-keys add NAME, or have whoever reaches it "
            "search with --allow-no-keys",
            field="host",
        )
    return keys


def _is_writable(settings: ServiceSettings, listener: socket.socket) -> bool:
    """Whether who needs no key may write: behind a proxy, which needs another name, all ask."""
    if settings.writable is None:
        return not settings.allowed_hosts and _is_of_this_machine(listener)
    return settings.writable


def _told_of_writes(settings: ServiceSettings, listener: socket.socket, keys: Keys) -> str:
    if settings.writable is False:
        return "refused (--writable takes them)"
    if keys.needed:
        return "taken with a key for them (--read-only refuses them)"
    if _is_writable(settings, listener):
        return "taken (--read-only refuses them)"
    return "refused (--writable takes them)"


def _tell_opening(home: Path) -> None:
    count = len(indexes_in(home))
    if count:
        click.echo(f"Opening {count} index{'es' if count > 1 else ''} in {home}", err=True)


def _tell_compiling(folder: str | None) -> None:
    where = f"kept in {folder}" if folder else "and again at every start, for no folder can keep it"
    click.echo(
        f"Compiling the query engine, once on this machine ({where}): about half a minute", err=True
    )


def _served(catalog: Catalog) -> list[str]:
    """Name the indexes that can be served, and warn of the others; StoreError if there is none."""
    statuses = catalog.statuses()
    for status in statuses:
        if status.failure is not None:
            click.echo(f"warning: {status.name} is not served: {status.failure}", err=True)
    names = [status.name for status in statuses if status.index is not None]
    if not names:
        raise StoreError(
            f"there is no index to serve in {catalog.home}: build one with "
            f"klsa-index build python-docs --name python-docs --home {catalog.home}"
        )
    return names


def _listen(host: str, port: int) -> socket.socket:
    """Take the address, so that it is ours before it is announced."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        made = socket.create_server(address[:2], family=family, backlog=2048)
        # The same with TCP as its protocol, where create_server leaves 0. asyncio sets TCP_NODELAY
        # on TCP alone, and without it an answer on a kept connection waits 45 ms for the client.
        return socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP, made.detach())
    except socket.gaierror as failure:
        raise click.BadParameter(
            f"{host!r} cannot be found ({failure.strerror}): give a name or an address of this "
            "machine",
            param_hint="--host",
        ) from None
    except OSError as failure:
        fact = _REFUSALS.get(failure.errno or 0, f"{failure.strerror}: choose another")
        raise KlsaError(f"cannot listen on port {port} of {host}: {fact}") from failure


def _is_of_this_machine(listener: socket.socket) -> bool:
    """Whether no other machine can reach the address."""
    return ipaddress.ip_address(listener.getsockname()[0].partition("%")[0]).is_loopback


def _announce(names: Sequence[str], listener: socket.socket, writes: str, keys: Keys) -> None:
    """Say where it serves and what to try."""
    host, port = listener.getsockname()[:2]
    # From outside nobody can call a wildcard; on this machine the loopback stands for it.
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    address = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    choice = f"&index={names[0]}" if len(names) > 1 else ""
    click.echo(f"Serving {', '.join(names)} at {address} (Ctrl-C stops it)")
    click.echo(f"Read    {address}/docs")
    click.echo(
        f"Try     curl '{address}/search?q=give+up+on+a+coroutine+after+some+time&k=4{choice}'"
    )
    click.echo(f"Writes  {writes}")
    click.echo(f"Keys    {'needed' if keys.needed else 'none: nobody is asked who he is'}")


def _run(
    catalog: Catalog,
    names: Collection[str],
    listener: socket.socket,
    writes: Writes | None,
    refits: Refits | None,
    keys: Keys,
) -> None:
    """Serve until a signal."""
    sys.setswitchinterval(_TURN)
    admissions = [Admission(), *([writes] if writes else [])]

    def leave(*_: Any) -> NoReturn:
        if refits is not None:
            refits.close()
        catalog.close()
        if catalog.at_work or any(each.at_work for each in admissions):
            end(0)
        raise SystemExit(0)

    # The server repeats the signal when it is done; to be stopped is no failure.
    for kind in (signal.SIGINT, signal.SIGTERM):
        signal.signal(kind, leave)
    app = create_app(
        catalog,
        admission=admissions[0],
        writes=writes,
        refits=refits,
        keys=keys,
        allowed_hosts=names,
    )
    # What is there by now stays. To look through it for garbage stops all threads for .1 to .3 s.
    gc.collect()
    gc.freeze()
    with refits or nullcontext():
        Server(app, *admissions).run(sockets=[listener])
