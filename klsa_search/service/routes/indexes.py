"""Endpoints of indexes: create, list, change, refit, delete; their synonyms, aliases and jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic
from typing import Annotated, Final

import numpy as np
from fastapi import APIRouter, Depends, Path, Request, Response
from pydantic import Field

from klsa_search.core.parameters import Text
from klsa_search.core.service_reports import Job
from klsa_search.errors import IndexNotFound
from klsa_search.search.index import Index
from klsa_search.service.dependencies import Service, refuse_other_types, requires
from klsa_search.service.index_service import IndexService
from klsa_search.service.schemas.base import Answer, Name, RequestModel, encoded
from klsa_search.service.schemas.errors import documented
from klsa_search.service.schemas.index_answers import (
    IndexDetails,
    IndexList,
    IndexSummary,
    replication_answers,
)

router = APIRouter()


IndexSetting = bool | int | float | Text | list[Text] | dict[Text, Text | float]
"""The value of a setting of an index."""


class IndexBody(RequestModel):
    """The body of POST /indexes."""

    name: Name = Field(description="1 to 100 letters, digits, `.`, `_` or `-`")
    settings: dict[Text, IndexSetting] = Field(
        {},
        max_length=100,
        description="settings that differ from the defaults: see docs/reference/index-settings.md",
        examples=[{"language": "german", "fields": ["price:number"]}],
    )


class SettingsBody(RequestModel):
    """The body of PATCH /indexes/{name}."""

    settings: dict[Text, IndexSetting] = Field(
        min_length=1,
        max_length=100,
        description="settings to change; the others stay",
        examples=[{"alpha": 0.5}],
    )


class SettingsAnswer(Answer):
    """Result of changing settings."""

    index: str
    job: Job | None = Field(
        description="refit that applies them; null if they are in effect already"
    )


class RefitBody(RequestModel):
    """The body of POST /indexes/{name}/refit: an empty object. Settings: PATCH /indexes/{name}."""


class DeletedAnswer(Answer):
    """Result of deleting an index."""

    name: str
    files_left: list[str] = Field(
        description="files in its folder that do not belong to the index, and stay"
    )


@router.post(
    "/indexes",
    dependencies=requires("write"),
    summary="Create an index",
    status_code=201,
    responses=documented(409),
)
async def create_index(request: Request, body: IndexBody, service: Service) -> IndexDetails:
    """Create an empty index. Add its documents with POST /indexes/{name}/documents.

    They can be searched at once; the kernel is learnt by a refit, which starts in the background
    when enough documents were added (`klsa-serve --refit-threshold`).
    """
    refuse_other_types(request, "application/json")
    with service.writes.slot():
        await service.create_index(body.name, body.settings)
    return await index_details(body.name, service)


@router.get("/indexes", dependencies=requires("search", "write"), summary="List indexes")
async def indexes(service: Service) -> IndexList:
    """List all indexes by name, including those that cannot be opened."""
    summaries = [IndexSummary.of(status) for status in await service.current_statuses()]
    replications, _ = await asyncio.to_thread(replication_answers, service.replications)
    follow = replications.get("follow")
    return IndexList(indexes=summaries, writable=service.may_write, follow=follow)


@router.get("/indexes/{name}", dependencies=requires("search", "write"), summary="Get an index")
async def index_details(name: str, service: Service) -> IndexDetails:
    """Return the sizes, settings and spectrum of an index, and its drift from what it learnt.

    `job` names its waiting or running refit; after it, the index has learnt from its documents.
    """
    target = service.visible.aliases().get(name, name)
    for status in await service.current_statuses(also=target if target != name else None):
        if status.name == target:
            job = await service.open_job(target)
            return await asyncio.to_thread(IndexDetails.of, status, job)
    raise IndexNotFound(f"no index `{name}`; list indexes with GET /indexes", field="name")


@router.patch(
    "/indexes/{name}",
    dependencies=requires("write"),
    summary="Change settings of an index",
    responses={202: {"model": SettingsAnswer, "description": "A refit will apply them"}},
)
async def update_settings(
    name: str,
    request: Request,
    response: Response,
    body: SettingsBody,
    service: Service,
) -> SettingsAnswer:
    """Change settings. Those that only queries use take effect on return and survive rebuilds.

    If one of the settings needs a rebuild, a refit in the background applies them all together: see
    POST /indexes/{name}/refit. docs/reference/index-settings.md says which do.
    """
    refuse_other_types(request, "application/json")
    with service.writes.slot():
        job = await service.update_settings(name, body.settings)
    if job is None:
        return SettingsAnswer(index=service.state["index"], job=None)
    response.status_code = 202
    return SettingsAnswer(index=job.index, job=job)


@router.delete("/indexes/{name}", dependencies=requires("write"), summary="Delete an index")
async def delete_index(name: str, service: Service) -> DeletedAnswer:
    """Delete an index with all its documents and generations. This cannot be undone."""
    with service.writes.slot():
        left = await service.delete_index(name)
    return DeletedAnswer(name=name, files_left=left)


class SynonymsBody(RequestModel):
    """The body of PUT and PATCH /indexes/{name}/synonyms."""

    synonyms: dict[Text, list[Text]] | list[Text] = Field(
        description="synonyms by word, or rules: words that stand for each other, or one way; "
        "at most 10,000 words with 100 synonyms each, of 100 characters",
        examples=[["tv, television", "phone => iphone, galaxy"]],
    )


class SynonymsAnswer(Answer):
    """The synonyms of an index."""

    index: str
    synonyms: dict[str, list[str]] = Field(description="synonyms by word or sequence of words")


class SynonymsSet(Answer):
    """Result of changing synonyms."""

    index: str
    words: int = Field(description="number of words with synonyms")


@router.get("/indexes/{name}/synonyms", dependencies=requires("search"), summary="List synonyms")
async def synonyms(name: str, service: Service) -> SynonymsAnswer:
    """List the synonyms of an index by word."""

    def answer(index: Index) -> SynonymsAnswer:
        synonyms = {word: list(others) for word, others in index.synonyms.items()}
        return SynonymsAnswer(index=index.name, synonyms=synonyms)

    return await service.answer(name, answer)


@router.put(
    "/indexes/{name}/synonyms",
    dependencies=requires("write"),
    summary="Set synonyms",
    response_model=SynonymsSet,
)
async def put_synonyms(name: str, body: SynonymsBody, service: Service) -> Response:
    """Replace the synonyms of an index. They take effect on return and survive rebuilds.

    Pass an object with the synonyms of each word, or a list of rules as in Solr and Elasticsearch.
    """
    return await _change(name, lambda index: index.set_synonyms(body.synonyms), service)


@router.patch(
    "/indexes/{name}/synonyms",
    dependencies=requires("write"),
    summary="Add synonyms",
    response_model=SynonymsSet,
)
async def patch_synonyms(name: str, body: SynonymsBody, service: Service) -> Response:
    """Add synonyms to those of an index. Words keep the synonyms that they have.

    Concurrent additions do not lose each other's words. The body has the form of PUT.
    """
    return await _change(name, lambda index: index.add_synonyms(body.synonyms), service)


@router.delete(
    "/indexes/{name}/synonyms",
    dependencies=requires("write"),
    summary="Remove all synonyms",
    response_model=SynonymsSet,
)
async def delete_synonyms(name: str, service: Service) -> Response:
    """Remove all synonyms of an index, if there are any."""
    return await _change(name, lambda index: index.set_synonyms({}), service)


async def _change(name: str, change: Callable[[Index], None], service: IndexService) -> Response:
    def answer(index: Index) -> bytes:
        return encoded(SynonymsSet(index=index.name, words=len(index.synonyms)))

    return await service.configure(name, change, answer)


class SpectrumAnswer(Answer):
    """The eigenvalues of the document kernel that were computed."""

    index: str
    generation: str
    eigenvalues: list[float] = Field(description="eigenvalues, largest first")
    explained: list[float] = Field(
        description="cumulative share of the trace, the sum of all eigenvalues"
    )

    @classmethod
    def of(cls, index: Index) -> SpectrumAnswer:
        """Return the spectrum of an index."""
        values = index.arrays.eigenvalues
        captured = index.manifest.spectra["bm25"].captured
        sums = np.cumsum(values)
        shares = sums * (captured / sums[-1]) if len(sums) and sums[-1] else np.zeros(len(sums))
        return cls(
            index=index.name,
            generation=index.generation,
            eigenvalues=values.tolist(),
            explained=shares.tolist(),
        )


@router.get("/indexes/{name}/spectrum", dependencies=requires("search"), summary="Get the spectrum")
async def spectrum(name: str, service: Service) -> SpectrumAnswer:
    """Return the eigenvalues of an index and the share of the trace they explain."""
    return await service.answer(name, SpectrumAnswer.of)


@router.post(
    "/indexes/{name}/refit",
    dependencies=requires("write"),
    summary="Refit an index",
    status_code=202,
)
async def begin_refit(name: str, request: Request, body: RefitBody, service: Service) -> Job:
    """Rebuild an index from its documents in the background, after other refits. Searches continue.

    GET /jobs/{id} returns the progress. If a refit of the index is waiting or running, its job is
    returned, and no other is started.
    """
    refuse_other_types(request, "application/json")
    return await service.refit(name)


class AliasBody(RequestModel):
    """The body of PUT /aliases/{name}."""

    index: Name = Field(description="index to point at")


class AliasAnswer(Answer):
    """One alias."""

    name: str
    index: str = Field(description="index that it points at")


class AliasList(Answer):
    """All aliases."""

    aliases: list[AliasAnswer]


@router.get("/aliases", dependencies=requires("search", "write"), summary="List aliases")
async def aliases(service: Service) -> AliasList:
    """List aliases and their indexes."""
    aliases = service.visible.aliases().items()
    return AliasList(aliases=[AliasAnswer(name=name, index=index) for name, index in aliases])


@router.put("/aliases/{name}", dependencies=requires("write"), summary="Set an alias")
async def put_alias(name: str, body: AliasBody, service: Service) -> AliasAnswer:
    """Point an alias at an index. The change is atomic: requests use the old index or the new."""
    with service.writes.slot():
        await service.change_aliases(lambda catalog: catalog.set_alias(name, body.index))
    return AliasAnswer(name=name, index=body.index)


@router.delete("/aliases/{name}", dependencies=requires("write"), summary="Remove an alias")
async def delete_alias(name: str, service: Service) -> AliasList:
    """Remove an alias and list those left; its index is kept."""
    with service.writes.slot():
        await service.change_aliases(lambda catalog: catalog.remove_alias(name))
    return await aliases(service)


MAX_WAIT: Final = 30.0
"""Maximum seconds that a request waits for the end of a job."""

INTERVAL: Final = 0.25
"""Seconds between two looks at a job that a request waits for; it occupies no thread."""

JobId = Annotated[int, Path(ge=1, description="ID of a job")]


class JobsRequest(RequestModel):
    """The parameters of GET /jobs."""

    index: Annotated[Name, Field(description="only jobs of this index")] | None = None


class JobList(Answer):
    """Jobs, newest first."""

    jobs: list[Job]


@router.get("/jobs", dependencies=requires("write"), summary="List jobs")
async def jobs(
    params: Annotated[JobsRequest, Depends(JobsRequest.of_url)], service: Service
) -> JobList:
    """List jobs, newest first, of all indexes or of one. The last 100 are kept over restarts."""
    jobs = await service.all_jobs(params.index)
    return JobList(jobs=jobs)


class JobRequest(RequestModel):
    """The parameters of GET /jobs/{id}."""

    wait: float = Field(
        0, ge=0, le=MAX_WAIT, description="answer when the job has ended, or after these seconds"
    )


@router.get("/jobs/{id}", dependencies=requires("write"), summary="Get a job")
async def job(
    id: JobId, params: Annotated[JobRequest, Depends(JobRequest.of_url)], service: Service
) -> Job:
    """Return the state and progress of a job, at once or when it has ended."""
    end = monotonic() + params.wait
    while True:
        answer = await service.job(id)
        left = end - monotonic()
        if left <= 0 or answer.has_ended:
            return answer
        await asyncio.sleep(min(INTERVAL, left))


@router.delete(
    "/jobs/{id}", dependencies=requires("write"), summary="Cancel a job", status_code=202
)
async def cancel_job(id: JobId, service: Service) -> Job:
    """Cancel a job, which leaves its index unchanged. An ended job stays as it is.

    A running job is reported as cancelled a moment later, or as done if it was finished before.
    """
    return await service.job(id, cancel=True)
