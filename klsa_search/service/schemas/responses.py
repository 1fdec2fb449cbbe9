"""Response models of documents, writes and indexes, and the maximum size of a response.

A response is encoded in one call that holds the GIL: neither deadlines nor /health nor signals are
handled meanwhile, so its size is checked first.
"""

from __future__ import annotations

from collections.abc import Sequence
from json.encoder import encode_basestring
from time import perf_counter
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field

from klsa_search.errors import QueryError, StoreError
from klsa_search.search.excerpts import Excerpt
from klsa_search.search.index import Index
from klsa_search.service.catalog import Status
from klsa_search.service.job_ledger import JobKind, JobState
from klsa_search.service.replication import Replication
from klsa_search.storage.manifest import (
    ColumnEntry,
    Counts,
    LanguageEntry,
    SpaceEntry,
    SpectrumEntry,
)
from klsa_search.storage.replication_state import ReplicationState


class Answer(BaseModel):
    """Base of all response bodies."""

    model_config = ConfigDict(frozen=True, from_attributes=True, ser_json_inf_nan="null")


def elapsed(begin: float) -> float:
    """Return the milliseconds since `begin`, in seconds of `perf_counter`."""
    return round(1000 * (perf_counter() - begin), 3)


class DocumentAnswer(Answer):
    """One document, or a part of it: the fields from `document_id` on are only those of a part."""

    id: str = Field(description="ID of the document, or of the part, such as `manual#0-1822`")
    index: str
    generation: str
    title: str
    text: str
    metadata: dict[str, Any]
    document_id: str | None = None
    span: tuple[int, int] | None = Field(None, description="characters in the document")
    page: int | None = Field(
        None, description="page of the beginning, from 1, if the document has pages"
    )
    heading: str | None = Field(None, description="path of the headings at the beginning")

    @classmethod
    def of(cls, found: Excerpt, index: Index) -> DocumentAnswer:
        """Return a document or a part of one; fields of parts are unset in a whole document."""
        names = ["id", "title", "text"]
        if found.is_part:
            names += ["document_id", "span", "heading"]
            if found.page is not None:
                names.append("page")
        given = {name: getattr(found, name) for name in names}
        return cls(
            index=index.name,
            generation=index.generation,
            metadata=dict(found.metadata),
            **given,
        )


class WarningAnswer(Answer):
    """A value of the wrong type for its field: the document is kept, the value is missing."""

    id: str = Field(description="ID of the document")
    field: str
    message: str


class WriteAnswer(Answer):
    """Result of a write, which is durable and searchable when it is answered."""

    index: str
    generation: str = Field(description="generation that was written to")
    added: int = Field(description="documents added or replaced")
    deleted: int = Field(description="documents deleted")
    log_position: int = Field(description="position of the last row in the log of writes")
    warnings: list[WarningAnswer] = Field(
        [],
        description="values of the wrong type for their fields; filters, sorting and facets "
        "ignore them",
    )
    time_ms: float


class SyncIdsAnswer(Answer):
    """IDs of the documents that a sync wrote."""

    added: list[str]
    changed: list[str]
    deleted: list[str]


class CountedWarnings(Answer):
    """Values of the wrong type for their fields, which count as missing."""

    count: int
    first: list[str] = Field(description="the first ones")
    kinds: dict[str, int] = Field(description="number of them by field")


class SyncAnswer(Answer):
    """Result of a sync, which is durable and searchable when it is answered."""

    index: str
    generation: str
    added: int = Field(description="documents added")
    changed: int = Field(description="documents replaced, because they differed")
    deleted: int = Field(description="documents deleted, because the body does not have them")
    unchanged: int = Field(description="documents that were equal already; not written")
    batches: int = Field(description="batches in the log of writes; 0 if nothing was written")
    removed_fields: list[str] = Field(
        description="metadata fields that changed documents had, and no document of the body has"
    )
    dry_run: bool
    ids: SyncIdsAnswer | None = Field(None, description="with `list`: the IDs")
    log_position: int = Field(description="position of the last row in the log of writes")
    warnings: CountedWarnings
    time_ms: float


class LineAnswer(Answer):
    """Result of one line of a stream; names without a value are left out."""

    line: int = Field(description="line number from 1, counting blank lines")
    ok: bool
    id: str | None = None
    generation: str | None = Field(None, description="generation that the document was written to")
    log_position: int | None = Field(None, description="position of its row in the log of writes")
    warnings: list[dict[str, str]] | None = Field(
        None, description="values of the document of the wrong type for their fields"
    )
    error: dict[str, str | None] | None = Field(None, description="error, as in an error response")


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
        """Summarise an index of the catalog."""
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
    detected_language: LanguageEntry | None = Field(
        description="language of most of the text, and its share of it, as the build detected it; "
        "null if the settings named a language, or if there was too little text to tell"
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
        """Describe an index of the catalog and its manifest; `job` is that of a waiting job."""
        index = status.index
        manifest = index.manifest if index is not None else None
        return IndexDetails(
            **IndexSummary.of(status).model_dump(),
            source=manifest.source if manifest else None,
            created=manifest.build.created if manifest else None,
            fingerprint=manifest.fingerprint if manifest else None,
            settings=index.settings.model_dump(mode="json") if index is not None else None,
            detected_language=manifest.detected if manifest else None,
            counts=manifest.counts if manifest else None,
            passages=index.passage_count if index is not None else None,
            fields=_columns(status.index) if status.index is not None else None,
            vectors=list(index.vector_spaces) if index is not None else None,
            bytes=manifest.bytes() if manifest else None,
            spectra=manifest.spectra if manifest else None,
            job=job,
        )


def _columns(index: Index) -> dict[str, ColumnEntry]:
    """Return the columns as built, with their current number of misfits."""
    misfits = index.misfits
    return {
        name: column.model_copy(update={"misfits": misfits[name]})
        for name, column in index.manifest.fields.columns.items()
    }


class JobAnswer(Answer):
    """A job: work on an index in the background, automatic or requested."""

    id: int
    kind: JobKind = Field(description="kind of work; `refit` rebuilds an index")
    index: str
    state: JobState
    generation: str = Field(description="generation that is rebuilt")
    built: str | None = Field(description="generation that was built; null unless the job is done")
    settings: dict[str, Any] = Field(description="settings that it changes")
    begun: str = Field(
        description="time of its start, or of its request while it waits: UTC, ISO 8601"
    )
    phase: str | None = Field(
        description="phase of the build; null before the first, and after the last"
    )
    done: int = Field(description="amount of that phase that is done")
    total: int | None = Field(description="total amount of that phase, if known")
    seconds: float | None = Field(
        description="duration; null before its end, and if the service ended first"
    )
    error: str | None = Field(description="why it failed; an automatic refit will be retried")


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

    @classmethod
    def of(cls, state: ReplicationState | None) -> ReplicationAnswer:
        """Return the state of a replication; None before its first attempt."""
        state = state or ReplicationState("")
        return cls(
            number=state.number,
            created=state.created,
            seconds=state.age(),
            newest=state.newest,
            directory=state.directory,
            ignored=state.ignored,
        )


def replication_answers(
    replications: Sequence[Replication],
) -> tuple[dict[str, ReplicationAnswer], list[str]]:
    """Return the states of replications by work, and why some cannot be read.

    Cost: reading a small file for each.
    """
    states: dict[str, ReplicationState | None] = {}
    faults = []
    for each in replications:
        states[each.work] = None
        try:
            states[each.work] = each.state()
        except StoreError as fault:
            faults.append(fault.message)
    return {work: ReplicationAnswer.of(state) for work, state in states.items()}, faults


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
    sums: dict[str, str] = Field(
        description="state of the checksum comparison of the files of each open index: "
        "checking, whole, damaged or stopped"
    )
    refits: dict[str, JobAnswer] = Field(
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


MAX_ANSWER: Final = 2**25
"""Maximum bytes of the JSON of an answer: 0.1 s to encode, enough for a document of 30 MB."""

_NUMBER: Final = 25
"""Maximum bytes of a number, true, false or null, with a separator."""

_DELIMITERS: Final = 6
"""Maximum bytes of quotes or brackets, with separators."""

_SCALARS: Final = (float, int, type(None))
_CONTAINERS: Final = (dict, list, tuple)


def refuse_too_large(answer: BaseModel) -> None:
    """Raise QueryError if an answer would take more than `MAX_ANSWER` bytes.

    Cost: some microseconds a hit, at most that of `MAX_ANSWER` bytes.
    """
    if _exceeds(answer):
        raise too_large()


def too_large() -> QueryError:
    """Return the error for an answer that is too large."""
    return QueryError(
        f"the answer is larger than {MAX_ANSWER:,} bytes; request less at a time, "
        "or read the index in Python (klsa_search.open_index)"
    )


def _exceeds(answer: BaseModel) -> bool:
    left = MAX_ANSWER
    waiting: list[object] = [answer]
    while waiting and left >= 0:
        value = waiting.pop()
        if isinstance(value, str):
            left -= _DELIMITERS + _width(value)
        elif isinstance(value, _SCALARS):
            left -= _NUMBER
        else:
            left -= _DELIMITERS
            if not isinstance(value, _CONTAINERS):
                value = vars(value)  # of a model
            waiting += value
            if isinstance(value, dict):
                waiting += value.values()
    return left < 0


def _width(text: str) -> int:
    # A longer text is not encoded, as its length alone exceeds the limit.
    return len(text) if len(text) > MAX_ANSWER else len(encode_basestring(text).encode())
