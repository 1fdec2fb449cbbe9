"""Answers about indexes and the service: details, health, readiness, replication, the root."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import Field

from klsa_search.core.service_reports import Job
from klsa_search.errors import StoreError
from klsa_search.search.index import Index
from klsa_search.service.background import Replication
from klsa_search.service.schemas.base import Answer
from klsa_search.service.served_index import Status
from klsa_search.storage.manifest import (
    ColumnEntry,
    Counts,
    LanguageEntry,
    SpaceEntry,
    SpectrumEntry,
)
from klsa_search.storage.repository import ReplicationState


class ReplicationAnswer(Answer):
    """The backup that was last written, or that a follower serves."""

    number: int | None = Field(description="its number; null before the first")
    created: str | None = Field(description="time of its content: UTC, ISO 8601")
    seconds: float | None = Field(description="seconds since then: for a follower, its lag")
    newest: int | None = Field(description="number of the newest backup that was seen")
    directory: str | None = Field(description="ID of the index directory that wrote the backup")
    ignored: int | None = Field(
        description="number of the newest backup if another index directory wrote it, which is "
        "not followed; else null"
    )


def replication_answers(
    replications: Sequence[Replication],
) -> tuple[dict[str, ReplicationAnswer], list[str]]:
    """Return the states of replications by work, and why some cannot be read.

    Cost: reading a small file for each.
    """
    answers: dict[str, ReplicationAnswer] = {}
    faults = []
    for replication in replications:
        state = None
        try:
            state = replication.state()
        except StoreError as fault:
            faults.append(fault.message)
        answer = ReplicationAnswer.model_validate(state or ReplicationState(""))
        answers[replication.work] = answer
    return answers, faults


class DriftAnswer(Answer):
    """Drift of an index: how far it is from its build."""

    added: int = Field(description="live documents added after the build")
    deleted: int = Field(description="documents of the build that were deleted or replaced")
    added_share: float = Field(
        description="share of the live documents that were added after the build"
    )
    changed_share: float = Field(
        description="share of all documents, past and present, that were added, replaced or "
        "deleted after the build"
    )
    unseen_share: float = Field(
        description="share of the words of added documents that the build does not know"
    )
    max_doc: int = Field(description="number of doc ids, including deleted documents")
    bytes: int = Field(description="bytes of memory of the delta index")
    segments: int = Field(description="segments of the postings, including that of the build")
    log_position: int = Field(
        description="position in the log of writes up to which it is searchable"
    )

    @classmethod
    def of(cls, index: Index) -> DriftAnswer:
        """Return the drift of a snapshot of an index."""
        drift = index.drift
        return DriftAnswer(
            added=drift.added,
            deleted=drift.deleted,
            added_share=round(drift.added_share(len(index)), 6),
            changed_share=round(drift.changed_share(len(index)), 6),
            unseen_share=round(drift.unseen_share, 6),
            max_doc=index.max_doc,
            bytes=drift.bytes,
            segments=index.segments,
            log_position=index.last_write.seq,
        )


class IndexSummary(Answer):
    """One index in short. `ok` is false if the newest generation cannot be opened; `error` says
    why, and the other fields are those of the generation still served, or null.
    """

    name: str
    title: str = Field(description="its setting `page_title`; blank if it has none")
    ok: bool
    error: str | None
    generation: str | None
    documents: int | None
    drift: DriftAnswer | None = Field(description="what was written after the generation was built")

    @classmethod
    def of(cls, status: Status) -> IndexSummary:
        """Summarise an index of the service."""
        index = status.index
        return IndexSummary(
            name=status.name,
            title=index.settings.page_title if index is not None else "",
            ok=status.failure is None,
            error=status.failure,
            generation=index.generation if index is not None else None,
            documents=len(index) if index is not None else None,
            drift=DriftAnswer.of(index) if index is not None else None,
        )


class IndexDetails(IndexSummary):
    """One index with the facts of its manifest; null if no generation is served."""

    source: str | None
    created: str | None = Field(description="time of the build: UTC, ISO 8601")
    fingerprint: str | None = Field(description="fingerprint of documents and settings")
    settings: dict[str, Any] | None
    detected_languages: list[LanguageEntry] = Field(
        description="languages of the documents, and their shares of the text, as the build "
        "detected them, the commonest first; empty if the settings named a language, or if there "
        "was too little text to tell"
    )
    counts: Counts | None
    passages: int | None = Field(
        description="number of passages; null if documents are not divided into passages"
    )
    fields: dict[str, ColumnEntry] | None = Field(
        description="filterable metadata fields, for filters, sorting and facets, as built"
    )
    vectors: list[SpaceEntry] | None = Field(
        description="spaces of vectors, with their dimension and the numbers of vectors and of "
        "documents that have any"
    )
    bytes: int | None = Field(description="bytes on disk of the build")
    spectra: dict[str, SpectrumEntry] | None
    job: int | None = Field(
        description="ID of its waiting or running job, which learns from the documents: "
        "GET /jobs/{id}"
    )

    @classmethod
    def of(cls, status: Status, job: int | None = None) -> IndexDetails:
        """Describe an index of the service and its manifest; `job` is that of a waiting job."""
        summary, index = IndexSummary.of(status).model_dump(), status.index
        if index is None:
            absent = dict.fromkeys(IndexDetails.model_fields.keys() - summary.keys())
            return IndexDetails(**summary, **absent | {"detected_languages": [], "job": job})
        manifest = index.manifest
        return IndexDetails(
            **summary,
            source=manifest.source,
            created=manifest.build.created,
            fingerprint=manifest.fingerprint,
            settings=index.settings.model_dump(mode="json"),
            detected_languages=manifest.detected,
            counts=manifest.counts,
            passages=index.passage_count,
            fields=_columns(index),
            vectors=list(index.vector_spaces),
            bytes=manifest.bytes(),
            spectra=manifest.spectra,
            job=job,
        )


def _columns(index: Index) -> dict[str, ColumnEntry]:
    """Return the columns as built, with their current numbers of values of other types."""
    mismatches = index.type_mismatches
    return {
        name: column.model_copy(update={"type_mismatches": mismatches[name]})
        for name, column in index.manifest.fields.columns.items()
    }


class IndexList(Answer):
    """All indexes of the index directory."""

    writable: bool = Field(description="whether this request could write")
    indexes: list[IndexSummary]
    follow: ReplicationAnswer | None = Field(
        None, description="what a service with `klsa-serve --follow` serves; else null"
    )


class Health(Answer):
    """State of the service and of its indexes."""

    ok: bool = Field(description="whether at least one index can be searched")
    degraded: bool = Field(
        description="whether an index is not up to date or damaged, the last write to one failed, "
        "or there are `faults`"
    )
    version: str
    indexes: list[IndexSummary]
    checksums: dict[str, str] = Field(
        description="state of the checksum comparison of the files of each open index: "
        "checking, verified, damaged or stopped"
    )
    refits: dict[str, Job] = Field(
        description="last refit of each index, automatic (`klsa-serve --refit-threshold`) or "
        "requested (POST /indexes/{name}/refit)"
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
