"""Endpoints that stream the results of a search as CSV or JSON lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Response
from pydantic import Field

from klsa_search.core.parameters import SNIPPET, MatchOptions, Names, RankingParameters
from klsa_search.errors import QueryError
from klsa_search.search.index import Index
from klsa_search.search.parts.exports import Format
from klsa_search.search.query.query import Query
from klsa_search.service.dependencies import Service, requires
from klsa_search.service.index_service import IndexService
from klsa_search.service.schemas.requests import QueryText, RequestModel
from klsa_search.service.schemas.search_requests import (
    MAX_SNIPPET,
    MAX_WINDOW,
    QUERY,
    FilterText,
    QueryVector,
)
from klsa_search.service.streams import stream

router = APIRouter(dependencies=requires("search", tenants=True))

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


@router.get(
    "/indexes/{name}/export", summary="Export results", responses=_CONTENT, response_class=Response
)
async def export(
    name: str, params: Annotated[ExportRequest, Depends(ExportRequest.of_url)], service: Service
) -> Response:
    """Return the hits of a search as rows of CSV or lines of JSON, up to 10,000, as a stream.

    CSV is for spreadsheets: UTF-8 with a byte order mark, and a text that would be a formula has a
    ' before it. If more documents match, give `limit`. The stream breaks off if reading fails.
    """
    return await _export(params, name, service)


@router.post(
    "/indexes/{name}/export", summary="Export results", responses=_CONTENT, response_class=Response
)
async def export_body(name: str, body: ExportRequest, service: Service) -> Response:
    """Export as with GET, with the parameters as a JSON object."""
    return await _export(body, name, service)


async def _export(params: ExportRequest, name: str, service: IndexService) -> Response:
    def pieces(index: Index) -> Iterator[bytes]:
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

    return await stream(service, name, pieces, params.format)
