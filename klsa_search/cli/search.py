"""klsa-search: search an index."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

from klsa_search.cli.main import debug_option, run
from klsa_search.cli.options import (
    FILE,
    embedder_option,
    home_option,
    json_option,
    settings_options,
    without_none,
)
from klsa_search.cli.output import echo, make_folders, write_json
from klsa_search.cli.search_output import write_explanation, write_results, write_results_json
from klsa_search.core.config import LanguageSettings, SearchSettings
from klsa_search.embedding.opening import embedders_of

if TYPE_CHECKING:
    from klsa_search.cli.remote import RemoteIndex
    from klsa_search.collection.model import Topic
    from klsa_search.evaluation.measures import Ranking
    from klsa_search.evaluation.replay import RunRecord
    from klsa_search.search.explain.explanation import Explanation
    from klsa_search.search.pages.results import SearchResults


class LocalIndex:
    """The index `name` of an index directory; batches run in `threads` threads."""

    def __init__(self, home: Path, name: str, threads: int, models: Mapping[str, Any]) -> None:
        from klsa_search.search.opening import open_index
        from klsa_search.storage.names import index_path

        self._index = open_index(index_path(home, name), **models)
        self._threads = threads

    def search(
        self, query: str, k: int, options: Mapping[str, Any]
    ) -> tuple[str, str, SearchResults]:
        """Return name, generation and results: see `Index.search`."""
        results = self._index.search(query, k, **options)
        return self._index.name, self._index.generation, results

    def explain(
        self, query: str, id_: str, options: Mapping[str, Any]
    ) -> tuple[str, str, Explanation]:
        """Return name, generation and explanation: see `Index.explain`."""
        explanation = self._index.explain(query, id_, **options)
        return self._index.name, self._index.generation, explanation

    def ranker(self, options: Mapping[str, Any]) -> str:
        """Return the name of the ranker for these options."""
        return options.get("ranker") or self._index.settings.ranker

    def rankings(
        self, queries: Sequence[Topic], k: int, options: Mapping[str, Any]
    ) -> Iterator[Ranking]:
        """Yield the ranking of each query, some thousand in memory at a time."""
        from klsa_search.evaluation.measures import rank_best

        return rank_best(self._index, queries, k, threads=self._threads, **options)

    def record(self, queries: Path, run: Path, k: int, options: Mapping[str, Any]) -> RunRecord:
        """Write the run of a file of queries, and return its record."""
        from klsa_search.evaluation.replay import record_run

        return record_run(self._index, queries, run, k, threads=self._threads, **options)


_SEARCH_ONLY: Final = {"offset", "filter", "sort", "facets", "distinct", "min_score"} | {
    "highlight",
    "snippet_length",
    "prefix",
    "quality",
    "rules",
    "explain",
    "group",
    "max_tokens",
    "rerank",
}
"""Options that only `Index.search` has."""


@click.command()
@click.argument("name")
@click.argument("query", required=False)
@home_option
@click.option(
    "--url",
    help="Search at this service, as in http://127.0.0.1:8000, instead of the index directory",
)
@click.option(
    "--key",
    envvar="KLSA_KEY",
    show_envvar=True,
    help="Send this API key to the service. Prefer the variable: command lines are visible to "
    "other users",
)
@click.option(
    "-k", type=click.IntRange(min=1), default=10, show_default=True, help="Show this many hits"
)
@click.option(
    "--batch",
    type=FILE,
    help="Search for all queries of this file: lines of an ID, a tab and a text. Needs --run",
)
@click.option(
    "--run",
    "run_file",
    type=FILE,
    help="Write the hits of a batch to this file, in TREC run format",
)
@click.option(
    "--record",
    "record_file",
    type=FILE,
    help="Write a record to this file, from which klsa-eval replay reproduces the run",
)
@click.option(
    "--threads",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Search a batch with this many threads",
)
@click.option("--offset", type=click.IntRange(min=0), help="Skip this many hits  [default: 0]")
@click.option(
    "--filter",
    metavar="FILTER",
    help="Keep only documents whose metadata match, as in 'year >= 2020 AND kind != draft'",
)
@click.option(
    "--sort",
    metavar="FIELD[:desc]",
    multiple=True,
    help="Sort by this metadata field instead of by score; repeatable",
)
@click.option(
    "--facet",
    "facets",
    metavar="FIELD",
    multiple=True,
    help="Count the values of this metadata field over all matches; repeatable",
)
@click.option(
    "--distinct", metavar="FIELD", help="Return only the best document of each value of this field"
)
@click.option("--min-score", type=float, help="Keep only documents with at least this score")
@click.option(
    "--highlight",
    is_flag=True,
    default=None,
    help="Highlight the words of the query, on a terminal",
)
@click.option(
    "--snippet-length", type=click.IntRange(1), help="Limit snippets to this many characters"
)
@click.option(
    "--prefix",
    type=click.Choice(["last"]),
    help="Search for completions of the last word of QUERY, too",
)
@click.option(
    "--quality", is_flag=True, default=None, help="Show how good a match each hit is, from 0 to 1"
)
@click.option(
    "--rules/--no-rules", default=None, help="Apply the rules of the index  [default: rules]"
)
@click.option(
    "--group",
    type=click.Choice(["document", "passage"]),
    help="Show documents, or passages of long documents with their texts  [default: document]",
)
@click.option(
    "--max-tokens",
    type=click.IntRange(min=1),
    help="With --group passage, show the best passages that fit into this number of tokens",
)
@click.option(
    "--rerank",
    type=click.IntRange(min=1),
    help="Order this many of the first hits by the reranker",
)
@click.option(
    "--reranker",
    metavar="MODEL",
    help="Use this reranker: python:MODULE:FUNCTION, which is imported. A service has its own",
)
@embedder_option
@click.option("--explain", is_flag=True, default=None, help="Explain each score")
@click.option("--explain-id", metavar="ID", help="Explain the score of this document, found or not")
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
    url: str | None,
    key: str | None,
    k: int,
    batch: Path | None,
    run_file: Path | None,
    record_file: Path | None,
    threads: int,
    as_json: bool,
    embedders: tuple[str, ...],
    reranker: str | None,
    explain_id: str | None,
    **options: Any,
) -> None:
    """Search the index NAME for QUERY, or for a batch of queries.

    With --url the index is searched at a running klsa-serve, with the same results.
    With --filter or --sort, a blank QUERY finds every document.
    """
    options = {name: value for name, value in options.items() if value != ()}
    if (batch is None) == (query is None):
        raise click.UsageError("give either QUERY or --batch FILE")
    if (batch is None) != (run_file is None):
        raise click.UsageError("--batch and --run must be given together")
    if as_json and batch is not None:
        raise click.UsageError("--json is for a single QUERY: a batch is written to --run")
    only_search = sorted(_SEARCH_ONLY & without_none(options).keys())
    if explain_id is not None and (batch is not None or only_search):
        raise click.UsageError(
            "--explain-id takes only QUERY and ranking options; leave out the others"
        )
    if batch is not None and only_search:
        raise click.UsageError(
            f"--{only_search[0].replace('_', '-')} applies to QUERY, not to --batch: leave it out"
        )
    if record_file is not None:
        _check_record(record_file, batch, run_file, url)
        if embedders:
            raise click.UsageError(
                "--record and --embedder exclude each other: a record does not contain the model"
            )
    models = {"embedders": embedders_of(embedders), "reranker": reranker}
    index = _open(url, key, home, name, threads, models)
    if batch is not None and run_file is not None:
        if record_file is not None and isinstance(index, LocalIndex):
            _record_batch(index, batch, run_file, record_file, k, without_none(options))
            return
        _run_batch(index, batch, run_file, k, without_none(options))
        return
    assert query is not None
    if explain_id is not None:
        index_name, generation, explanation = index.explain(
            query, explain_id, without_none(options)
        )
        if as_json:
            write_json({"index": index_name, "generation": generation, **asdict(explanation)})
        else:
            write_explanation(explanation)
        return
    index_name, generation, results = index.search(query, k, without_none(options))
    if as_json:
        write_results_json(index_name, generation, results)
    else:
        write_results(results)


def _open(
    url: str | None, key: str | None, home: Path, name: str, threads: int, models: Mapping[str, Any]
) -> LocalIndex | RemoteIndex:
    """Open a local index, or one of a service."""
    if url is None:
        return LocalIndex(home, name, threads, models)
    source = click.get_current_context().get_parameter_source
    for option in ("home", "threads", "embedders", "reranker"):
        if source(option) is ParameterSource.COMMANDLINE:
            flag = option.removesuffix("s") if option == "embedders" else option
            raise click.UsageError(f"--{flag} and --url exclude each other: give one of them")
    from klsa_search.cli.remote import RemoteIndex

    return RemoteIndex(url, name, key)


def _run_batch(
    index: LocalIndex | RemoteIndex, batch: Path, run_file: Path, k: int, options: dict[str, Any]
) -> None:
    """Write the hits of every query to a run file."""
    from klsa_search.collection.queries import read_query_lines
    from klsa_search.evaluation.measures import recorded

    queries = read_query_lines(batch)
    make_folders(run_file)
    run_ = recorded(index.rankings(queries, k, options), run_file, tag=index.ranker(options))
    hits = sum(len(answer.document_ids) for answer in run_)
    echo(f"{len(queries):,} queries, {hits:,} hits: {run_file}")


def _check_record(record: Path, batch: Path | None, run_file: Path | None, url: str | None) -> None:
    """Raise UsageError if the run cannot be recorded, or the record would replace another file."""
    if batch is None or run_file is None:
        raise click.UsageError("--record needs --batch and --run")
    if url is not None:
        raise click.UsageError(
            "--record and --url exclude each other: record a run of a local index"
        )
    if run_file.exists() and not run_file.is_file():
        raise click.UsageError(f"--record needs a regular file for --run: `{run_file}` is not one")
    if record.resolve() in (batch.resolve(), run_file.resolve()):
        raise click.UsageError("--record must be another file than --batch and --run")


def _record_batch(
    index: LocalIndex, batch: Path, run_file: Path, record: Path, k: int, options: dict[str, Any]
) -> None:
    """Write the hits of every query to a run file, and a record of it."""
    from klsa_search.evaluation.replay import write_record

    make_folders(run_file, record)
    recorded = index.record(batch, run_file, k, options)
    write_record(recorded, record)
    echo(f"{recorded.run.queries:,} queries, {recorded.run.hits:,} hits: {run_file}, {record}")


def main() -> None:
    """Run klsa-search."""
    run(klsa_search)
