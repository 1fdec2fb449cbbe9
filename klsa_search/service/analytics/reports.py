"""Reports of analytics: figures by day, lists of queries, clicked documents."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from klsa_search.core.service_reports import (
    Analytics,
    ClickedDocument,
    DayFigures,
    ListName,
    QueryFigures,
    SearchFigures,
)
from klsa_search.errors import StoreError
from klsa_search.mining.synonym_proposals import SearchedQuery
from klsa_search.search.parts.exports import csv_of
from klsa_search.service.analytics.store import FILE, SCHEMA, SUMMED

_SUMS: Final = ", ".join(f"sum({name})" for name in SUMMED)
_OF_PERIOD: Final = """"index" = :index and day >= :since"""
_ORDERS: Final = {
    "queries": "sum(searches)",
    "no_results": "sum(no_results)",
    "low_quality": "sum(low_quality)",
}
_DOCUMENTS: Final = f"""
select document, sum(clicks), sum(conversions) from all_documents where {_OF_PERIOD}
group by document order by 2 desc, 3 desc, 1 limit :k
"""  # noqa: S608
_SEARCHED: Final = f"""
select query, sum(searches) from all_queries where {_OF_PERIOD} and query != ''
group by query having sum(searches) >= :least order by 2 desc, 1 limit :k
"""  # noqa: S608
_REPLACED: Final = f"""
select query, next, sum(searches) from all_replacements where {_OF_PERIOD} group by query, next
"""  # noqa: S608
_MAX_QUERIES: Final = 2_000  # queries of which unknown words are looked for


def report(home: Path, index: str, *, days: int, k: int, least: int) -> Analytics:
    """Return the analytics of an index.

    k      length of each list of queries or documents
    least  searches of a query from which it is listed
    Cost: a second for a million searches of the last day. StoreError.
    """
    since = (datetime.now(UTC).date() - timedelta(days=days - 1)).isoformat()
    values = {"index": index, "since": since, "k": k, "least": least}
    with _reading(home) as database:
        by_day = database.execute(
            f"select day, {_SUMS} from all_queries where {_OF_PERIOD} "  # noqa: S608
            "group by day order by day",
            values,
        ).fetchall()
        lists = {
            name: [
                QueryFigures(query=query, **_figures(row))
                for query, *row in database.execute(
                    f"select query, {_SUMS} from all_queries where {_OF_PERIOD} "  # noqa: S608
                    "and query != '' group by query "
                    f"having sum(searches) >= :least and {order} > 0 "
                    f"order by {order} desc, sum(searches) desc, query limit :k",
                    values,
                )
            ]
            for name, order in _ORDERS.items()
        }
        documents = database.execute(_DOCUMENTS, values).fetchall()
    totals = [sum(column) for column in zip(*(row[1:] for row in by_day), strict=True)]
    return Analytics(
        index=index,
        since=since,
        min_searches=least,
        totals=SearchFigures(**_figures(totals or [0] * 10)),
        days=[DayFigures(day=day, **_figures(row)) for day, *row in by_day],
        documents=[ClickedDocument(*row) for row in documents],
        **lists,
    )


def _figures(row: Sequence[int | None]) -> dict[str, Any]:
    """Return the figures of a row of `_SUMS` by name."""
    sums = {name: value or 0 for name, value in zip(SUMMED, row, strict=True)}
    positions, microseconds = sums.pop("positions"), sums.pop("microseconds")
    searches, clicks = sums["searches"], sums["clicks"]
    return {
        **sums,
        "click_through": round(sums["clicked"] / searches, 4) if searches else None,
        "mean_position": round(positions / clicks, 2) if clicks else None,
        "mean_ms": round(microseconds / searches / 1000, 3) if searches else None,
    }


def searched_queries(home: Path, index: str, *, days: int, least: int) -> list[SearchedQuery]:
    """Return the most frequent queries with those that replaced them, for synonym proposals.

    A query that replaced another is left out if it is not listed itself.
    """
    since = (datetime.now(UTC).date() - timedelta(days=days - 1)).isoformat()
    values = {"index": index, "since": since, "k": _MAX_QUERIES, "least": least}
    with _reading(home) as database:
        queries = database.execute(_SEARCHED, values).fetchall()
        listed = {query for query, _ in queries}
        replaced: defaultdict[str, dict[str, int]] = defaultdict(dict)
        for query, following, count in database.execute(_REPLACED, values):
            if following in listed:
                replaced[query][following] = count
    return [SearchedQuery(query, count, replaced.get(query, {})) for query, count in queries]


def as_csv(analytics: Analytics, name: ListName) -> str:
    """Return a list of a report as CSV with a header; queries are the text of strangers."""
    kind = {"days": DayFigures, "documents": ClickedDocument}.get(name, QueryFigures)
    names = [field.name for field in fields(kind)]
    if name != "documents":
        names = [names[-1], *names[:-1]]  # the day or query first
    rows = ([getattr(row, field) for field in names] for row in getattr(analytics, name))
    return csv_of([names, *rows], line_end="\n")


@contextmanager
def _reading(home: Path) -> Iterator[sqlite3.Connection]:
    """Yield a connection that sees one state; an empty one if nothing was recorded yet."""
    path = home / FILE
    database: sqlite3.Connection | None = None
    try:
        if path.exists():
            database = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=5)
        else:
            database = sqlite3.connect(":memory:")
            database.executescript(SCHEMA)
        database.execute("begin")
        yield database
    except sqlite3.Error as error:
        raise StoreError(
            f"cannot read analytics from `{path}`: {error}; check its owner and permissions, or "
            "remove it with its -wal file"
        ) from error
    finally:
        if database is not None:
            database.close()
