"""The record of jobs of a service, which wait, run or have ended, and what came of them.

They are rows of the catalogue of the index directory, so they survive restarts, and all processes
of a service share them.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from filelock import FileLock, Timeout
from pydantic import TypeAdapter

from klsa_search.core.service_reports import Job, JobKind, JobState, Setting
from klsa_search.errors import JobNotFound
from klsa_search.storage.catalog import Catalog, change_catalog, read_catalog


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredJob(Job):
    """A job as stored.

    cancelling  whether its child process is to be terminated
    """

    cancelling: bool = False


def job_not_found(id_: int) -> JobNotFound:
    """Return the error for an unknown job."""
    return JobNotFound(f"no job {id_}; list jobs with GET /jobs", field="id")


MAX_JOBS: Final = 100  # number of jobs that are kept; waiting and running ones are always kept


@dataclass(slots=True)
class JobHistory:
    """Jobs by ID, and counts of ended refits by index and outcome."""

    jobs: list[StoredJob] = field(default_factory=list)
    ended: Counter[tuple[str, str]] = field(default_factory=Counter)

    def find(self, id_: int) -> StoredJob:
        """Return a job; JobNotFound."""
        for job in self.jobs:
            if job.id == id_:
                return job
        raise job_not_found(id_)

    def last(self, index: str, kind: JobKind | None = None) -> StoredJob | None:
        """Return the newest job of an index, by default of any kind."""
        jobs = (job for job in reversed(self.jobs) if job.index == index)
        return next((job for job in jobs if kind in (None, job.kind)), None)

    def open_job(self, index: str) -> StoredJob | None:
        """Return the refit of an index that waits or runs, and was not cancelled."""
        refits = (job for job in self.jobs if (job.index, job.kind) == (index, "refit"))
        return next((job for job in refits if not (job.has_ended or job.cancelling)), None)

    def add(
        self,
        index: str,
        generation: str,
        settings: Mapping[str, Setting],
        state: JobState,
        kind: JobKind = "refit",
    ) -> StoredJob:
        """Add a job, and forget the oldest ended ones above `MAX_JOBS`."""
        last_id = self.jobs[-1].id if self.jobs else 0  # the newest job is never forgotten
        job = StoredJob(
            id=last_id + 1,
            kind=kind,
            index=index,
            generation=generation,
            started=_now(),
            state=state,
            settings=dict(settings),
        )
        self.jobs.append(job)
        ended = [past.id for past in self.jobs if past.has_ended]
        forgotten = set(ended[: max(0, len(self.jobs) - MAX_JOBS)])
        self.jobs = [listed for listed in self.jobs if listed.id not in forgotten]
        kept = {listed.index for listed in self.jobs}
        self.ended = Counter({key: n for key, n in self.ended.items() if key[0] in kept})
        return job

    def change(self, id_: int, **changes: Any) -> StoredJob:
        """Change fields of a job, and return it."""
        job = replace(self.find(id_), **changes)
        self.jobs = [job if listed.id == id_ else listed for listed in self.jobs]
        return job

    def start(self, id_: int) -> StoredJob | None:
        """Set a waiting job to running, and return it; None if it was cancelled meanwhile."""
        if self.find(id_).state != "waiting":
            return None
        return self.change(id_, state="running", started=_now())

    def end(self, id_: int, state: JobState, **changes: Any) -> StoredJob:
        """Set the outcome of a job, and count a refit."""
        job = self.change(id_, state=state, **changes)
        if job.kind == "refit":
            self.ended[job.index, state] += 1
        return job


_JOB: Final = TypeAdapter(StoredJob)


def read_jobs(home: Path) -> JobHistory:
    """Return all jobs of an index directory; StoreError. Cost: 0.5 ms for a few."""
    with read_catalog(home) as catalog:
        return _stored(catalog)


@contextmanager
def change_jobs(home: Path) -> Iterator[JobHistory]:
    """Yield the jobs, and write them when the block ends without an exception.

    The block should be short, as other changes of the catalogue wait for it. IndexBusy, StoreError.
    Cost: some ms.
    """
    with change_catalog(home) as catalog:
        history = _stored(catalog)
        yield history
        catalog.delete("jobs", "1", [])
        catalog.insert("jobs", [(job.id, _JOB.dump_json(job).decode()) for job in history.jobs])
        catalog.delete("ended_jobs", "1", [])
        catalog.insert("ended_jobs", [(*key, count) for key, count in history.ended.items()])


@contextmanager
def running_jobs(home: Path) -> Iterator[bool]:
    """Take the lock of the process that runs jobs if it is free, and yield whether it was.

    No job can run in an index directory that cannot be written.
    """
    with ExitStack() as locks:
        has_lock = os.access(home, os.W_OK)
        if has_lock:
            lock = FileLock(home / ".jobs.running", timeout=0, thread_local=False)
            try:
                locks.enter_context(lock)
            except Timeout:
                has_lock = False
        yield has_lock


def _stored(catalog: Catalog) -> JobHistory:
    """Return the jobs that the catalogue has."""
    jobs = [_JOB.validate_json(job) for _, job in sorted(catalog.rows("jobs"))]
    ended = {(name, outcome): count for name, outcome, count in catalog.rows("ended_jobs")}
    return JobHistory(jobs, Counter(ended))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
