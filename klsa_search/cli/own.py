"""klsa-eval judgements: compare rankers by the judgements of an index."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click

from klsa_search.cli.frame import debug_option
from klsa_search.cli.options import home_option, json_file_option
from klsa_search.cli.output import Column, echo, make_folders, write_json_file, write_table
from klsa_search.config import RankerName
from klsa_search.extras import require

if TYPE_CHECKING:
    from klsa_search.evaluation.comparison import Comparison


@click.command("judgements")
@click.argument("name")
@click.option(
    "--ranker",
    "rankers",
    type=click.Choice(get_args(RankerName)),
    multiple=True,
    default=("bm25", "klsa"),
    show_default=True,
    help="Compare these rankers with the first; repeatable",
)
@home_option
@json_file_option
@debug_option
def judgements(
    name: str, rankers: Sequence[RankerName], home: Path, json_file: Path | None
) -> None:
    """Compare rankers by the judgements of an index.

    Prints MAP and the queries won and lost. Judgements come from the page of klsa-serve and from
    index.judge. A query is won or lost if the difference is above 0.01; p is as in klsa-eval
    compare.
    """
    require("eval")
    from klsa_search.evaluation.own import compare_rankers, own_judgements
    from klsa_search.search.opening import open_index
    from klsa_search.store.names import index_path

    if len(set(rankers)) < len(rankers):
        raise click.UsageError("a ranker is given twice: give each once")
    make_folders(json_file)
    index = open_index(index_path(home, name))
    queries, judged, deleted = own_judgements(index)
    _, comparison = compare_rankers(index, queries, judged, rankers)
    index.close()
    if json_file is not None:
        write_json_file(json_file, comparison.as_json())
    if deleted:
        echo(f"note: {deleted:,} judgements of deleted documents are left out", err=True)
    _write(comparison, {query.id: query.text for query in queries})


def _write(comparison: Comparison, texts: dict[str, str]) -> None:
    columns = [Column("ranker"), Column("map", right=True), Column("95 %", right=True)]
    columns += [Column(title, right=True) for title in ("gain", "p", "won", "lost", "tied")]
    rows = []
    for name, system in comparison.systems.items():
        interval, contrast = system.interval, system.contrast
        rows.append(
            (
                name,
                f"{system.mean:.4f}",
                "" if interval is None else f"{interval[0]:.4f} to {interval[1]:.4f}",
                "" if contrast is None or contrast.gain is None else f"{contrast.gain:+.1%}",
                "" if contrast is None else f"{contrast.randomisation_test.holm:.4f}",
                *(
                    ("", "", "")
                    if contrast is None
                    else map(str, (contrast.wins, contrast.losses, contrast.ties))
                ),
            )
        )
    write_table(columns, rows)
    base = comparison.baseline
    moved = [
        (name, end, f"{at.baseline:.2f}", f"{at.value:.2f}", texts[at.query])
        for name, system in comparison.systems.items()
        if system.contrast is not None
        for end, queries in (("won", system.contrast.best), ("lost", system.contrast.worst))
        for at in queries
    ]
    if moved:
        echo()
        columns = [Column("ranker"), Column("end"), Column(base, right=True)]
        columns += [Column("its own", right=True), Column("query", wraps=True)]
        write_table(columns, moved)
