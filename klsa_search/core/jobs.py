"""Work of a service on an index in the background, as it reports it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pydantic import ConfigDict

Setting = bool | int | float | str | list[str] | dict[str, str | float]
"""The value of a setting of an index."""

JobState = Literal["waiting", "running", "done", "failed", "cancelled"]
JobKind = Literal["refit"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Work of a service on an index in the background.

    kind         kind of work; "refit" rebuilds an index
    state        waiting, running, done, failed or cancelled
    generation   generation that is rebuilt
    built        generation that was built instead; None unless it is done
    settings     settings that it changes
    begun        time of its start, or of its request while it waits: UTC, ISO 8601
    phase        current phase of the build, or the one in which it failed; None before the first,
                 and when it is done
    done, total  amount of that phase; `total` is None if unknown
    seconds      duration; None before its end, and if the service ended first
    error        why it failed, in one sentence; an automatic refit will be retried

    >>> with Client(url) as client:
    ...     job: Job = client.index("reports").refit()
    ...     job = client.cancel_job(job.id)  # or client.wait(job)
    >>> job.kind, job.state
    ('refit', 'cancelled')
    """

    __pydantic_config__ = ConfigDict(json_schema_serialization_defaults_required=True)

    id: int
    kind: JobKind = "refit"
    index: str
    state: JobState
    generation: str
    built: str | None = None
    settings: Mapping[str, object] = field(default_factory=dict)
    begun: str
    phase: str | None = None
    done: int = 0
    total: int | None = None
    seconds: float | None = None
    error: str | None = None

    @property
    def has_ended(self) -> bool:
        """Whether it is done, failed or cancelled."""
        return self.state not in ("waiting", "running")
