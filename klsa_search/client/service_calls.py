"""Calls about a service as a whole: its indexes, tenant tokens and jobs."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

from pydantic import TypeAdapter

from klsa_search.client.protocol import Call, path_part
from klsa_search.client.results import IndexInfo, Job

_WAIT: Final = 20.0
"""Seconds that the service waits for the end of a job before it answers, at most."""

_INDEXES: Final = TypeAdapter(list[IndexInfo])
_INDEX: Final = TypeAdapter(IndexInfo)
_JOB: Final = TypeAdapter(Job)
_JOBS: Final = TypeAdapter(list[Job])

_IDEMPOTENT: Final = frozenset({"GET", "PUT"})

INDEXES_CALL: Final = Call(
    "GET", "/indexes", lambda answer: _INDEXES.validate_python(answer["indexes"])
)


def any_call(
    method: str, path: str, query: Mapping[str, Any] | None, body: Any, idempotent: bool | None
) -> Call[Any]:
    """Return the call of any request of the API."""
    is_idempotent = method.upper() in _IDEMPOTENT if idempotent is None else idempotent
    return Call(method, path, lambda answer: answer, body, query or {}, is_idempotent=is_idempotent)


def create_call(name: str, settings: Mapping[str, Any]) -> Call[IndexInfo]:
    """Return the call that creates an index."""
    body = {"name": name, "settings": dict(settings)}
    return Call("POST", "/indexes", _INDEX.validate_python, body, is_idempotent=False)


def delete_call(name: str) -> Call[str]:
    """Return the call that deletes an index."""
    path = f"/indexes/{path_part(name)}"
    return Call("DELETE", path, lambda answer: str(answer["name"]), is_idempotent=False)


def tenant_token_call(filters: Mapping[str, str | Mapping[str, Any]], expires_in: int) -> Call[str]:
    """Return the call that creates a tenant token."""
    body = {"filters": dict(filters), "expires_in": expires_in}
    return Call("POST", "/tenant-tokens", lambda answer: str(answer["token"]), body)


def jobs_call(index: str | None) -> Call[list[Job]]:
    """Return the call that lists jobs, of one index or of all."""
    query = {"index": index}
    return Call("GET", "/jobs", lambda answer: _JOBS.validate_python(answer["jobs"]), query=query)


def job_call(id_: int, method: str = "GET") -> Call[Job]:
    """Return the call about one job: GET, or DELETE to cancel it."""
    return Call(method, f"/jobs/{id_}", _JOB.validate_python)


def wait_call(id_: int, deadline: float) -> Call[Job]:
    """Return the call for a job that is answered when it has ended, or soon after the deadline."""
    seconds = min(_WAIT, max(deadline - time.monotonic(), 0.0))
    return Call("GET", f"/jobs/{id_}", _JOB.validate_python, query={"wait": f"{seconds:.3f}"})


def deadline_of(timeout: float | None) -> float:
    """Return the time, in seconds of `monotonic`, at which a timeout expires."""
    return float("inf") if timeout is None else time.monotonic() + timeout


def has_ended(job: Job, deadline: float) -> bool:
    """Return whether a job has ended; TimeoutError after the deadline."""
    if not job.has_ended and time.monotonic() > deadline:
        raise TimeoutError(
            f"job {job.id} has not ended (state `{job.state}`); wait again, or cancel it"
        )
    return job.has_ended
