"""klsa-search: search an index."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import click
from click.core import ParameterSource

from klsa_search.cli.main import Command, run
from klsa_search.cli.options import (
    FILE,
    embedder_option,
    home_option,
    json_option,
    settings_options,
    without_none,
)
from klsa_search.cli.output import echo, make_folders, write_json
from klsa_search.cli.search_output import as_dict, write_explanation, write_results
from klsa_search.core.parameters import ParsingSettings, QueryOptions, RankingSettings
from klsa_search.core.wording import counted
from klsa_search.embedding.options import embedders_of
from klsa_search.errors import IndexNotFound, SettingsError
from klsa_search.storage.names import index_path

if TYPE_CHECKING:
    from typing_extensions import TypeIs

    from klsa_search.client.blocking import RemoteIndex
    from klsa_search.collection.model import Topic
    from klsa_search.evaluation.measures import Ranking
    from klsa_search.search.index import Index

SEARCHES: Final = 100  # of one request of a batch, at most
_HITS: Final = 10_000  # of all searches of a request, at most
_WITHOUT_QUERY: Final = ("filter", "sort", "positive", "negative")
"""Options with which a blank query finds documents."""


@click.command(cls=Command)
@click.argument("name")
@click.argument("words", metavar="[QUERY]...", nargs=-1)
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
@click.option("-k", type=click.IntRange(min=1), default=10, help="Show this many hits")
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
    "--threads", type=click.IntRange(min=1), default=1, help="Search a batch with this many threads"
)
@click.option("--offset", type=click.IntRange(min=0), help="Skip this many hits  [default: 0]")
@settings_options(
    *(name for name in QueryOptions.model_fields if name != "vector"), model=QueryOptions
)
@click.option(
    "--reranker",
    metavar="MODEL",
    help="Use this reranker: python:MODULE:FUNCTION, which is imported. A service has its own",
)
@embedder_option
@click.option("--explain-id", metavar="ID", help="Explain the score of this document, found or not")
@settings_options(
    *ParsingSettings.model_fields, *RankingSettings.model_fields, default="the index's own"
)
@click.option(
    "--format",
    "row_format",
    type=click.Choice(["csv", "jsonl"]),
    help="Print all hits, or -k, as rows of CSV or lines of JSON",
)
@click.option(
    "--column",
    "columns",
    metavar="NAME",
    multiple=True,
    help="With --format, print this column: rank, id, score, title, snippet, text or a metadata "
    "field; repeatable  [default: all but text]",
)
@json_option
@click.version_option(package_name="klsa-search")
def klsa_search(
    name: str,
    words: tuple[str, ...],
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
    row_format: Literal["csv", "jsonl"] | None,
    columns: tuple[str, ...],
    **options: Any,
) -> None:
    """Search the index NAME for QUERY, or for a batch of queries.

    QUERY may be several arguments. Write -- before one that begins with a hyphen.
    With --url the index is searched at a running klsa-serve, with the same results.
    With --filter or --sort, a blank QUERY finds every document.
    """
    query = " ".join(words)
    if batch is not None and words:
        raise click.UsageError("give either QUERY or --batch FILE")
    if batch is None and not query.strip() and not any(map(options.get, _WITHOUT_QUERY)):
        raise click.UsageError(
            "QUERY is missing or blank; give the name of an index and words to search for, as in "
            "`klsa-search NAME garden hose`, or --filter or --sort to find every document"
        )
    if (batch is None) != (run_file is None):
        raise click.UsageError("--batch and --run must be given together")
    if as_json and batch is not None:
        raise click.UsageError("--json is for a single QUERY: a batch is written to --run")
    if row_format is not None and (as_json or batch is not None or explain_id is not None):
        raise click.UsageError("--format prints the hits of QUERY: leave out the other output")
    if columns and row_format is None:
        raise click.UsageError("--column needs --format csv or --format jsonl")
    of_rankings = ParsingSettings.model_fields.keys() | RankingSettings.model_fields.keys()
    only_search = sorted(without_none(options).keys() - of_rankings)
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
    index = _open_local(home, name, models) if url is None else _open_remote(url, key, name)
    options = without_none(options)
    if batch is not None and run_file is not None:
        _run_batch(index, batch, run_file, record_file, k, threads, options)
        return
    if row_format is not None:
        source = click.get_current_context().get_parameter_source("k")
        limit = None if source is ParameterSource.DEFAULT else k
        searched: Any = index  # with one method of the same name here and there
        for piece in searched.export(query, columns, format=row_format, limit=limit, **options):
            sys.stdout.buffer.write(piece)
        return
    if explain_id is not None:
        facts, explanation = _answered(index, "explain", query, explain_id, options)
        if as_json:
            write_json({**facts, **asdict(explanation)})
        else:
            write_explanation(explanation)
        return
    facts, results = _answered(index, "search", query, k, options)
    if as_json:
        write_json({**facts, **as_dict(results)})
    else:
        write_results(results, options.get("sort") or ())


def _open_local(home: Path, name: str, models: Mapping[str, Any]) -> Index:
    from klsa_search.search.index import list_indexes, open_index

    try:
        return open_index(index_path(home, name), **models)
    except IndexNotFound as error:
        names = list_indexes(home)
        if not names or name in names:
            raise
        raise IndexNotFound(
            f"{error.message}, or name one that exists before the words: {', '.join(names[:5])}"
        ) from None


def _open_remote(url: str, key: str | None, name: str) -> RemoteIndex:
    """Return an index of a service; UsageError for options of the index directory."""
    source = click.get_current_context().get_parameter_source
    for option in ("home", "threads", "embedders", "reranker"):
        if source(option) is ParameterSource.COMMANDLINE:
            flag = option.removesuffix("s") if option == "embedders" else option
            raise click.UsageError(f"--{flag} and --url exclude each other: give one of them")
    from klsa_search.client.blocking import Client

    try:
        return Client(url, key=key).index(name)
    except SettingsError as error:
        raise click.UsageError(f"--{error.field}: {error.message}") from None


def _answered(
    index: Index | RemoteIndex, method: str, query: str, which: object, options: Mapping[str, Any]
) -> tuple[dict[str, str], Any]:
    """Return name and generation of the index, for JSON, and what a method of it returns."""
    if not _is_remote(index):
        facts = {"index": index.name, "generation": index.generation}
        return facts, getattr(index, method)(query, which, **options)
    from klsa_search.client.calls import IndexCalls

    call = getattr(IndexCalls(index.name), method)(query, which, **options)

    def read(answer: Any) -> tuple[dict[str, str], Any]:
        return {name: answer[name] for name in ("index", "generation")}, call.read(answer)

    answered: tuple[dict[str, str], Any] = index.send(replace(call, read=read))
    return answered


def _is_remote(index: Index | RemoteIndex) -> TypeIs[RemoteIndex]:
    return hasattr(index, "send")


def _rankings(
    index: Index | RemoteIndex,
    queries: Sequence[Topic],
    k: int,
    threads: int,
    options: Mapping[str, Any],
) -> Iterator[Ranking]:
    """Yield the ranking of each query; of a service, with many queries in a request."""
    from klsa_search.evaluation.measures import Ranking, rank_best

    if not _is_remote(index):
        yield from rank_best(index, queries, k, threads=threads, **options)
        return
    import numpy as np

    from klsa_search.client.calls import search_body
    from klsa_search.client.protocol import Call
    from klsa_search.search.query.query import Query

    size = min(SEARCHES, max(1, _HITS // k))
    for begin in range(0, len(queries), size):
        batch = queries[begin : begin + size]
        bodies = [
            search_body(index.name, Query(query.text, k, rules=False, **options)) | {"fields": []}
            for query in batch
        ]
        answers = index.send(Call("POST", "/multi-search", _hits_of_queries, {"queries": bodies}))
        for query, hits in zip(batch, answers, strict=True):
            scores = np.array([score for _, score in hits], np.float64)
            yield Ranking(query.id, tuple(id_ for id_, _ in hits), scores)


def _hits_of_queries(answer: Any) -> list[list[tuple[str, float]]]:
    return [[(hit["id"], hit["score"]) for hit in result["hits"]] for result in answer["results"]]


def _run_batch(
    index: Index | RemoteIndex,
    batch: Path,
    run_file: Path,
    record: Path | None,
    k: int,
    threads: int,
    options: dict[str, Any],
) -> None:
    """Write the hits of all queries to a run file, and to `record` how they were made, if given."""
    from klsa_search.collection.queries import read_query_lines
    from klsa_search.evaluation.measures import recorded

    make_folders(run_file, record)
    if record is not None and not _is_remote(index):
        from klsa_search.evaluation.run_records import record_run, write_record

        run_record = record_run(index, batch, run_file, k, threads=threads, **options)
        write_record(run_record, record)
        counts = run_record.run
        echo(f"{_counts(counts.queries, counts.hits)}: {run_file}, {record}")
        return
    queries = read_query_lines(batch)
    ranker = options.get("ranker")
    if not ranker:
        settings = index.info().settings if _is_remote(index) else index.settings.model_dump()
        ranker = (settings or {})["ranker"]
    run_ = recorded(_rankings(index, queries, k, threads, options), run_file, tag=str(ranker))
    hits = sum(len(answer.document_ids) for answer in run_)
    echo(f"{_counts(len(queries), hits)}: {run_file}")


def _counts(queries: int, hits: int) -> str:
    return f"{counted(queries, 'query', 'queries')}, {counted(hits, 'hit')}"


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


main = partial(run, klsa_search)
