"""Endpoints of analytics: events of visitors, reports for editors."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Annotated, Literal, Self, TypeVar

from fastapi import Response
from pydantic import AfterValidator, Field, model_validator

from klsa_search.collection.model import checked_id
from klsa_search.core.parameters import Text
from klsa_search.core.service_reports import Analytics, ListName, SynonymProposal
from klsa_search.errors import BadDocument
from klsa_search.mining.synonym_proposals import propose_synonyms
from klsa_search.search.index import Index
from klsa_search.service.analytics.recorder import Recorder
from klsa_search.service.analytics.reports import as_csv, report, searched_queries
from klsa_search.service.analytics.store import EventRow
from klsa_search.service.dependencies import Service, router_for
from klsa_search.service.index_service import IndexService
from klsa_search.service.schemas.base import Answer, RequestModel, field_error

router = router_for("write")
tenant_router = router_for("search", tenants=True)

T = TypeVar("T")

_SEARCH_ID = re.compile(r"[0-7][0-9a-f]{15}")


def _search_id(text: str) -> str:
    if not _SEARCH_ID.fullmatch(text):
        raise ValueError("it is not the `search_id` of an answer")
    return text


def _document_id(text: str) -> str:
    try:
        return checked_id(text)
    except BadDocument as error:
        raise ValueError(error.message) from None


SearchId = Annotated[Text, Field(max_length=16), AfterValidator(_search_id)]


class EventBody(RequestModel):
    """The body of POST /indexes/{name}/events."""

    type: Literal["click", "conversion"] = Field(
        description="click: the visitor opened a hit; conversion: it was what they wanted, such as "
        "a purchase"
    )
    search_id: SearchId = Field(description="`search_id` of the answer that had the hit")
    id: Annotated[Text, AfterValidator(_document_id)] = Field(
        min_length=1, description="ID of the document"
    )
    position: int | None = Field(
        None, ge=1, le=10_000, description="`rank` of the hit; required for a click"
    )
    previous: SearchId | None = Field(
        None,
        description="`search_id` of the search that the visitor replaced by this one, as evidence "
        "for synonyms",
    )

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.type == "click" and self.position is None:
            raise field_error("position", "position is missing: a click needs the rank of the hit")
        return self


class EventAccepted(Answer):
    """An event that will be stored."""

    accepted: bool


class AnalyticsDeleted(Answer):
    """The index whose analytics were deleted."""

    index: str


class AnalyticsRequest(RequestModel):
    """The parameters of GET /indexes/{name}/analytics."""

    days: int = Field(30, ge=1, le=3650, description="number of days (UTC), the last is today")
    k: int = Field(20, ge=1, le=1_000, description="length of each list")


class AnalyticsCsvRequest(AnalyticsRequest):
    """The parameters of GET /indexes/{name}/analytics.csv."""

    list: ListName = Field("queries", description="list of the report")
    k: int = Field(1_000, ge=1, le=10_000, description="length of the list, except of days")


class ProposalsRequest(RequestModel):
    """The parameters of GET /indexes/{name}/analytics/synonyms."""

    days: int = Field(30, ge=1, le=3650, description="number of days (UTC), the last is today")
    k: int = Field(10, ge=1, le=50, description="number of words")


class ProposalsAnswer(Answer):
    """Proposals of synonyms."""

    index: str
    proposals: list[SynonymProposal]


@tenant_router.post(
    "/indexes/{name}/events",
    summary="Record a click or a conversion",
    status_code=202,
    response_model=EventAccepted,
)
async def record_event(name: str, body: EventBody, service: Service) -> Response:
    """Record that a visitor used a hit; AnalyticsOff unless the service records analytics.

    It is stored within seconds and counted if the search is known: until an hour after the end of
    its day (UTC). The same event of a search counts once. DocumentNotFound, also for a document
    that a tenant token hides.
    """

    def compute(index: Index) -> EventAccepted:
        recorder = service.analytics
        index.document(body.id)
        recorder.add(
            EventRow(int(body.search_id, 16), index.name, body.type, body.id, body.position)
        )
        if body.previous is not None and body.previous != body.search_id:
            previous, search = int(body.previous, 16), int(body.search_id, 16)
            recorder.add(EventRow(previous, index.name, "later", body.id, None, search))
        return EventAccepted(accepted=True)

    answer = await service.read(name, compute)
    answer.status_code = 202
    return answer


@router.get("/indexes/{name}/analytics", summary="Get analytics")
async def analytics(name: str, params: AnalyticsRequest, service: Service) -> Analytics:
    """Return figures by day, frequent and failing queries, and clicked documents.

    Needs scope write: the queries are those of all users.
    """
    return await _read(service, name, partial(_report, params=params))


@router.get(
    "/indexes/{name}/analytics.csv",
    summary="Export analytics as CSV",
    response_class=Response,
    responses={200: {"content": {"text/csv": {"schema": {"type": "string"}}}}},
)
async def analytics_csv(name: str, params: AnalyticsCsvRequest, service: Service) -> Response:
    """Return one list of the analytics, with the names of the fields in the first line.

    A query that a spreadsheet would run as a formula begins with an apostrophe.
    """

    def compute(recorder: Recorder, index: str) -> str:
        return as_csv(_report(recorder, index, params), params.list)

    return Response(await _read(service, name, compute), media_type="text/csv")


def _report(recorder: Recorder, index: str, params: AnalyticsRequest) -> Analytics:
    least = recorder.min_searches
    return report(recorder.home, index, days=params.days, k=params.k, least=least)


@router.get("/indexes/{name}/analytics/synonyms", summary="Propose synonyms")
async def synonym_proposals(
    name: str, params: ProposalsRequest, service: Service
) -> ProposalsAnswer:
    """Propose synonyms for searched words that no or few documents contain, with the evidence.

    Words without evidence are left out. Accept one with PATCH /indexes/{name}/synonyms.
    """

    def compute(recorder: Recorder, index: str) -> ProposalsAnswer:
        queries = searched_queries(
            recorder.home, index, days=params.days, least=recorder.min_searches
        )
        with service.open_indexes.use(index) as opened:
            proposals = propose_synonyms(opened, queries, params.k)
            return ProposalsAnswer(index=opened.name, proposals=proposals)

    return await _read(service, name, compute)


@router.delete("/indexes/{name}/analytics", summary="Delete analytics")
async def delete_analytics(name: str, service: Service) -> AnalyticsDeleted:
    """Delete all recorded searches and events of an index."""

    def compute(recorder: Recorder, index: str) -> AnalyticsDeleted:
        recorder.delete(index)
        return AnalyticsDeleted(index=index)

    return await _read(service, name, compute)


async def _read(service: IndexService, name: str, compute: Callable[[Recorder, str], T]) -> T:
    """Return what `compute` returns for the recorder and the name of an index, or alias.

    It runs in the threads for expensive requests. AnalyticsOff, IndexNotFound, InsufficientScope,
    StoreError.
    """
    target = service.resolve("write", name) or name
    with service.open_indexes.use_if_current(target) as opened:
        service.state["index"] = target
        index = target if opened is None else opened.name
    recorder = service.analytics
    return await service.heavy.run(lambda: compute(recorder, index))
