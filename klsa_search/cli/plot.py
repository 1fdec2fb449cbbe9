"""klsa-index plot: figures of an index."""

from __future__ import annotations

from pathlib import Path

import click

from klsa_search.cli.frame import debug_option
from klsa_search.cli.options import FigurePath, home_option
from klsa_search.cli.output import echo, make_folders


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
    from klsa_search.mining.pictures import PICTURES
    from klsa_search.search.opening import open_index
    from klsa_search.store.names import index_path

    make_folders(path)
    index = open_index(index_path(home, name))
    try:
        PICTURES[what](index, path)
    finally:
        index.close()
    echo(f"{path}: {what} of {name}")
