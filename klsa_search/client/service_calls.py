"""The calls about a service as a whole: its indexes, searches of several, tokens and jobs."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any, Final

from pydantic import TypeAdapter

from klsa_search.client import answers
from klsa_search.client.index_calls import search_body
from klsa_search.client.protocol import Call, path_part
from klsa_search.client.results import FederatedResults, IndexInfo
from klsa_search.core.jobs import Job
from klsa_search.search.pages.options import Query
from klsa_search.search.pages.results import SearchResults

_WAIT: Final = 20.0
"""Seconds that the service waits for the end of a job before it answers, at most."""

_INDEXES: Final = TypeAdapter(list[IndexInfo])
_JOB: Final = TypeAdapter(Job)
_JOBS: Final = TypeAdapter(list[Job])

_IDEMPOTENT: Final = frozenset({"GET", "PUT"})


class ServiceCalls:
    """The calls about a service; their methods are those of the clients."""

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        idempotent: bool | None = None,
    ) -> Call[Any]:
        """Send any request of the HTTP API, and return the JSON of its answer.

        method      such as "GET"
        path        such as "/indexes"
        query       parameters of the URL, without those that are None
        body        JSON
        idempotent  whether it gives the same result if it is processed twice, so that it may be
                    sent again if its answer was lost; by default for GET and PUT
        """
        repeats = method.upper() in _IDEMPOTENT if idempotent is None else idempotent
        return Call(method, path, lambda answer: answer, body, query or {}, is_idempotent=repeats)

    def indexes(self) -> Call[list[IndexInfo]]:
        """Return all indexes that the key may see."""
        return Call("GET", "/indexes", lambda answer: _INDEXES.validate_python(answer["indexes"]))

    def create_index(self, name: str, settings: Mapping[str, Any]) -> Call[None]:
        """Create an empty index."""
        body = {"name": name, "settings": dict(settings)}
        return Call("POST", "/indexes", answers.checked_for("name"), body, is_idempotent=False)

    def delete_index(self, name: str) -> Call[None]:
        """Delete an index with all its documents; IndexNotFound."""
        path = f"/indexes/{path_part(name)}"
        return Call("DELETE", path, answers.checked_for("name"), is_idempotent=False)

    def tenant_token(
        self, filters: Mapping[str, str | Mapping[str, Any]], *, expires_in: int = 3600
    ) -> Call[str]:
        """Return a token that finds only the documents of the filters, for the users of one tenant.

        filters     filters by index, as text or JSON; the token is for these indexes only
        expires_in  lifetime in seconds, at most a day
        Create it on your server and send it to their browser. QueryError for an invalid filter,
        IndexNotFound, InsufficientScope.
        """
        body = {"filters": dict(filters), "expires_in": expires_in}
        return Call("POST", "/tenant-tokens", lambda answer: str(answer["token"]), body)

    def multi_search(self, queries: Iterable[Mapping[str, Any]]) -> Call[list[SearchResults]]:
        """Run several searches, of any indexes, in one request.

        queries  parameters of each: `index`, `q`, `k` and those of `Index.search`
        """
        return Call(
            "POST",
            "/multi-search",
            lambda answer: [answers.results_of(result) for result in answer["results"]],
            {"queries": [_query_body(query) for query in queries]},
        )

    def federated_search(
        self, queries: Iterable[Mapping[str, Any]], limit: int = 20, offset: int = 0
    ) -> Call[FederatedResults]:
        """Run several searches in one request, and merge their hits by rank.

        queries  parameters of each: `index`, `q`, `weight`, and those of `Index.search` without `k`
        A search with weight 2 contributes about two hits for each hit of one with weight 1.
        """
        bodies = [_query_body(query) for query in queries]
        for body in bodies:
            del body["k"]
        merged = {"queries": bodies, "federation": {"limit": limit, "offset": offset}}
        return Call("POST", "/multi-search", answers.federated_results_of, merged)

    def jobs(self, index: str | None = None) -> Call[list[Job]]:
        """Return the jobs of all indexes, or of one, newest first."""
        query = {"index": index}
        return Call(
            "GET", "/jobs", lambda answer: _JOBS.validate_python(answer["jobs"]), query=query
        )

    def job(self, id: int) -> Call[Job]:  # noqa: A002 - as in `Job`
        """Return a job; JobNotFound."""
        return Call("GET", f"/jobs/{id}", _JOB.validate_python)

    def cancel_job(self, id: int) -> Call[Job]:  # noqa: A002 - as in `Job`
        """Cancel a job, and return it; a running one ends soon after. JobNotFound."""
        return Call("DELETE", f"/jobs/{id}", _JOB.validate_python)

    def wait(self, job: Job, deadline: float) -> Call[Job]:
        """Return a job when it has ended, or soon after the deadline."""
        seconds = min(_WAIT, max(deadline - time.monotonic(), 0.0))
        query = {"wait": f"{seconds:.3f}"}
        return Call("GET", f"/jobs/{job.id}", _JOB.validate_python, query=query)


def _query_body(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of one of several searches; parameters of the service alone stay as are."""
    options = dict(parameters)
    index, text = options.pop("index", None), options.pop("q", "")
    extra = {name: options.pop(name) for name in options.keys() - Query.model_fields.keys()}
    return search_body(index, Query(text, **options)) | extra


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
