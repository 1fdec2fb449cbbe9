"""klsa-search: ask an index."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from klsa_search.cli.frame import debug_option, run
from klsa_search.cli.options import given, home_option, json_option, settings_options
from klsa_search.cli.output import Column, write_json, write_table


@click.command()
@click.argument("name")
@click.argument("query")
@home_option
@click.option("-k", type=click.IntRange(min=1), default=10, show_default=True, help="Hits to show.")
@settings_options(
    *("ranker", "alpha", "z", "sharpness", "spectral", "gamma", "head", "dimensions"),
    default="the index's own",
)
@json_option
@debug_option
@click.version_option(package_name="klsa-search")
def klsa_search(name: str, query: str, home: Path, k: int, as_json: bool, **options: Any) -> None:
    """Ask the index NAME for the documents that fit QUERY best."""
    from klsa_search.search import open_index
    from klsa_search.store import index_path

    index = open_index(index_path(home, name))
    results = index.search(query, k, **given(options))
    if as_json:
        write_json({"index": index.name, "generation": index.generation, **asdict(results)})
    elif not results.hits:
        click.echo("no document matches")
    else:
        columns = [
            Column("rank", right=True),
            Column("id"),
            Column("score", right=True),
            Column("title", wraps=True),
            Column("snippet", wraps=True),
        ]
        rows = [(str(h.rank), h.id, f"{h.score:.4f}", h.title, h.snippet) for h in results]
        write_table(columns, rows)


def main() -> None:
    """Run klsa-search."""
    run(klsa_search)
