"""klsa-eval forecast: which queries of a file an index is likely to answer badly."""

from __future__ import annotations

from pathlib import Path

import click

from klsa_search.cli.frame import debug_option
from klsa_search.cli.options import home_option, json_file_option
from klsa_search.cli.output import Column, make_folders, write_json_file, write_table


@click.command()
@click.argument("name")
@click.argument("queries", type=click.Path(path_type=Path, dir_okay=False))
@home_option
@json_file_option
@debug_option
def forecast(name: str, queries: Path, home: Path, json_file: Path | None) -> None:
    """Predict which queries are difficult for the index NAME.

    The most difficult come first. QUERIES is a file of lines of an ID, a tab and a text. No
    judgements are needed.

    The predictor is the weighted information gain (WIG): how far the best BM25 scores stand above
    the collection's. It ranks these queries among each other; it is not a probability and not
    comparable across indexes. Of two queries it identifies the harder one in 56% to 74% of cases,
    depending on the collection (docs/guides/judge-results.md).
    """
    from klsa_search.collection.query_lines import read_query_lines
    from klsa_search.evaluation.forecasting import forecast as forecast_queries
    from klsa_search.search.opening import open_index
    from klsa_search.store.names import index_path

    asked = read_query_lines(queries)
    make_folders(json_file)
    index = open_index(index_path(home, name))
    forecasts = forecast_queries(index, asked)
    index.close()
    if json_file is not None:
        rows = [
            {"id": each.query.id, "query": each.query.text, "wig": each.wig} for each in forecasts
        ]
        write_json_file(json_file, rows)
    columns = [Column("rank", right=True), Column("wig", right=True), Column("id")]
    columns.append(Column("query", wraps=True))
    write_table(
        columns,
        [
            (
                f"{rank:,}",
                "finds nothing" if each.wig is None else f"{each.wig:.2f}",
                each.query.id,
                each.query.text,
            )
            for rank, each in enumerate(forecasts, start=1)
        ],
    )
