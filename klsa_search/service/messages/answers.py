"""What is answered. Every answer is finite JSON: a NaN in a document's metadata becomes null.

Documents, writes and the state of indexes; what is found is in `found`, what is mined in `mining`.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from klsa_search.search import Index
from klsa_search.service.catalog import Status
from klsa_search.store.manifest import ColumnEntry, Counts, SpectrumEntry


class Answer(BaseModel):
    """Base of what is answered."""

    model_config = ConfigDict(frozen=True, from_attributes=True, ser_json_inf_nan="null")


def elapsed(begin: float) -> float:
    """Milliseconds since then, as answers tell them; see `perf_counter`."""
    return round(1000 * (perf_counter() - begin), 3)


class DocumentAnswer(Answer):
    """One document, whole."""

    id: str
    index: str
    generation: str
    title: str
    text: str
    metadata: dict[str, Any]


class WarningAnswer(Answer):
    """A value that does not fit its field. The document is kept; the value counts as missing."""

    id: str = Field(description="of the document")
    field: str
    message: str


class WriteAnswer(Answer):
    """What became of a write. It is on the disk, and the next request finds it so."""

    index: str
    generation: str = Field(description="whose log of writes has it")
    added: int = Field(description="documents, in the place of others or not")
    deleted: int = Field(description="documents that were there and are no more")
    log_position: int = Field(description="of its last row in that log")
    warnings: list[WarningAnswer] = Field(
        [], description="values that do not fit their fields: filters, sort and facets miss them"
    )
    time_ms: float


class LineAnswer(Answer):
    """What became of one line of a stream. Names without a value are left out."""

    line: int = Field(description="from 1, blank ones counted")
    ok: bool
    id: str | None = None
    generation: str | None = Field(None, description="whose log of writes has the document")
    log_position: int | None = Field(None, description="of its row in that log")
    warnings: list[dict[str, str]] | None = Field(
        None, description="values of the document that do not fit their fields"
    )
    error: dict[str, str | None] | None = Field(None, description="as of any failure")


class DriftAnswer(Answer):
    """How far an index has come from what was built."""

    added: int = Field(description="documents there are that came later")
    deleted: int = Field(description="documents of the build that were deleted or replaced")
    added_share: float = Field(description="of the documents there are")
    changed_share: float = Field(description="of all there are and were: came later, or gone")
    unseen_share: float = Field(description="of the words of later documents: the build has none")
    max_doc: int = Field(description="of documents, those that are gone among them")
    bytes: int = Field(description="in memory, of what came later")
    segments: int = Field(description="the postings are in, that of the build among them")
    log_position: int = Field(description="how far the log of writes was taken up")

    @classmethod
    def of(cls, index: Index) -> DriftAnswer:
        """Tell it of one state of an index, which is pinned."""
        drift = index.drift
        return DriftAnswer(
            added=drift.added,
            deleted=drift.deleted,
            added_share=round(drift.added_share(len(index)), 6),
            changed_share=round(drift.changed_share(len(index)), 6),
            unseen_share=round(drift.unseen_share, 6),
            max_doc=index.max_doc,
            bytes=drift.bytes,
            segments=len(index.arrays.bm25.postings.parts),
            log_position=index.last_write.seq,
        )


class IndexSummary(Answer):
    """One index in short. `ok` is false if the newest generation cannot be opened; `error` says
    why, and the other fields are those of the generation still served, or null.
    """

    name: str
    ok: bool
    error: str | None
    generation: str | None
    documents: int | None
    drift: DriftAnswer | None = Field(description="what was written since the generation was built")

    @classmethod
    def of(cls, status: Status) -> IndexSummary:
        """Tell an index of the catalog."""
        index = status.index
        return IndexSummary(
            name=status.name,
            ok=status.failure is None,
            error=status.failure,
            generation=index.generation if index is not None else None,
            documents=len(index) if index is not None else None,
            drift=DriftAnswer.of(index) if index is not None else None,
        )


class IndexDetails(IndexSummary):
    """One index with what its manifest tells; null where no generation is served."""

    source: str | None
    created: str | None = Field(description="UTC, ISO 8601")
    fingerprint: str | None = Field(description="the same for the same documents and settings")
    settings: dict[str, Any] | None
    counts: Counts | None
    fields: dict[str, ColumnEntry] | None = Field(
        description="metadata fields that can be filtered, sorted and counted by, as built"
    )
    bytes: int | None = Field(description="on disk, of what was built")
    spectra: dict[str, SpectrumEntry] | None

    @classmethod
    def of(cls, status: Status) -> IndexDetails:
        """Tell an index of the catalog and its manifest."""
        manifest = status.index.manifest if status.index else None
        return IndexDetails(
            **IndexSummary.of(status).model_dump(),
            source=manifest.source if manifest else None,
            created=manifest.build.created if manifest else None,
            fingerprint=manifest.fingerprint if manifest else None,
            settings=manifest.settings if manifest else None,
            counts=manifest.counts if manifest else None,
            fields=_columns(status.index) if status.index else None,
            bytes=manifest.bytes() if manifest else None,
            spectra=manifest.spectra if manifest else None,
        )


def _columns(index: Index) -> dict[str, ColumnEntry]:
    """Return the columns as built, with the misfits that there are now."""
    fields = index.fields
    return {
        name: column.model_copy(update={"misfits": fields[name].misfits})
        for name, column in index.manifest.fields.columns.items()
    }


class RefitAnswer(Answer):
    """The last refit of an index that the service began by itself, or was asked for."""

    generation: str = Field(description="that was, or is being, built anew")
    begun: str = Field(description="or asked for; UTC, ISO 8601")
    phase: str | None = Field(description="of the build; null before the first")
    done: int = Field(description="amount of that phase")
    total: int | None = Field(description="amount of that phase in all, where it is known")
    seconds: float | None = Field(description="it took; null while it waits or runs")
    error: str | None = Field(
        description="why it failed; where it was begun by itself it is begun again after a while"
    )


class IndexList(Answer):
    """All indexes of the home."""

    indexes: list[IndexSummary]


class Health(Answer):
    """Whether anything can be searched."""

    ok: bool = Field(description="at least one index can be served")
    version: str
    indexes: list[IndexSummary]
    sums: dict[str, str] = Field(
        description="of the files of each open index, compared once more since it was opened: "
        "checking, whole, damaged (then it is not served) or stopped"
    )
    refits: dict[str, RefitAnswer] = Field(
        description="of indexes that had come too far from their build, or were asked to be, by "
        "name: `klsa-serve --refit-threshold`, POST /indexes/{name}/refit"
    )
    compiling: list[str] = Field(
        description="parts of the query engine that are being compiled; until then the same "
        "answers take longer"
    )
    not_compiling: str | None = Field(description="why they will not be compiled, if so")


class Alive(Answer):
    """That the service runs."""

    ok: bool


class Readiness(Answer):
    """Whether the service can answer for all that it should."""

    ok: bool
    served: int = Field(description="indexes that can be searched")
    failing: int = Field(description="indexes that cannot, or that proved damaged: see /health")
    compiling: list[str] = Field(
        description="parts of the query engine that are being compiled; until then the same "
        "answers take longer"
    )


class Links(Answer):
    """Where to go from the front door."""

    search: str
    indexes: str
    health: str
    docs: str


class Welcome(Answer):
    """What this service is."""

    name: str
    version: str
    links: Links
