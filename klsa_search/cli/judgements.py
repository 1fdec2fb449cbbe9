"""klsa-index judgements: show or export the relevance judgements of an index."""

from __future__ import annotations

from pathlib import Path

import click

from klsa_search.cli.frame import debug_option
from klsa_search.cli.options import home_option, json_option
from klsa_search.cli.output import Column, echo, make_folders, write_json, write_table


@click.command()
@click.argument("name")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write them to this file as TREC qrels, and the queries to a file next to it, with the "
    "suffix .queries.tsv, as lines of number and text",
)
@home_option
@json_option
@debug_option
def judgements(name: str, out: Path | None, home: Path, as_json: bool) -> None:
    """Show the relevance judgements of an index.

    They come from the page of klsa-serve and from index.judge. klsa-eval judgements NAME measures
    rankings by them.
    """
    from klsa_search.collection.qrels import qrels_text
    from klsa_search.store.aliases import followed
    from klsa_search.store.current import current_generation
    from klsa_search.store.judgements import Judgements
    from klsa_search.store.names import index_path

    path = followed(index_path(home, name))
    current_generation(path)  # or there is no such index
    queries = Judgements(path).queries()
    if out is not None:
        text, left_out = qrels_text(one for each in queries for one in each.judgements())
        make_folders(out)
        out.write_text(text, encoding="utf-8")
        sidecar = out.with_suffix(".queries.tsv")
        sidecar.write_text("".join(each.as_line() for each in queries), encoding="utf-8")
        echo(
            f"{name}: {text.count(chr(10)):,} judgements in {out}, {len(queries):,} queries in "
            f"{sidecar}"
        )
        for one in left_out:
            echo(
                f"warning: {one.document_id!r}, judged {one.grade} for query {one.query_id}, "
                f"was left out of {out}: qrels cannot hold IDs with white space",
                err=True,
            )
    elif as_json:
        write_json(
            [
                {"number": each.number, "query": each.text, "grades": dict(each.grades)}
                for each in queries
            ]
        )
    elif not queries:
        echo(f"{name} has no judgements")
    else:
        columns = [Column("number", right=True), Column("relevant", right=True)]
        columns += [Column("not", right=True), Column("query", wraps=True)]
        rows = []
        for each in queries:
            relevant = sum(grade > 0 for grade in each.grades.values())
            rows.append(
                (str(each.number), str(relevant), str(len(each.grades) - relevant), each.text)
            )
        write_table(columns, rows)
