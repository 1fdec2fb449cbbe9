"""klsa-index related | duplicates | cluster: what an index knows beside answers to queries."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from klsa_search.bars import progress_bar
from klsa_search.cli.frame import debug_option
from klsa_search.cli.options import home_option, json_option
from klsa_search.cli.output import Column, echo, write_json, write_table

if TYPE_CHECKING:
    from klsa_search.search import Index


@click.command()
@click.argument("name")
@click.argument("term")
@home_option
@click.option(
    "-k", type=click.IntRange(min=1), default=10, show_default=True, help="Terms to show."
)
@click.option("--rule", is_flag=True, help="As a line of a file for klsa-index synonyms.")
@json_option
@debug_option
def related(name: str, term: str, home: Path, k: int, rule: bool, as_json: bool) -> None:
    """Show the terms nearest to TERM, a word or several, in the index NAME.

    Words in any form: they are analysed as the documents are. Of several, those that no document
    holds are passed over.
    """
    from klsa_search.mining import related as related_terms

    if rule and as_json:
        raise click.UsageError("--rule and --json are two forms of one answer: give one of them")
    found = related_terms(_opened(home, name), term, k)
    if as_json:
        write_json([asdict(one) for one in found])
    elif not found:
        echo("no other term is near it", err=rule)
    elif rule:
        asked = " ".join(re.sub("=>|,", " ", term).split())  # the signs of a rule are no words
        echo(f"{asked} => {', '.join(one.word for one in found)}")
    else:
        columns = [
            Column("word"),
            Column("similarity", right=True),
            Column("documents", right=True),
        ]
        rows = [(one.word, f"{one.similarity:.2f}", f"{one.documents:,}") for one in found]
        write_table(columns, rows)


@click.command()
@click.argument("name")
@home_option
@click.option(
    "--threshold",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.9,
    show_default=True,
    help="Least similarity to the first of a group; 1 for copies alone.",
)
@json_option
@debug_option
def duplicates(name: str, home: Path, threshold: float, as_json: bool) -> None:
    """List the documents of the index NAME that nearly repeat another, in groups."""
    from klsa_search.mining import duplicates as duplicate_groups

    with progress_bar() as bar:
        groups = duplicate_groups(_opened(home, name), threshold, progress=bar)
    if as_json:
        write_json([asdict(group)["documents"] for group in groups])
    elif not groups:
        echo("no document repeats another")
    else:
        columns = [
            Column("group", right=True),
            Column("similarity", right=True),
            Column("id"),
            Column("title", wraps=True),
        ]
        rows = [
            (str(number), f"{one.similarity:.3f}", one.id, one.title)
            for number, group in enumerate(groups, start=1)
            for one in group.documents
        ]
        write_table(columns, rows)


@click.command()
@click.argument("name")
@home_option
@click.option("-k", type=click.IntRange(min=1), default=20, show_default=True, help="Clusters.")
@json_option
@debug_option
def cluster(name: str, home: Path, k: int, as_json: bool) -> None:
    """Divide the documents of the index NAME into clusters, named by their strongest terms."""
    from klsa_search.mining import cluster as divided

    clustering = divided(_opened(home, name), k)
    if as_json:
        write_json(asdict(clustering))
        return
    columns = [
        Column("documents", right=True),
        Column("words", wraps=True),
        Column("central"),
        Column("title", wraps=True),
    ]
    rows = [
        (f"{one.size:,}", ", ".join(one.words), one.central[0], one.titles[0])
        for one in clustering.clusters
    ]
    write_table(columns, rows)
    if clustering.unplaced:
        echo(f"{len(clustering.unplaced):,} documents without a known term are in none")


def _opened(home: Path, name: str) -> Index:
    from klsa_search.search import open_index
    from klsa_search.store import index_path

    return open_index(index_path(home, name))
