"""klsa-keys: who may ask a service what."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any, cast, get_args

import click

from klsa_search.cli.frame import debug_option, run
from klsa_search.cli.options import given, json_option
from klsa_search.cli.output import Column, echo, write_json, write_table
from klsa_search.cli.service_options import service_options
from klsa_search.errors import SettingsError
from klsa_search.service.middleware.keys import Key, Scope, add_key, read_keys, revoke_key
from klsa_search.service.settings import read_settings
from klsa_search.store import index_path

_file_options = service_options("home", "keys")


@click.group()
@click.version_option(package_name="klsa-search")
@debug_option
def klsa_keys() -> None:
    """Make, list and revoke the keys of a service, which takes up each change at once.

    A service asks for a key as soon as there is a file of them. The file holds no key itself.
    """


@klsa_keys.command()
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    type=click.Choice(get_args(Scope)),
    multiple=True,
    default=("search",),
    show_default=True,
    help="What it is for; once for each.",
)
@click.option(
    "--index",
    "indexes",
    metavar="NAME",
    multiple=True,
    help="Index that it is for; once for each.  [default: all]",
)
@click.option(
    "--days", type=click.IntRange(1, 36_500), help="How long it counts.  [default: for ever]"
)
@_file_options
@debug_option
def add(
    name: str,
    scopes: tuple[str, ...],
    indexes: tuple[str, ...],
    days: int | None,
    config: Path | None,
    **options: Any,
) -> None:
    """Make a key called NAME and print it; it cannot be printed again."""
    path = _file(config, options)
    for each in indexes:
        index_path(path.parent, each)  # what no index can be called is a slip of the keyboard
    is_first = not path.exists()
    token = add_key(
        path,
        name,
        cast(tuple[Scope, ...], scopes),
        indexes or None,
        lasts=timedelta(days=days) if days else None,
    )
    echo(token)
    if is_first:
        echo(f"Services that read {path} ask for a key from now on.", err=True)


@klsa_keys.command("list")
@_file_options
@json_option
@debug_option
def list_(config: Path | None, as_json: bool, **options: Any) -> None:
    """List the keys: what they are for, and how long they count."""
    path = _file(config, options)
    if not path.exists():
        raise SettingsError(f"{path} is not there, so no key is asked for: klsa-keys add makes one")
    keys = read_keys(path)
    if as_json:
        told = {"name", "scopes", "indexes", "created", "expires"}
        write_json([key.model_dump(mode="json", include=told) for key in keys])
    elif not keys:
        echo(f"{path} holds no key, so that nobody is let in")
    else:
        columns = [Column(each) for each in ("name", "scopes", "indexes", "made", "counts until")]
        write_table(columns, [_row(key) for key in keys])


@klsa_keys.command()
@click.argument("name")
@_file_options
@debug_option
def revoke(name: str, config: Path | None, **options: Any) -> None:
    """Have the key called NAME count no more, from the next request on."""
    revoke_key(_file(config, options), name)
    echo(f"{name} counts no more")


def _file(config: Path | None, options: dict[str, Any]) -> Path:
    return read_settings(given(options), config).keys_file


def _row(key: Key) -> list[str]:
    until = "for ever" if key.expires is None else f"{key.expires:%Y-%m-%d %H:%M} UTC"
    return [
        key.name,
        ", ".join(key.scopes),
        "all" if key.indexes is None else ", ".join(key.indexes),
        f"{key.created:%Y-%m-%d}",
        f"{until}, over" if key.is_over() else until,
    ]


def main() -> None:
    """Run klsa-keys."""
    run(klsa_keys)
