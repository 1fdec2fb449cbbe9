"""Endpoints of jobs: work on indexes in the background."""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Path
from pydantic import Field

from klsa_search.core.service_reports import Job
from klsa_search.service.dependencies import Service, requires
from klsa_search.service.schemas.requests import Name, RequestModel
from klsa_search.service.schemas.responses import Answer

router = APIRouter(dependencies=requires("write"))

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


@router.get("/jobs", summary="List jobs")
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


@router.get("/jobs/{id}", summary="Get a job")
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


@router.delete("/jobs/{id}", summary="Cancel a job", status_code=202)
async def cancel_job(id: JobId, service: Service) -> Job:
    """Cancel a job, which leaves its index unchanged. An ended job stays as it is.

    A running job is reported as cancelled a moment later, or as done if it was finished before.
    """
    return await service.job(id, cancel=True)
