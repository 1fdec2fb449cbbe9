"""klsa-keys: manage the API keys and users of a service."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, cast, get_args

import click

from klsa_search.cli.main import Group, run
from klsa_search.cli.options import (
    F,
    json_option,
    service_config_option,
    settings_options,
    without_none,
)
from klsa_search.cli.output import echo, write_list
from klsa_search.errors import SettingsError
from klsa_search.service.keys import Key, KeyUses, Scope, add_key, read_keys, revoke_key
from klsa_search.service.settings import ServiceSettings, read_settings
from klsa_search.storage.names import index_path


def _file_options(function: F) -> F:
    """Add the options that name the key file."""
    return service_config_option(settings_options("home", "keys", model=ServiceSettings)(function))


@click.group(cls=Group)
@click.version_option(package_name="klsa-search")
def klsa_keys() -> None:
    """Create, list and revoke the API keys and users of a service.

    Running services apply each change within a second. A service requires API keys as soon as its
    key file exists. The file stores hashes of the keys, not the keys.
    """


@klsa_keys.command()
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    type=click.Choice(get_args(Scope)),
    multiple=True,
    default=("search",),
    help="Grant this scope; repeatable",
)
@click.option(
    "--index",
    "indexes",
    metavar="NAME",
    multiple=True,
    help="Restrict the key to this index; repeatable  [default: all indexes]",
)
@click.option(
    "--days",
    type=click.IntRange(1, 36_500),
    help="Expire the key after this many days  [default: never]",
)
@click.option(
    "--user",
    "is_user",
    is_flag=True,
    help="Create a user, who signs in on the search page by name and password",
)
@_file_options
def add(
    name: str,
    scopes: tuple[str, ...],
    indexes: tuple[str, ...],
    days: int | None,
    is_user: bool,
    config: Path | None,
    **options: Any,
) -> None:
    """Create an API key called NAME and print it, or a user and print its password.

    It cannot be shown again.
    """
    path = _file(config, options)
    for index in indexes:
        index_path(path.parent, index)  # raises for an invalid name
    is_first = not path.exists()
    secret = add_key(
        path,
        name,
        cast(tuple[Scope, ...], scopes),
        indexes or None,
        lifetime=timedelta(days=days) if days else None,
        is_user=is_user,
    )
    echo(secret)
    if is_first:
        echo(f"Services that use {path} require an API key from now on.", err=True)


@klsa_keys.command("list")
@_file_options
@json_option
def list_(config: Path | None, as_json: bool, **options: Any) -> None:
    """List API keys and users, with their scopes, indexes, expiry and last use."""
    path = _file(config, options)
    if not path.exists():
        raise SettingsError(
            f"no key file at `{path}`, so no API key is required; create one with `klsa-keys add "
            "NAME`"
        )
    uses, shown = KeyUses(path), {"name", "scopes", "indexes", "created", "expires"}
    used = [(key, uses.last(key)) for key in read_keys(path)]
    facts = [
        key.model_dump(mode="json", include=shown)
        | {"user": key.is_user, "used": last and last.isoformat()}
        for key, last in used
    ]
    titles = ("name", "kind", "scopes", "indexes", "created", "expires", "used")
    rows = [_row(key, last) for key, last in used]
    nothing = f"{path} has no keys: all requests that need one are refused"
    write_list(as_json, facts, titles, rows, nothing)


@klsa_keys.command()
@click.argument("name")
@_file_options
def revoke(name: str, config: Path | None, **options: Any) -> None:
    """Revoke the API key or user called NAME.

    The service refuses it within a second, and its sessions too.
    """
    revoke_key(_file(config, options), name)
    echo(f"revoked {name}")


def _file(config: Path | None, options: dict[str, Any]) -> Path:
    return read_settings(without_none(options), config).keys_file


def _row(key: Key, used: datetime | None) -> list[str]:
    until = "never" if key.expires is None else f"{key.expires:%Y-%m-%d %H:%M} UTC"
    return [
        key.name,
        "user" if key.is_user else "key",
        ", ".join(key.scopes),
        "all" if key.indexes is None else ", ".join(key.indexes),
        f"{key.created:%Y-%m-%d}",
        f"{until} (expired)" if key.is_expired() else until,
        "never" if used is None else f"{used:%Y-%m-%d %H:%M} UTC",
    ]


main = partial(run, klsa_keys)
