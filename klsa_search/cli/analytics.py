"""klsa-index analytics: read what a service recorded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from klsa_search.cli.main import debug_option
from klsa_search.cli.options import index_argument
from klsa_search.cli.output import echo, numbers, wrapped, write_facts, write_table

if TYPE_CHECKING:
    from klsa_search.core.analytics import Analytics, ListName

_LISTS = ("days", "queries", "no_results", "low_quality", "documents")


@click.command()
@index_argument
@click.option(
    "--days",
    default=30,
    show_default=True,
    type=click.IntRange(1, 3650),
    help="Report this many days",
)
@click.option(
    "--limit",
    "-k",
    default=20,
    show_default=True,
    type=click.IntRange(1, 10_000),
    help="List at most this many rows",
)
@click.option(
    "--min-searches",
    default=2,
    show_default=True,
    type=click.IntRange(1, 1000),
    help="List queries that were searched this often",
)
@click.option("--list", "list_", type=click.Choice(_LISTS), help="Show one list only")
@click.option("--csv", "as_csv", is_flag=True, help="Write CSV; without --list the queries")
@debug_option
def analytics(
    path: Path, days: int, limit: int, min_searches: int, list_: str | None, as_csv: bool
) -> None:
    """Show frequent and failing queries that klsa-serve --analytics recorded."""
    from klsa_search.service.analytics import reports
    from klsa_search.storage.aliases import followed
    from klsa_search.storage.partitions import require_index

    path = followed(path)
    require_index(path)
    analytics = reports.report(path.parent, path.name, days=days, k=limit, least=min_searches)
    if as_csv:
        for line in reports.as_csv(analytics, cast("ListName", list_ or "queries")).splitlines():
            echo(line)
        return
    totals = analytics.totals
    if list_ is None:
        write_facts(
            [
                ("since", analytics.since),
                ("searches", f"{totals.searches:,}"),
                ("without results", f"{totals.no_results:,}"),
                ("with low quality", f"{totals.low_quality:,}"),
                ("clicked", f"{totals.clicked:,} ({_share(totals.click_through)})"),
            ]
        )
    for name in (list_,) if list_ else _LISTS:
        echo("")
        _write_list(analytics, name)


def _write_list(analytics: Analytics, name: str) -> None:
    if name == "documents":
        rows = [(document.id, f"{document.clicks:,}") for document in analytics.documents]
        write_table([*wrapped("document"), *numbers("clicks")], rows)
        return
    titles = ("searches", "no results", "low quality", "click-through", "mean position")
    figures = [
        (
            key,
            f"{entry.searches:,}",
            f"{entry.no_results:,}",
            f"{entry.low_quality:,}",
            _share(entry.click_through),
            "" if entry.mean_position is None else f"{entry.mean_position:.1f}",
        )
        for key, entry in getattr(analytics, name).items()
    ]
    write_table([*wrapped(name.replace("_", " ")), *numbers(*titles)], figures)


def _share(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.0f}%"
