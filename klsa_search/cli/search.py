"""klsa-search: ask an index."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from klsa_search.cli.beside import MODULE
from klsa_search.cli.explaining import write_explanation
from klsa_search.cli.frame import debug_option, run
from klsa_search.cli.options import given, home_option, json_option, settings_options
from klsa_search.cli.output import Cell, Column, Marked, make_folders, write_json, write_table
from klsa_search.config import LanguageSettings, SearchSettings

if TYPE_CHECKING:
    from klsa_search.search import Hit, Index, Results

_AT_ONCE: Final = 4096
"""Queries of a batch that are in memory with their hits."""

_FEW: Final = 100
"""Hits up to which the slower ways answer before numba is loaded."""

_WISHES: Final = {"offset", "filter", "sort", "facets", "distinct", "min_score"} | {
    "highlight",
    "snippet_length",
    "quality",
    "explain",
}
"""Options that only `Index.search` has."""


@click.command()
@click.argument("name")
@click.argument("query", required=False)
@home_option
@click.option("-k", type=click.IntRange(min=1), default=10, show_default=True, help="Hits to show.")
@click.option(
    "--batch",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Ask all queries of this file: lines of an id, a tab and a text. Needs --run.",
)
@click.option(
    "--run",
    "run_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File that a batch writes its hits to, in TREC's format.",
)
@click.option(
    "--threads",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Threads that work on a batch.",
)
@click.option("--offset", type=click.IntRange(min=0), help="Hits to pass over.  [default: 0]")
@click.option(
    "--filter",
    metavar="FILTER",
    help="What the metadata must be, as in 'year >= 2020 AND kind != draft'.",
)
@click.option(
    "--sort",
    metavar="FIELD[:desc]",
    multiple=True,
    help="Metadata field to sort by instead of by score; once for each.",
)
@click.option(
    "--facet",
    "facets",
    metavar="FIELD",
    multiple=True,
    help="Metadata field whose values are counted in all that is found; once for each.",
)
@click.option("--distinct", metavar="FIELD", help="Answer each value of this field once.")
@click.option("--min-score", type=float, help="Least score of what is found.")
@click.option(
    "--highlight", is_flag=True, default=None, help="Mark the words of the query, on a terminal."
)
@click.option("--snippet-length", type=click.IntRange(1), help="Characters of a snippet.")
@click.option("--quality", is_flag=True, default=None, help="Tell how good a match each hit is.")
@click.option("--explain", is_flag=True, default=None, help="Tell how each score came about.")
@click.option("--explain-id", metavar="ID", help="Tell it of this document, found or not.")
@settings_options(
    *LanguageSettings.model_fields,
    *SearchSettings.model_fields,
    "dimensions",
    default="the index's own",
)
@json_option
@debug_option
@click.version_option(package_name="klsa-search")
def klsa_search(
    name: str,
    query: str | None,
    home: Path,
    k: int,
    batch: Path | None,
    run_file: Path | None,
    threads: int,
    as_json: bool,
    explain_id: str | None,
    **options: Any,
) -> None:
    """Ask the index NAME for the documents that fit QUERY best, or a batch of queries.

    With a filter or --sort, a blank QUERY finds every document.
    """
    options = {name: value for name, value in options.items() if value != ()}
    if (batch is None) == (query is None):
        raise click.UsageError("give a QUERY, or --batch with a file of them, and not both")
    if (batch is None) != (run_file is None):
        raise click.UsageError("--batch and --run go together: where from, and where to")
    if as_json and batch is not None:
        raise click.UsageError("--json shows one answer: a batch is written to --run")
    wished = sorted(_WISHES & given(options).keys())
    if explain_id is not None and (batch is not None or wished):
        raise click.UsageError("--explain-id goes with a QUERY and how to rank, and nothing else")
    if batch is not None and wished:
        raise click.UsageError(f"--{wished[0].replace('_', '-')} goes with a QUERY, not a --batch")
    from klsa_search.compiled.beside import compile_beside, do_without
    from klsa_search.search import open_index
    from klsa_search.store import index_path

    index = open_index(index_path(home, name))
    if batch is not None and run_file is not None:
        _run_batch(index, batch, run_file, k, threads, given(options))
    else:
        assert query is not None
        if k <= _FEW:
            do_without()
        else:
            compile_beside(MODULE)
        if explain_id is not None:
            _explain(index, query, explain_id, as_json, given(options))
            return
        _show(index, query, k, as_json, given(options))


def _run_batch(
    index: Index, batch: Path, run_file: Path, k: int, threads: int, options: dict[str, Any]
) -> None:
    """Write the hits of every query to a run file, some thousand queries in memory at a time."""
    from klsa_search.collection.query_lines import read_query_lines
    from klsa_search.evaluation import Ranking, recorded
    from klsa_search.search.batch import ids_by_position

    queries = read_query_lines(batch)
    ids = ids_by_position(index)

    def rankings() -> Iterator[Ranking]:
        for begin in range(0, len(queries), _AT_ONCE):
            some = queries[begin : begin + _AT_ONCE]
            texts = [query.text for query in some]
            answers = index.rank_many(texts, k, threads=threads, **options)
            for query, (positions, scores) in zip(some, answers, strict=True):
                yield Ranking(query.id, tuple(ids[positions]), scores)

    make_folders(run_file)
    hits = sum(len(answer.document_ids) for answer in recorded(rankings(), run_file, index.name))
    click.echo(f"{len(queries):,} queries, {hits:,} hits: {run_file}")


def _show(index: Index, query: str, k: int, as_json: bool, options: dict[str, Any]) -> None:
    results = index.search(query, k, **options)
    if as_json:
        write_json({"index": index.name, "generation": index.generation, **_told(results)})
        return
    understood = results.understood
    for word, right in understood.corrections.items():
        said = "did you mean" if word in understood.unknown else "no document has it; asked for"
        click.echo(f"{word}: {said} {right}", err=True)
    if not results.hits:
        click.echo("no document matches")
    else:
        columns = [
            Column("rank", right=True),
            Column("id"),
            Column("score", right=True),
            *([] if results.quality is None else [Column("quality", right=True)]),
            Column("title", wraps=True),
            Column("snippet", wraps=True),
        ]
        rows = [
            (str(hit.rank), hit.id, f"{hit.score:.4f}", *_qualities(hit), *_texts(hit))
            for hit in results
        ]
        write_table(columns, rows)
        if results.fits is False:
            click.echo("nothing here fits well")
        for hit in results:
            if hit.explanation is not None:
                click.echo()
                write_explanation(hit.explanation)
    for name, facet in ({} if as_json else results.facets).items():
        click.echo()
        counts = [(str(value), str(count)) for value, count in facet.values]
        write_table([Column(name, wraps=True), Column("documents", right=True)], counts)


def _qualities(hit: Hit) -> tuple[str, ...]:
    return () if hit.quality is None else (f"{hit.quality:.2f}",)


def _texts(hit: Hit) -> tuple[Cell, Cell]:
    """Title and snippet, with marks where there are any."""
    if hit.highlight is None:
        return hit.title, hit.snippet
    title, snippet = (hit.highlight[name] for name in ("title", "snippet"))
    return Marked(title.text, title.marks), Marked(snippet.text, snippet.marks)


def _told(results: Results) -> dict[str, Any]:
    """What a search found, without what was not asked for."""
    told = asdict(results)
    for hit in told["hits"]:
        for name in ("explanation", "highlight", "quality"):
            if hit[name] is None:
                del hit[name]
    if told["quality"] is None:
        del told["quality"]
    else:
        told["fits"] = results.fits
    return told


def _explain(
    index: Index, query: str, explain_id: str, as_json: bool, options: dict[str, Any]
) -> None:
    found = index.explain(query, explain_id, **options)
    if as_json:
        write_json({"index": index.name, "generation": index.generation, **asdict(found)})
    else:
        write_explanation(found)


def main() -> None:
    """Run klsa-search."""
    run(klsa_search)
