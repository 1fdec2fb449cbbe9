"""Answers about the service: health, readiness and the root."""

from __future__ import annotations

from pydantic import Field

from klsa_search.core.service_reports import Job
from klsa_search.service.schemas.index_answers import IndexSummary
from klsa_search.service.schemas.replication_answers import ReplicationAnswer
from klsa_search.service.schemas.responses import Answer


class Health(Answer):
    """State of the service and of its indexes."""

    ok: bool = Field(description="whether at least one index can be searched")
    degraded: bool = Field(
        description="whether an index is not up to date or damaged, the last write to one failed, "
        "or there are `faults`"
    )
    version: str
    indexes: list[IndexSummary]
    sums: dict[str, str] = Field(
        description="state of the checksum comparison of the files of each open index: "
        "checking, whole, damaged or stopped"
    )
    refits: dict[str, Job] = Field(
        description="last refit of each index, automatic (`klsa-serve --refit-threshold`) or "
        "requested (POST /indexes/{{name}}/refit)"
    )
    backup: ReplicationAnswer | None = Field(
        None, description="last backup of a service with `klsa-serve --backup`; else null"
    )
    follow: ReplicationAnswer | None = Field(
        None, description="what a service with `klsa-serve --follow` serves; else null"
    )
    faults: list[str] = Field(
        [],
        description="why writes fail, until one succeeds, and why files with the state of jobs, "
        "backups or following cannot be read; searches do not need them",
    )


class Alive(Answer):
    """Liveness."""

    ok: bool


class Readiness(Answer):
    """Readiness."""

    ok: bool
    served: int = Field(description="number of indexes that can be searched")
    failing: int = Field(
        description="number of indexes that cannot be searched or are damaged: see /health"
    )


class Links(Answer):
    """Links to the main endpoints."""

    search: str
    indexes: str
    health: str
    docs: str


class Welcome(Answer):
    """Name, version and links of the service."""

    name: str
    version: str
    links: Links
