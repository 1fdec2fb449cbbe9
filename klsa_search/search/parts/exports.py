"""Results of a search as CSV or JSON lines, in pieces, and CSV that spreadsheets never run."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, Literal, Unpack

from klsa_search.collection.csv_files import FORMULA
from klsa_search.collection.field_paths import value_at
from klsa_search.core.arguments import checked_items
from klsa_search.errors import QueryError
from klsa_search.search.pages.results import Hit
from klsa_search.search.parts.merged_search import search_parts
from klsa_search.search.parts.reader import Reader
from klsa_search.search.query.query import Query, SearchOptions, as_query
from klsa_search.search.ranking.parameters import checked_integer
from klsa_search.storage.columns.columns import Fields

_NUMBER: Final = re.compile(r"[+-]?\d+(?:[.,]\d+)?")


def csv_of(rows: Iterable[Sequence[object]], line_end: str = "\r\n") -> str:
    r"""Return rows as CSV.

    Lists are joined by "; ", and other values that are not texts or numbers are JSON. A text that a
    spreadsheet may take for a formula gets a ' before it, unless it is a number.

    >>> csv_of([["a b", 1.5, None], ["=HYPERLINK()", ["x", 2], {"y": 3}]], line_end="\n")
    'a b,1.5,\n\'=HYPERLINK(),x; 2,"{""y"": 3}"\n'
    """
    return "".join(f"{_line(row)}{line_end}" for row in rows)


def _line(row: Sequence[object]) -> str:
    """Return a row; its line is ended later, as Python 3.11 quotes only what may end lines."""
    out = io.StringIO()
    csv.writer(out).writerow([_cell(value) for value in row])
    return out.getvalue().removesuffix("\r\n")


def _cell(value: object) -> str | float:
    """Return a value as a cell that no spreadsheet reads as a formula."""
    if value is None:
        return ""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    if isinstance(value, list) and all(isinstance(item, str | int | float) for item in value):
        value = "; ".join(map(str, value))
    elif not isinstance(value, str):
        value = json.dumps(value, ensure_ascii=False)
    return f"'{value}" if FORMULA.match(value) and not _NUMBER.fullmatch(value) else value


Format = Literal["csv", "jsonl"]

BATCH: Final = 10_000
"""Rows that are read at once; those of a piece."""

HIT_COLUMNS: Final = (
    *("rank", "id", "score", "title", "snippet", "text"),
    *("document_id", "page", "heading", "more_passages"),
)
"""Columns besides the fields of metadata."""

BEFORE_FIELDS: Final = ("rank", "id", "score", "title", "snippet")
"""Columns by default, followed by the filterable fields."""

_UNUSED: Final = {"facets": (), "disjunctive_facets": (), "highlight": False, "quality": False,
                  "explain": False}  # fmt: skip


def export(
    reader: Reader,
    query: str | Query,
    columns: Iterable[str] = (),
    *,
    format: Format = "csv",  # noqa: A002 - as in the HTTP API
    limit: int | None = None,
    **options: Unpack[SearchOptions],
) -> Iterator[bytes]:
    r"""Return the hits of a search as CSV or JSON lines, in pieces of at most 10,000 rows.

    columns  rank, id, score, title, snippet, text, document_id, page, heading, more_passages,
             or names and paths of metadata fields, in this order; by default rank, id, score,
             title, snippet and the filterable fields
    limit    number of rows, at most; by default all hits
    options  as of `search`; facets, explanations, highlights and qualities are left out
    All rows are of one state of the index. CSV is UTF-8 with a byte order mark, as Excel needs
    it, and lines end with \r\n. Lists are joined by "; ", other values that are not texts or
    numbers are JSON. A text that a spreadsheet may take for a formula, as it begins with one of
    = + - @ or a tab, gets a ' before it, unless it is a number. QueryError. Memory: a piece.
    Cost: a search for each piece.

    >>> rows = b"".join(index.export("wet roads", ["id", "title"], limit=1))
    >>> rows.decode("utf-8-sig").splitlines()
    ['id,title', 'tyre,Tyres']
    >>> b"".join(index.export("wet roads", ["id", "year"], format="jsonl", limit=1))
    b'{"id": "tyre", "year": 2018}\n'
    """
    reader = reader.view()
    query = as_query(query, 10, options)
    for name in ("rerank", "max_tokens"):
        if getattr(query, name) is not None:
            raise QueryError(f"{name}: it changes the first hits only; leave it out", field=name)
    if format not in ("csv", "jsonl"):
        raise QueryError(f"format = {format!r}: choose csv or jsonl", field="format")
    if limit is not None:
        limit = checked_integer("limit", limit)
    fields = reader.fields
    names = checked_items("columns", columns, str) or [
        *BEFORE_FIELDS,
        *(name for name in fields if name not in HIT_COLUMNS),
    ]
    refuse_unknown("columns", names, HIT_COLUMNS, fields)
    query = query.model_copy(update=_UNUSED)

    def batch(rows: int) -> Sequence[Hit]:
        """Return the hits after so many rows; pages of one k do not overlap."""
        k = BATCH if limit is None else min(BATCH, limit)
        page = {"k": k, "offset": query.offset + rows}
        return search_parts(reader, query.model_copy(update=page)).hits

    def pieces(hits: Sequence[Hit]) -> Iterator[bytes]:
        rows = 0
        if format == "csv":
            yield b"\xef\xbb\xbf" + csv_of([names]).encode()
        while hits:
            hits = hits if limit is None else hits[: limit - rows]
            values = [[_value(reader, hit, name) for name in names] for hit in hits]
            if format == "csv":
                yield csv_of(values).encode()
            else:
                lines = (json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False)
                         for row in values)  # fmt: skip
                yield "".join(f"{line}\n" for line in lines).encode()
            rows += len(values)
            if len(values) < BATCH or rows == limit:
                return
            hits = batch(rows)

    return pieces(batch(0))


def refuse_unknown(
    parameter: str, names: Iterable[str], of_hits: Sequence[str], fields: Fields
) -> None:
    """Raise QueryError for a name that neither hits nor documents have, or objects in these."""
    of_documents = {*of_hits, *fields, *fields.unfilterable}
    for name in names:
        if not any(f"{other}.".startswith(f"{name}.") for other in of_documents):
            raise QueryError(
                f"{parameter}: no document has a field {name!r}; choose from "
                f"{', '.join((*of_hits, *fields))}",
                field=parameter,
            )


def _value(reader: Reader, hit: Hit, name: str) -> Any:
    if name == "text":
        return reader.document(hit.id).text if hit.text is None else hit.text
    value = getattr(hit, name) if name in HIT_COLUMNS else None
    return value_at(hit.metadata, name) if value is None else value
