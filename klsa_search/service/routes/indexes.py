"""Endpoints of indexes: create, list, change, refit, delete; their aliases and jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from time import monotonic
from typing import Annotated, Final, TypeVar

from fastapi import Path, Response
from pydantic import Field

from klsa_search.analysis.analyzer import Analyzer
from klsa_search.core.config import Settings
from klsa_search.core.parameters import Text
from klsa_search.core.service_reports import Job, Setting
from klsa_search.errors import IndexExists, IndexNotFound, KlsaError, QueryError, SettingsError
from klsa_search.indexing.build import build
from klsa_search.search.configuration import change_settings, needing_refit
from klsa_search.search.index import Index
from klsa_search.search.rankers import needs_eigenvectors
from klsa_search.service.dependencies import Service, router_for
from klsa_search.service.index_service import IndexService, settings_from_client
from klsa_search.service.job_ledger import job_not_found
from klsa_search.service.jobs import Jobs
from klsa_search.service.open_indexes import OpenIndexes
from klsa_search.service.schemas.base import Answer, Name, RequestModel
from klsa_search.service.schemas.errors import documented
from klsa_search.service.schemas.index_answers import (
    IndexDetails,
    IndexList,
    IndexSummary,
    replication_answers,
)
from klsa_search.service.served_index import Status
from klsa_search.storage.maintenance import delete_index as remove_index
from klsa_search.storage.names import index_path, is_built

T = TypeVar("T")

reading_router = router_for("search", "write")
writing_router = router_for("write")


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


@writing_router.post(
    "/indexes", summary="Create an index", status_code=201, responses=documented(409)
)
async def create_index(body: IndexBody, service: Service) -> IndexDetails:
    """Create an empty index. Add its documents with POST /indexes/{name}/documents.

    They can be searched at once; the kernel is learnt by a refit, which starts in the background
    when enough documents were added (`klsa-serve --refit-threshold`).
    """
    name = body.name
    service.access.require("write", name)
    service.state["index"] = name

    def work() -> None:
        chosen = Settings.checked(_without_code(body.settings))
        if field := needs_eigenvectors(chosen):
            value = getattr(chosen, field)
            reason = f"{field} = {value}: no document can be added to an index with it"
            raise SettingsError(f"{reason}; leave it out", field=field)
        home = service.open_indexes.home
        if name in service.open_indexes.aliases() or is_built(index_path(home, name)):
            raise IndexExists(f"`{name}` exists already; choose another name", field="name")
        build((), name=name, home=home, **chosen.model_dump()).close()
        service.open_indexes.refresh(name)

    await _in_directory(service, work)
    return await index_details(name, service)


async def _in_directory(service: IndexService, work: Callable[[], T]) -> T:
    """Run a write to the index directory; settings are errors of the client."""
    with service.writes.slot():
        return await service.run_write("", settings_from_client()(work))


def _without_code(settings: Mapping[str, Setting]) -> Mapping[str, Setting]:
    """Return settings of a client; QueryError for a `tokenizer` that is not a plug-in."""
    if ":" in str(settings.get("tokenizer")):
        raise QueryError(
            "tokenizer cannot be a function over HTTP, because it runs code; use the name of a "
            "plug-in, or set it on the machine of the service: klsa-index build --tokenizer",
            field="tokenizer",
        )
    return settings


@reading_router.get("/indexes", summary="List indexes")
async def indexes(service: Service) -> IndexList:
    """List all indexes by name, including those that cannot be opened."""
    summaries = [IndexSummary.of(status) for status in await service.current_statuses()]
    replications, _ = await asyncio.to_thread(replication_answers, service.replications)
    follow = replications.get("follow")
    return IndexList(indexes=summaries, writable=service.may_write, follow=follow)


@reading_router.get("/indexes/{name}", summary="Get an index")
async def index_details(name: str, service: Service) -> IndexDetails:
    """Return the sizes, settings and spectrum of an index, and its drift from what it learnt.

    `job` names its waiting or running refit; after it, the index has learnt from its documents.
    """
    target = service.aliases().get(name, name)
    for status in await service.current_statuses(target if target != name else None):
        if status.name == target:
            # No thread of a pool may be free.
            return await asyncio.to_thread(_details, status, service.jobs)
    raise IndexNotFound(f"no index `{name}`; list indexes with GET /indexes", field="name")


def _details(status: Status, jobs: Jobs | None) -> IndexDetails:
    job = None if jobs is None else jobs.history().open_job(status.name)
    return IndexDetails.of(status, None if job is None else job.id)


@writing_router.patch(
    "/indexes/{name}",
    summary="Change settings of an index",
    responses={202: {"model": SettingsAnswer, "description": "A refit will apply them"}},
)
async def update_settings(
    name: str, response: Response, body: SettingsBody, service: Service
) -> SettingsAnswer:
    """Change settings. Those that only queries use take effect on return and survive rebuilds.

    If one of the settings needs a rebuild, a refit in the background applies them all together: see
    POST /indexes/{name}/refit. docs/reference/index-settings.md says which do.
    """
    jobs = service.writable_jobs

    def change(index: Index) -> Job | None:
        with settings_from_client():
            chosen = Settings.checked(
                {**index.settings.model_dump(), **_without_code(body.settings)}
            )
            if needing_refit(index.manifest.checked_settings(), chosen):
                Analyzer(chosen)  # else only the refit would find an unknown language
                return jobs.request(index.name, index.generation, body.settings)
            jobs.refuse_conflict(index.name, body.settings)
            change_settings(index.path.parent, body.settings)
        index.refresh()
        return None

    with service.writes.slot():
        job = await service.write(name, change)
    if job is None:
        return SettingsAnswer(index=service.state["index"], job=None)
    response.status_code = 202
    return SettingsAnswer(index=job.index, job=job)


@writing_router.delete("/indexes/{name}", summary="Delete an index")
async def delete_index(name: str, service: Service) -> DeletedAnswer:
    """Delete an index with all its documents and generations. This cannot be undone."""
    service.access.require("write", name)
    service.state["index"] = name

    def work() -> list[str]:
        open_indexes = service.open_indexes
        if name in open_indexes.aliases():
            raise QueryError(
                f"`{name}` is an alias; delete its index, or the alias with DELETE /aliases/{name}",
                field="name",
            )
        if all(status.name != name for status in open_indexes.statuses()):
            raise IndexNotFound(f"no index `{name}`; list indexes with GET /indexes")
        left = remove_index(index_path(open_indexes.home, name))
        open_indexes.refresh(name)
        if service.jobs is not None:
            with suppress(KlsaError):  # the index is deleted; without one, they are cancelled
                service.jobs.forget(name)
        if service.recorder is not None:
            service.recorder.forget(name)
        return [path.name for path in left]

    left = await _in_directory(service, work)
    service.write_failures.forget(name)
    return DeletedAnswer(name=name, files_left=left)


@writing_router.post("/indexes/{name}/refit", summary="Refit an index", status_code=202)
async def begin_refit(name: str, body: RefitBody, service: Service) -> Job:
    """Rebuild an index from its documents in the background, after other refits. Searches continue.

    GET /jobs/{id} returns the progress. If a refit of the index is waiting or running, its job is
    returned, and no other is started.
    """
    jobs = service.writable_jobs
    return await service.look_up(name, lambda one: jobs.request(one.name, one.generation, {}))


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


@reading_router.get("/aliases", summary="List aliases")
async def aliases(service: Service) -> AliasList:
    """List aliases and their indexes."""
    aliases = service.aliases().items()
    return AliasList(aliases=[AliasAnswer(name=name, index=index) for name, index in aliases])


@writing_router.put("/aliases/{name}", summary="Set an alias")
async def put_alias(name: str, body: AliasBody, service: Service) -> AliasAnswer:
    """Point an alias at an index. The change is atomic: requests use the old index or the new."""
    await _change_aliases(service, lambda open_indexes: open_indexes.set_alias(name, body.index))
    return AliasAnswer(name=name, index=body.index)


@writing_router.delete("/aliases/{name}", summary="Delete an alias")
async def delete_alias(name: str, service: Service) -> AliasList:
    """Delete an alias and list those left; its index is kept."""
    await _change_aliases(service, lambda open_indexes: open_indexes.delete_alias(name))
    return await aliases(service)


async def _change_aliases(service: IndexService, change: Callable[[OpenIndexes], None]) -> None:
    """Change aliases; InsufficientScope for a key that is restricted to some indexes."""
    service.access.require_all("write")
    await _in_directory(service, lambda: change(service.open_indexes))


MAX_WAIT: Final = 30.0  # maximum seconds that a request waits for the end of a job
INTERVAL: Final = 0.25
"""Seconds between two looks at a job that a request waits for; it occupies no thread."""

JobId = Annotated[int, Path(ge=1, description="ID of a job")]


class JobsRequest(RequestModel):
    """The parameters of GET /jobs."""

    index: Annotated[Name, Field(description="only jobs of this index")] | None = None


class JobList(Answer):
    """Jobs, newest first."""

    jobs: list[Job]


@writing_router.get("/jobs", summary="List jobs")
async def jobs(params: JobsRequest, service: Service) -> JobList:
    """List jobs, newest first, of all indexes or of one. The last 100 are kept over restarts."""
    jobs = service.writable_jobs
    index = params.index
    if index is not None:
        index = service.resolve("write", index)

    def work() -> list[Job]:
        visible = filter(service.has_job, jobs.history().jobs[::-1])
        return [job for job in visible if index in (None, job.index)]

    return JobList(jobs=await service.admission.run(work))


class JobRequest(RequestModel):
    """The parameters of GET /jobs/{id}."""

    wait: float = Field(
        0, ge=0, le=MAX_WAIT, description="answer when the job has ended, or after these seconds"
    )


@writing_router.get("/jobs/{id}", summary="Get a job")
async def job(id: JobId, params: JobRequest, service: Service) -> Job:
    """Return the state and progress of a job, at once or when it has ended."""
    end = monotonic() + params.wait
    while True:
        _, answer = await _visible_job(service, id)
        left = end - monotonic()
        if left <= 0 or answer.has_ended:
            return answer
        await asyncio.sleep(min(INTERVAL, left))


@writing_router.delete("/jobs/{id}", summary="Cancel a job", status_code=202)
async def cancel_job(id: JobId, service: Service) -> Job:
    """Cancel a job, which leaves its index unchanged. An ended job stays as it is.

    A running job is reported as cancelled a moment later, or as done if it was finished before.
    """
    jobs, job = await _visible_job(service, id)
    return await service.admission.run(lambda: jobs.cancel(job.id))


async def _visible_job(service: IndexService, id_: int) -> tuple[Jobs, Job]:
    """Return the jobs, and the one of this id if the request may see it; JobNotFound."""
    jobs = service.writable_jobs
    service.access.require("write")

    def work() -> Job:
        job = jobs.history().find(id_)
        if not service.has_job(job):
            raise job_not_found(id_)
        return job

    return jobs, await service.admission.run(work)
