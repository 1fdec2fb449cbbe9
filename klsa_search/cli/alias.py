"""klsa-index alias: set, remove and list alternative names of indexes."""

from __future__ import annotations

from pathlib import Path

import click

from klsa_search.cli.frame import debug_option
from klsa_search.cli.options import home_option, json_option
from klsa_search.cli.output import Column, echo, write_json, write_table


@click.command()
@click.argument("name", required=False)
@click.argument("index", required=False)
@click.option("--remove", is_flag=True, help="Remove the alias NAME; keep its index")
@home_option
@json_option
@debug_option
def alias(name: str | None, index: str | None, remove: bool, home: Path, as_json: bool) -> None:
    """Set the alias NAME to INDEX, or list all aliases.

    The change is atomic: requests for NAME use either the old or the new index.
    """
    from klsa_search.store.aliases import aliases_in, remove_alias, set_alias

    if remove != (name is not None and index is None):
        raise click.UsageError("give NAME and INDEX, or NAME and --remove, or no arguments")
    if name is not None and index is not None:
        set_alias(home, name, index)
    elif name is not None:
        remove_alias(home, name)
    found = aliases_in(home)
    if as_json:
        write_json([{"name": each, "index": target} for each, target in found.items()])
    elif name is not None:
        echo(f"{name} -> {index}" if index else f"removed alias {name}")
    elif found:
        write_table([Column("alias"), Column("index")], list(found.items()))
    else:
        echo(f"no aliases in {home}")
