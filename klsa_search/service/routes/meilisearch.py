"""The part of the API of Meilisearch that its JavaScript packages use, below /compat/meilisearch.

Searches run as those of the native API. Writes are finished when they are answered: their task is
0. A change of settings that needs a refit is a job, whose ID is the number of its task.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Final

from fastapi import APIRouter, Body, Request, Response
from fastapi.responses import JSONResponse
from pydantic_core import from_json, to_json

from klsa_search.collection.vectors import VECTORS, without_vectors
from klsa_search.errors import DocumentNotFound, IndexNotFound, QueryError, SettingsError
from klsa_search.search.index import Index
from klsa_search.service.index_service import IndexService, Service, requires
from klsa_search.service.job_ledger import Job
from klsa_search.service.routes.documents import refuse_other_types, size_of
from klsa_search.service.routes.indexes import index_details, indexes
from klsa_search.service.routes.search import search_index
from klsa_search.service.routes.suggest import FacetSearchBody, search_facet
from klsa_search.service.schemas.meilisearch import (
    MeilisearchFacetQuery,
    MeilisearchQueries,
    MeilisearchQuery,
    changed_settings,
    documents_of,
    fields_of,
    filter_text,
    meilisearch_answer,
    settings_of,
)
from klsa_search.service.schemas.requests import Name, RequestModel, read_parameters
from klsa_search.service.schemas.responses import IndexSummary
from klsa_search.service.schemas.writes import ids_of_array

PREFIX: Final = "/compat/meilisearch/"
"""Prefix of the paths of this API, whose errors have their own format."""

CLIENT_HEADER: Final = "X-Meilisearch-Client"
"""Header that its JavaScript packages send."""

_SEARCH, _WRITE = requires("search"), requires("write")
_DOCUMENTS = requires("search", tenants=True)
_JSON = "application/json"
_DONE: Final = 0
"""Number of the task of every finished write."""
_STATES: Final = {
    "waiting": "enqueued",
    "running": "processing",
    "done": "succeeded",
    "failed": "failed",
    "cancelled": "canceled",
}
_CODES: Final = {
    "index_exists": "index_already_exists",
    "insufficient_scope": "invalid_api_key",
    "job_not_found": "task_not_found",
    "bad_json": "malformed_payload",
    "unsupported_media_type": "invalid_content_type",
    "body_too_long": "payload_too_large",
}

router = APIRouter(prefix=PREFIX.rstrip("/"), include_in_schema=False)


class NewIndex(RequestModel):
    """The body of POST /indexes."""

    uid: Name
    primaryKey: str | None = None  # noqa: N815 - as Meilisearch


@router.get("/health", dependencies=requires())
async def health() -> dict[str, str]:
    """Return that the service runs."""
    return {"status": "available"}


@router.get("/version", dependencies=_SEARCH)
async def version(request: Request) -> dict[str, str]:
    """Return the version of klsa-search."""
    return {"pkgVersion": request.app.version, "commitSha": "", "commitDate": ""}


@router.get("/stats", dependencies=_WRITE)
async def stats(service: Service) -> dict[str, Any]:
    """Return the numbers of documents."""
    found = (await indexes(service)).indexes
    return {"lastUpdate": None, "indexes": {each.name: _stats(each) for each in found}}


@router.get("/indexes", dependencies=_WRITE)
async def list_indexes(service: Service, offset: int = 0, limit: int = 20) -> dict[str, Any]:
    """List the indexes."""
    found = (await indexes(service)).indexes
    results = [_index(each.name) for each in found[offset : offset + limit]]
    return {"results": results, "offset": offset, "limit": limit, "total": len(found)}


@router.post("/indexes", dependencies=_WRITE, status_code=202)
async def create_index(
    request: Request, body: Annotated[NewIndex, Body()], service: Service
) -> dict[str, Any]:
    """Create an empty index."""
    refuse_other_types(request, _JSON)
    _check_key(body.primaryKey)
    with service.writes.slot():
        await service.create_index(body.uid, {})
    return _task(body.uid, "indexCreation")


@router.get("/indexes/{uid}", dependencies=_WRITE)
async def get_index(uid: str, service: Service) -> dict[str, Any]:
    """Return that an index exists."""
    return _index((await index_details(uid, service)).name)


@router.get("/indexes/{uid}/stats", dependencies=_WRITE)
async def index_stats(uid: str, service: Service) -> dict[str, Any]:
    """Return the number of documents of an index."""
    details = await index_details(uid, service)
    return _stats(details) | {"isIndexing": details.job is not None}


@router.delete("/indexes/{uid}", dependencies=_WRITE, status_code=202)
async def delete_index(uid: str, service: Service) -> dict[str, Any]:
    """Delete an index."""
    with service.writes.slot():
        await service.delete_index(uid)
    return _task(uid, "indexDeletion")


@router.post("/indexes/{uid}/search", dependencies=_DOCUMENTS)
async def search(uid: str, body: Annotated[MeilisearchQuery, Body()], service: Service) -> Response:
    """Search one index."""
    return _json(await _search(uid, body, service))


@router.get("/indexes/{uid}/search", dependencies=_DOCUMENTS)
async def search_by_url(uid: str, request: Request, service: Service) -> Response:
    """Search one index, with the parameters in the URL."""
    return _json(await _search(uid, read_parameters(request, MeilisearchQuery), service))


@router.post("/multi-search", dependencies=_DOCUMENTS)
async def multi_search(body: Annotated[MeilisearchQueries, Body()], service: Service) -> Response:
    """Run several searches."""

    async def answers() -> list[Any]:
        return [await _search(each.indexUid, each, service) for each in body.queries]

    return _json({"results": await service.run_all(answers())})


@router.post("/indexes/{uid}/facet-search", dependencies=_DOCUMENTS)
async def facet_search(
    uid: str, body: Annotated[MeilisearchFacetQuery, Body()], service: Service
) -> Response:
    """Search the values of a facet."""
    ours = FacetSearchBody(
        field=body.facetName,
        q=body.facetQuery,
        query=body.q or "",
        filter=filter_text(body.filter),
        k=100,
    )
    found = from_json(bytes((await search_facet(uid, ours, service)).body))
    answer = {"facetHits": found["values"], "facetQuery": body.facetQuery}
    return _json(answer | {"processingTimeMs": round(found["time_ms"])})


@router.get("/indexes/{uid}/documents/{id:whole}", dependencies=_DOCUMENTS)
async def get_document(uid: str, id: str, service: Service) -> Response:  # noqa: A002
    """Return a document."""

    def compute(index: Index) -> bytes:
        found = index.document(id)
        fields = {"id": found.id, "title": found.title, "text": found.text}
        return to_json(fields_of(fields | {"metadata": without_vectors(found.metadata)}))

    return await service.read(uid, compute)


@router.post("/indexes/{uid}/documents", dependencies=_WRITE, status_code=202)
async def add_documents(uid: str, request: Request, service: Service) -> dict[str, Any]:
    """Add or replace documents; an unknown index is created."""
    return await _add(uid, request, service, lambda index, body: index.write(documents_of(body)))


@router.put("/indexes/{uid}/documents", dependencies=_WRITE, status_code=202)
async def update_documents(uid: str, request: Request, service: Service) -> dict[str, Any]:
    """Add documents, or change the fields that are given; an unknown index is created."""
    return await _add(uid, request, service, _update)


@router.post("/indexes/{uid}/documents/delete-batch", dependencies=_WRITE, status_code=202)
async def delete_documents(uid: str, request: Request, service: Service) -> dict[str, Any]:
    """Delete documents by ID."""
    refuse_other_types(request, _JSON)
    with service.writes.slot(size_of(request)):
        ids = ids_of_array(await request.body())
        await service.write(uid, lambda index: index.write((), ids))
    return _task(uid, "documentDeletion")


@router.delete("/indexes/{uid}/documents/{id:whole}", dependencies=_WRITE, status_code=202)
async def delete_document(uid: str, id: str, service: Service) -> dict[str, Any]:  # noqa: A002
    """Delete a document."""
    with service.writes.slot():
        await service.write(uid, lambda index: index.write((), [id]))
    return _task(uid, "documentDeletion")


@router.get("/indexes/{uid}/settings", dependencies=_SEARCH)
async def get_settings(uid: str, service: Service) -> Response:
    """Return all settings of an index."""
    return await service.read(uid, lambda index: to_json(settings_of(index)))


@router.patch("/indexes/{uid}/settings", dependencies=_WRITE, status_code=202)
async def change_settings(
    uid: str, request: Request, body: Annotated[dict[str, Any], Body()], service: Service
) -> dict[str, Any]:
    """Change settings: synonyms and typo tolerance at once, the others by a job."""
    refuse_other_types(request, _JSON)
    current = await service.write(uid, settings_of)
    changes = changed_settings(body, current)
    job = None
    if changes:
        with service.writes.slot():
            job = await service.update_settings(uid, changes)
    if "synonyms" in body:

        def change(index: Index) -> None:
            try:
                index.set_synonyms(body["synonyms"] or {})
            except SettingsError as error:  # here the client is at fault, not the service
                raise QueryError(error.message, field="synonyms") from None

        with service.writes.slot():
            await service.write(uid, change)
    return _task(uid, "settingsUpdate", job)


@router.get("/indexes/{uid}/settings/{name}", dependencies=_SEARCH)
async def get_setting(uid: str, name: str, service: Service) -> Response:
    """Return one setting of an index."""
    settings = from_json(bytes((await get_settings(uid, service)).body))
    if _camel(name) not in settings:
        raise QueryError(f"the setting {name[:60]} is not supported", field=name[:60])
    return _json(settings[_camel(name)])


@router.api_route(
    "/indexes/{uid}/settings/{name}",
    methods=["PUT", "PATCH"],
    dependencies=_WRITE,
    status_code=202,
)
async def change_setting(
    uid: str, name: str, request: Request, body: Annotated[Any, Body()], service: Service
) -> dict[str, Any]:
    """Change one setting of an index."""
    return await change_settings(uid, request, {_camel(name): body}, service)


@router.get("/tasks/{number}", dependencies=_WRITE)
async def task(number: int, service: Service) -> dict[str, Any]:
    """Return a task."""
    if number == _DONE:
        return {"uid": _DONE, **_state(None, "documentAdditionOrUpdate", None)}
    job = await service.job(number)
    return {"uid": number, **_state(job.index, "settingsUpdate", job)}


def as_meilisearch_error(failure: JSONResponse) -> JSONResponse:
    """Convert an error response to the format of this API."""
    error = from_json(bytes(failure.body))["error"]
    status = 400 if failure.status_code == 422 else failure.status_code
    kinds = {401: "auth", 403: "auth"}
    content = {
        "message": error["message"],
        "code": _CODES.get(error["code"], error["code"]),
        "type": "internal" if status >= 500 else kinds.get(status, "invalid_request"),
        "link": "",
    }
    kept = {
        name: value
        for name, value in failure.headers.items()
        if name not in ("content-length", "content-type")
    }
    return JSONResponse(content, status, kept)


def _json(content: Any) -> Response:
    return Response(to_json(content), media_type=_JSON)


async def _search(uid: str, query: MeilisearchQuery, service: IndexService) -> Any:
    found = await search_index(uid, query.request(), service)
    return meilisearch_answer(query, uid, from_json(bytes(found.body)))


async def _add(
    uid: str, request: Request, service: IndexService, change: Callable[[Index, bytes], object]
) -> dict[str, Any]:
    refuse_other_types(request, _JSON)
    _check_key(request.query_params.get("primaryKey"))
    with service.writes.slot(size_of(request)):
        body = await request.body()
        try:
            await service.write(uid, lambda index: change(index, body))
        except IndexNotFound:
            await service.create_index(uid, {})
            await service.write(uid, lambda index: change(index, body))
    return _task(uid, "documentAdditionOrUpdate")


def _update(index: Index, body: bytes) -> None:
    new = []
    records = json.loads(body)
    for document, record in zip(
        documents_of(body), records if isinstance(records, list) else [records], strict=True
    ):
        changes = {name: value for name, value in record.items() if name != "id"}
        if VECTORS in changes:
            changes[VECTORS] = document.metadata[VECTORS]
        try:
            index.patch(document.id, changes)
        except DocumentNotFound:
            new.append(document)
    if new:
        index.write(new)


def _check_key(name: str | None) -> None:
    if name not in (None, "id"):
        raise QueryError(
            f"the primary key is always id, not {name[:60]!r}; rename the field", field="primaryKey"
        )


def _index(name: str) -> dict[str, Any]:
    return {"uid": name, "primaryKey": "id", "createdAt": None, "updatedAt": None}


def _stats(index: IndexSummary) -> dict[str, Any]:
    return {"numberOfDocuments": index.documents, "isIndexing": False, "fieldDistribution": {}}


def _task(uid: str, kind: str, job: Job | None = None) -> dict[str, Any]:
    """Return the task of a write that is finished, or of a job."""
    return {"taskUid": _DONE if job is None else job.id, **_state(uid, kind, job)}


def _state(uid: str | None, kind: str, job: Job | None) -> dict[str, Any]:
    begun = datetime.now(UTC).isoformat(timespec="seconds") if job is None else job.begun
    state: Mapping[str, Any] = {
        "indexUid": uid,
        "type": kind,
        "status": "succeeded" if job is None else _STATES[job.state],
        "enqueuedAt": begun,
        "error": None,
    }
    if job is not None and job.error is not None:
        error = {"message": job.error, "code": "internal", "type": "internal", "link": ""}
        return {**state, "error": error}
    return dict(state)


def _camel(name: str) -> str:
    first, *rest = name.split("-")
    return first + "".join(part.capitalize() for part in rest)
