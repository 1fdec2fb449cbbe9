"""klsa-index embed."""

from __future__ import annotations

from pathlib import Path

import click

from klsa_search.cli.main import debug_option
from klsa_search.cli.options import index_argument, memory_option
from klsa_search.cli.output import echo
from klsa_search.core.progress import progress_bar


@click.command()
@index_argument
@click.option(
    "--space", required=True, help="Name the vectors so, as in minilm; searches use the same name"
)
@click.option(
    "--embedder",
    metavar="MODEL",
    required=True,
    help="Compute them by onnx:FOLDER, sentence-transformers:FOLDER, openai:URL#MODEL (API key in "
    "KLSA_EMBEDDER_KEY) or python:MODULE:FUNCTION, which is imported",
)
@click.option(
    "--replace", is_flag=True, help="Compute all vectors again if they are by another model"
)
@memory_option
@debug_option
def embed(path: Path, space: str, embedder: str, replace: bool, memory: str | None) -> None:
    """Compute the vectors that documents of an index lack, and rebuild it with them.

    Searches and writes continue meanwhile. If the command is interrupted, another run continues
    where it was.
    """
    from klsa_search.indexing.embedding import embed as embed_index

    with progress_bar() as bar:
        done = embed_index(
            path,
            space=space,
            embedder=embedder,
            replace=replace,
            progress=bar,
            memory=memory,
        )
    index = done.index
    if done.documents:
        echo(f"{path.name}: embedded {done.documents:,} documents, generation {index.generation}")
    else:
        echo(f"{path.name}: all documents have vectors in `{space}`; nothing changed")
    index.close()
