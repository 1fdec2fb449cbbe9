"""klsa-index related, duplicates, cluster, plot."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from klsa_search.cli.main import klsa_index
from klsa_search.cli.options import FILE, json_option, opened_index
from klsa_search.cli.output import (
    Columns,
    echo,
    make_folders,
    numbers,
    wrapped,
    write_json,
    write_list,
    write_table,
)
from klsa_search.core.progress import progress_bar
from klsa_search.core.wording import counted

if TYPE_CHECKING:
    from klsa_search.search.index import Index


@klsa_index.command()
@opened_index
@click.argument("term")
@click.option("-k", type=click.IntRange(min=1), default=10, help="Show this many terms")
@click.option("--rule", is_flag=True, help="Print a rule for a file of klsa-index synonyms")
@json_option
def related(index: Index, term: str, k: int, rule: bool, as_json: bool) -> None:
    """Show the terms most related to TERM in the index NAME.

    TERM is one or more words in any form. Words that no document contains are ignored.
    """
    from klsa_search.mining.related_terms import related as related_terms

    if rule and as_json:
        raise click.UsageError("--rule and --json exclude each other: give one of them")
    related = related_terms(index, term, k)
    nothing = "no related terms found"
    if rule:
        words = " ".join(re.sub("=>|,", " ", term).split())  # without the syntax of rules
        synonyms = ", ".join(one.word for one in related)
        echo(f"{words} => {synonyms}" if related else nothing, err=not related)
        return
    rows = [(one.word, f"{one.similarity:.2f}", f"{one.documents:,}") for one in related]
    columns: Columns = ["word", *numbers("similarity", "documents")]
    write_list(as_json, [asdict(one) for one in related], columns, rows, nothing)


@klsa_index.command()
@opened_index
@click.option(
    "--threshold",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.9,
    help="Set the minimum similarity to the first document of a group, from 0 to 1; 1 finds only "
    "copies",
)
@click.option(
    "--kernel",
    default="document",
    help="Compare by document (words), vectors:SPACE or sum:SPACE (words and vectors)",
)
@json_option
def duplicates(index: Index, threshold: float, kernel: str, as_json: bool) -> None:
    """List near-duplicate documents of the index NAME, in groups."""
    from klsa_search.mining.duplicates import duplicates as duplicate_groups

    with progress_bar() as bar:
        groups = duplicate_groups(index, threshold, kernel=kernel, progress=bar)
    rows = [
        (str(number), f"{one.similarity:.3f}", one.id, one.title)
        for number, group in enumerate(groups, start=1)
        for one in group.documents
    ]
    columns: Columns = [*numbers("group", "similarity"), "id", *wrapped("title")]
    facts = [asdict(group)["documents"] for group in groups]
    write_list(as_json, facts, columns, rows, "no near-duplicates found")


@klsa_index.command()
@opened_index
@click.option("-k", type=click.IntRange(min=1), default=20, help="Make this many clusters")
@click.option(
    "--kernel",
    default="latent",
    help="Compare by latent (words), vectors:SPACE or sum:SPACE (words and vectors)",
)
@json_option
def cluster(index: Index, k: int, kernel: str, as_json: bool) -> None:
    """Divide the documents of the index NAME into clusters.

    Each is named by its strongest terms.
    """
    from klsa_search.mining.clusters import cluster as cluster_documents

    clustering = cluster_documents(index, k, kernel=kernel)
    if as_json:
        write_json(asdict(clustering))
        return
    rows = [
        (f"{one.size:,}", ", ".join(one.words), one.central[0], one.titles[0])
        for one in clustering.clusters
    ]
    write_table([*numbers("documents"), *wrapped("words"), "central", *wrapped("title")], rows)
    if clustering.unplaced:
        without = "a vector" if kernel.startswith("vectors:") else "a known term"
        echo(f"in no cluster: {counted(len(clustering.unplaced), 'document')} without {without}")


@klsa_index.command()
@opened_index
@click.option("--what", type=click.Choice(["spectrum", "map"]), required=True, help="Draw this")
@click.option(
    "--out",
    type=FILE,
    required=True,
    help="Write the figure to this file: .png, .svg or .pdf",
)
def plot(index: Index, what: str, out: Path) -> None:
    """Draw a figure of the index NAME.

    spectrum: its eigenvalues and the variance they explain. map: its documents in two dimensions,
    with the words of its clusters. Needs matplotlib: pip install 'klsa-search[figures]'.
    """
    from klsa_search.mining.plots import PICTURES

    make_folders(out)
    PICTURES[what](index, out)
    echo(f"{out}: {what} of {index.name}")
