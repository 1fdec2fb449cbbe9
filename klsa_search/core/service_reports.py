"""Jobs, analytics and proposals of synonyms, as a service reports them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pydantic import ConfigDict

Setting = bool | int | float | str | list[str] | dict[str, str | float]
"""The value of a setting of an index."""

JobState = Literal["waiting", "running", "done", "failed", "cancelled"]
JobKind = Literal["refit", "compaction"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Work of a service on an index in the background.

    kind         kind of work; "refit" rebuilds an index, "compaction" merges its later writes
    state        waiting, running, done, failed or cancelled
    generation   generation that is rebuilt
    built        generation that was built instead; None unless it is done
    settings     settings that it changes
    started      time of its start, or of its request while it waits: UTC, ISO 8601
    phase        current phase of the build, or the one in which it failed; None before the first,
                 and when it is done
    done, total  amount of that phase; `total` is None if unknown
    seconds      duration; None before its end, and if the service ended first
    error        why it failed, in one sentence; an automatic one will be retried

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
    started: str
    phase: str | None = None
    done: int = 0
    total: int | None = None
    seconds: float | None = None
    error: str | None = None

    @property
    def has_ended(self) -> bool:
        """Whether it is done, failed or cancelled."""
        return self.state not in ("waiting", "running")


ListName = Literal["days", "queries", "no_results", "low_quality", "documents"]
"""Lists of analytics."""


@dataclass(frozen=True, slots=True)
class SearchFigures:
    """Figures of some searches.

    no_results     searches that found nothing
    low_quality    searches without a good match, among those that requested quality
    corrected      searches with corrected words
    expanded       searches with synonyms
    clicked        searches with a click
    click_through  clicked as a share of searches; None without searches
    mean_position  mean rank of the clicked hits; None without clicks
    mean_ms        mean duration; None without searches
    """

    searches: int
    no_results: int
    low_quality: int
    corrected: int
    expanded: int
    clicked: int
    clicks: int
    conversions: int
    click_through: float | None
    mean_position: float | None
    mean_ms: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DayFigures(SearchFigures):
    """Figures of a day, UTC."""

    day: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryFigures(SearchFigures):
    """Figures of a query."""

    query: str


@dataclass(frozen=True, slots=True)
class ClickedDocument:
    """A document with its clicks and conversions."""

    id: str
    clicks: int
    conversions: int


@dataclass(frozen=True, slots=True)
class Analytics:
    """Analytics of an index over some days, the last of them today (UTC).

    since         first day
    min_searches  searches of a query from which it is listed
    totals        figures of all searches, those of rare queries too
    days          figures by day, of days with searches
    queries       figures by query, most frequent first
    no_results    the same of queries that found nothing, by how often they did
    low_quality   the same of queries without a good match, by how often they had none
    documents     documents by clicks

    >>> with Client(url) as client:
    ...     report: Analytics = client.index("reports").analytics(days=7)
    >>> totals: SearchFigures = report.totals
    >>> days: list[DayFigures] = report.days
    >>> queries: list[QueryFigures] = report.no_results
    >>> clicked: list[ClickedDocument] = report.documents
    >>> totals.searches, [figures.query for figures in queries]
    (0, [])
    """

    index: str
    since: str
    min_searches: int
    totals: SearchFigures
    days: list[DayFigures]
    queries: list[QueryFigures]
    no_results: list[QueryFigures]
    low_quality: list[QueryFigures]
    documents: list[ClickedDocument]


@dataclass(frozen=True, slots=True)
class SynonymCandidate:
    """A proposed synonym.

    count    searches that replaced the word by it
    total    searches that replaced the word alone, by anything
    queries  up to three queries with it that replaced one with the word
    """

    synonym: str
    count: int
    total: int
    queries: list[str]


@dataclass(frozen=True, slots=True)
class SynonymProposal:
    """A searched word that no or few documents contain, with synonyms for it, the best first.

    searches   searches with the word
    documents  number of documents that contain it
    queries    the most frequent queries with it

    >>> with Client(url) as client:
    ...     shop = client.index("reports")
    ...     proposals: list[SynonymProposal] = shop.synonym_proposals(days=90)
    ...     best: dict[str, SynonymCandidate] = {one.word: one.candidates[0] for one in proposals}
    ...     accepted = {word: [candidate.synonym] for word, candidate in best.items()}
    ...     words = shop.set_synonyms(shop.synonyms() | accepted)
    >>> words
    0
    """

    word: str
    searches: int
    documents: int
    queries: list[str]
    candidates: list[SynonymCandidate]
