"""klsa-index: build indexes and look after them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from klsa_search.cli.analyze import analyze
from klsa_search.cli.facts import facts_for_people, facts_for_programs
from klsa_search.cli.frame import debug_option, run
from klsa_search.cli.mine import cluster, duplicates, related
from klsa_search.cli.options import (
    chosen_settings,
    collections_homes,
    config_option,
    data_option,
    home_option,
    json_option,
    memory_option,
    preset_option,
    settings_options,
    source_options,
)
from klsa_search.cli.output import progress_bar, write_facts, write_json
from klsa_search.cli.plan import plan
from klsa_search.cli.tune import tune
from klsa_search.cli.upkeep import delete, info, list_, rollback, verify


@click.group()
@click.version_option(package_name="klsa-search")
def klsa_index() -> None:
    """Build indexes and look after them."""


for command in (
    analyze,
    cluster,
    delete,
    duplicates,
    info,
    list_,
    plan,
    related,
    rollback,
    tune,
    verify,
):
    klsa_index.add_command(command)


def main() -> None:
    """Run klsa-index."""
    run(klsa_index)


@klsa_index.command()
@click.argument("source")
@click.option("--name", required=True, help="Name of the index below the home.")
@home_option
@data_option
@config_option
@preset_option
@source_options
@memory_option
@settings_options()
@json_option
@debug_option
def build(
    source: str,
    name: str,
    home: Path,
    data: Path | None,
    config: Path | None,
    format_: str | None,
    on_error: str,
    memory: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Turn SOURCE into an index.

    SOURCE is a file or a folder, the name of a collection (cran, cisi, cacm, med), or python-docs.
    An index of that name is replaced when the new one is whole; until then it goes on serving.
    """
    settings = chosen_settings(config, options)
    from klsa_search.collection import open_collection
    from klsa_search.indexing import build as build_index

    collection = open_collection(
        source, format=format_, on_error=on_error, data=collections_homes(data)
    )
    with progress_bar() as bar:
        index = build_index(
            collection, name=name, home=home, progress=bar, memory=memory, **settings
        )
    if not len(index):
        click.echo(f"warning: {source} holds no document, so {name} finds nothing", err=True)
    problems = collection.problems
    with_reasons = {"skipped": {"count": problems.count, "first": problems.reasons}}
    if as_json:
        write_json(facts_for_programs(index.name, index.manifest) | with_reasons)
        return
    write_facts(facts_for_people(index.name, index.manifest))
    if problems.count:
        click.echo(f"skipped {problems.count:,} bad records; the first reasons:", err=True)
        for reason in problems.reasons:
            click.echo(f"  {reason}", err=True)
