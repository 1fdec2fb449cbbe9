"""klsa-index related, duplicates, cluster, plot."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from klsa_search.cli.main import debug_option
from klsa_search.cli.options import FigurePath, home_option, json_option
from klsa_search.cli.output import Column, echo, make_folders, write_json, write_table
from klsa_search.core.progress import progress_bar

if TYPE_CHECKING:
    from klsa_search.search.index import Index


@click.command()
@click.argument("name")
@click.argument("term")
@home_option
@click.option(
    "-k", type=click.IntRange(min=1), default=10, show_default=True, help="Show this many terms"
)
@click.option("--rule", is_flag=True, help="Print a rule for a file of klsa-index synonyms")
@json_option
@debug_option
def related(name: str, term: str, home: Path, k: int, rule: bool, as_json: bool) -> None:
    """Show the terms most related to TERM in the index NAME.

    TERM is one word or several, analysed like the documents, so any form of a word will do. Words
    that no document contains are ignored.
    """
    from klsa_search.mining.related_terms import related as related_terms

    if rule and as_json:
        raise click.UsageError("--rule and --json exclude each other: give one of them")
    related = related_terms(_open(home, name), term, k)
    if as_json:
        write_json([asdict(one) for one in related])
    elif not related:
        echo("no related terms found", err=rule)
    elif rule:
        words = " ".join(re.sub("=>|,", " ", term).split())  # without the syntax of rules
        echo(f"{words} => {', '.join(one.word for one in related)}")
    else:
        columns = [
            Column("word"),
            Column("similarity", right=True),
            Column("documents", right=True),
        ]
        rows = [(one.word, f"{one.similarity:.2f}", f"{one.documents:,}") for one in related]
        write_table(columns, rows)


@click.command()
@click.argument("name")
@home_option
@click.option(
    "--threshold",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.9,
    show_default=True,
    help="Set the minimum similarity to the first document of a group, from 0 to 1; 1 finds only "
    "copies",
)
@click.option(
    "--kernel",
    default="document",
    show_default=True,
    help="Compare by document (words), vectors:SPACE or sum:SPACE (words and vectors)",
)
@json_option
@debug_option
def duplicates(name: str, home: Path, threshold: float, kernel: str, as_json: bool) -> None:
    """List near-duplicate documents of the index NAME, in groups."""
    from klsa_search.mining.duplicates import duplicates as duplicate_groups

    with progress_bar() as bar:
        groups = duplicate_groups(_open(home, name), threshold, kernel=kernel, progress=bar)
    if as_json:
        write_json([asdict(group)["documents"] for group in groups])
    elif not groups:
        echo("no near-duplicates found")
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
@click.option(
    "-k", type=click.IntRange(min=1), default=20, show_default=True, help="Make this many clusters"
)
@click.option(
    "--kernel",
    default="latent",
    show_default=True,
    help="Compare by latent (words), vectors:SPACE or sum:SPACE (words and vectors)",
)
@json_option
@debug_option
def cluster(name: str, home: Path, k: int, kernel: str, as_json: bool) -> None:
    """Divide the documents of the index NAME into clusters.

    Each is named by its strongest terms.
    """
    from klsa_search.mining.clusters import cluster as cluster_documents

    clustering = cluster_documents(_open(home, name), k, kernel=kernel)
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
        without = "a vector" if kernel.startswith("vectors:") else "a known term"
        echo(f"{len(clustering.unplaced):,} documents without {without} are in no cluster")


def _open(home: Path, name: str) -> Index:
    from klsa_search.search.opening import open_index
    from klsa_search.storage.names import index_path

    return open_index(index_path(home, name))


@click.command()
@click.argument("name")
@home_option
@click.option(
    "--what",
    type=click.Choice(["spectrum", "map", "drift", "terms"]),
    required=True,
    help="Draw this",
)
@click.option(
    "--out",
    "path",
    type=FigurePath(),
    required=True,
    help="Write the figure to this file: .png, .svg or .pdf",
)
@debug_option
def plot(name: str, home: Path, what: str, path: Path) -> None:
    """Draw a figure of the index NAME.

    spectrum: its eigenvalues and the variance they explain. map: its documents in two dimensions,
    with the words of its clusters. drift: how far it has moved from its build. terms: the
    strongest terms of its first dimensions. Needs matplotlib: pip install 'klsa-search[figures]'.
    """
    from klsa_search.mining.figures import PICTURES

    make_folders(path)
    index = _open(home, name)
    try:
        PICTURES[what](index, path)
    finally:
        index.close()
    echo(f"{path}: {what} of {name}")
