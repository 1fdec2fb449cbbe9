"""Endpoints that stream the results of a search as CSV or JSON lines."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from time import monotonic
from typing import Any, Final
from urllib.parse import quote
from weakref import finalize

from fastapi import Response
from fastapi.responses import StreamingResponse
from pydantic import Field

from klsa_search.core.parameters import SNIPPET, MatchOptions, Names, RankingParameters
from klsa_search.errors import QueryError, RequestTimedOut
from klsa_search.search.index import Index
from klsa_search.search.parts.exports import Format
from klsa_search.search.query.query import Query
from klsa_search.service.admission import Admission
from klsa_search.service.dependencies import Service, get_and_post, router_for
from klsa_search.service.index_service import restricted_by_token
from klsa_search.service.middleware.bodies import LINES
from klsa_search.service.schemas.base import QueryText, RequestModel
from klsa_search.service.schemas.search_requests import (
    MAX_SNIPPET,
    MAX_WINDOW,
    QUERY,
    FilterText,
    QueryVector,
)

TYPES: Final = {"csv": "text/csv; charset=utf-8", "jsonl": LINES}
"""Content types of files by their suffix."""

MAX_SECONDS: Final = 600.0
"""Seconds that a stream takes, at most: a client that reads slowly keeps the index open."""


router = router_for("search", tenants=True)

_CONTENT: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "the rows; with format=jsonl as application/x-ndjson",
        "content": {"text/csv": {"schema": {"type": "string"}}},
    }
}


class _Rows(RequestModel):
    q: QueryText = Field("", description=QUERY)
    format: Format = Field("csv", description="format of the rows: csv or jsonl, lines of JSON")
    columns: Names = Field(
        (),
        description="columns in their order: rank, id, score, title, snippet, text, document_id, "
        "page, heading, more_passages or metadata fields; by default rank, id, score, title, "
        "snippet and all filterable fields",
    )
    limit: int | None = Field(
        None, ge=1, le=MAX_WINDOW, description="maximum number of rows; by default all matches"
    )


class ExportRequest(RankingParameters, MatchOptions, _Rows):
    """The parameters of an export: those of a search that decide which hits it has."""

    filter: FilterText | dict[str, Any] | None = Field(
        None, description="filter on metadata, as text, or as JSON in a body"
    )
    snippet_length: int = Field(
        SNIPPET, ge=1, le=MAX_SNIPPET, description="maximum length of a snippet, in characters"
    )
    vector: QueryVector | None = Field(None, description="vector of the query; only in a body")

    def query(self) -> Query:
        """Return the search; QueryError for options that exclude each other."""
        names = (self.model_fields_set & Query.model_fields.keys()) - {"query", "k"}
        options = {name: value for name in names if (value := getattr(self, name)) is not None}
        return Query(self.q, **options)


@get_and_post(
    router,
    "/indexes/{name}/export",
    summary="Export results",
    responses=_CONTENT,
    response_class=Response,
)
async def export(name: str, params: ExportRequest, service: Service) -> Response:
    """Return the hits of a search as rows of CSV or lines of JSON, up to 10,000, as a stream.

    CSV is for spreadsheets: UTF-8 with a byte order mark, and a text that would be a formula has a
    ' before it. If more documents match, give `limit`. The stream breaks off if reading fails.
    """
    # In threads for expensive requests. The index stays open until the stream ends, or breaks off
    # after `MAX_SECONDS`.
    target, token_filter = service.resolve_with_filter(name)
    leased = ExitStack()

    def begin() -> tuple[Iterator[bytes], bytes | None]:
        index = leased.enter_context(service.open_indexes.use(target))
        service.state["index"] = index.name
        if token_filter is not None:
            index = restricted_by_token(index, token_filter)
        rows = _rows(index, params)
        return rows, next(rows, None)

    try:
        rows, first = await service.heavy.run(begin)
    except BaseException:
        leased.close()
        raise
    content = _content(service.heavy, rows, first)
    finalize(content, leased.close)  # also if the client is gone before the first piece
    disposition = f"attachment; filename*=UTF-8''{quote(name)}.{params.format}"
    headers = {"Content-Disposition": disposition}
    return StreamingResponse(content, media_type=TYPES[params.format], headers=headers)


def _rows(index: Index, params: ExportRequest) -> Iterator[bytes]:
    query = params.query()
    if params.limit is None:
        total = index.search(query.model_copy(update={"k": 1})).total
        if total > MAX_WINDOW:
            raise QueryError(
                f"limit: {total:,} documents match, and at most {MAX_WINDOW:,} are exported; "
                "add a filter, or give a limit",
                field="limit",
            )
    rows: Iterator[bytes] = index.export(
        query, params.columns, format=params.format, limit=params.limit
    )
    return rows


async def _content(
    admission: Admission, pieces: Iterator[bytes], first: bytes | None
) -> AsyncIterator[bytes]:
    end = monotonic() + MAX_SECONDS
    piece = first
    while piece is not None:
        yield piece
        if monotonic() > end:
            raise RequestTimedOut(f"the client read for more than {MAX_SECONDS:.0f} s")
        piece = await admission.run(lambda: next(pieces, None))
