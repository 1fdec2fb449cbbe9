"""The record of jobs of a service: refits that wait, run or have ended, and what came of them.

They are kept in a file of the index directory, which survives restarts. All processes of a service
share it. It is replaced atomically, and a lock ends with its process.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any, Final, Literal

from filelock import FileLock, Timeout
from pydantic import TypeAdapter, ValidationError

from klsa_search.errors import JobNotFound, StoreError
from klsa_search.storage.files import read_regular, replace_file

Setting = bool | int | float | str | list[str] | dict[str, str | float]
JobState = Literal["waiting", "running", "done", "failed", "cancelled"]
JobKind = Literal["refit"]


@dataclass(frozen=True, slots=True)
class Job:
    """One job.

    generation   generation that is rebuilt
    built        generation that was built instead; None unless the job is done
    begun        time of its start, or of its request while it waits: UTC, ISO 8601
    settings     settings to change
    phase        current phase of the build, or the one in which it failed; None before the first,
                 and when the job is done
    done, total  amount of that phase; `total` is None if unknown
    seconds      duration; None before its end, and if it is not known
    error        why it failed, in one sentence
    cancelling   whether its child process is to be terminated
    """

    id: int
    index: str
    generation: str
    begun: str
    state: JobState
    kind: JobKind = "refit"
    settings: Mapping[str, Setting] = field(default_factory=dict)
    phase: str | None = None
    done: int = 0
    total: int | None = None
    seconds: float | None = None
    error: str | None = None
    built: str | None = None
    cancelling: bool = False

    @property
    def is_open(self) -> bool:
        """Whether it waits or runs, and was not cancelled."""
        return self.state in ("waiting", "running") and not self.cancelling


def job_not_found(id_: int) -> JobNotFound:
    """Return the error for an unknown job."""
    return JobNotFound(f"no job {id_}; list jobs with GET /jobs", field="id")


MAX_JOBS: Final = 100
"""Number of jobs that are kept; waiting and running ones are always kept."""


@dataclass(slots=True)
class JobHistory:
    """Jobs by ID, and counts of ended jobs by index and outcome."""

    jobs: list[Job] = field(default_factory=list)
    last_id: int = 0
    ended: dict[str, Counter[str]] = field(default_factory=dict)

    def find(self, id_: int) -> Job:
        """Return a job; JobNotFound."""
        for job in self.jobs:
            if job.id == id_:
                return job
        raise job_not_found(id_)

    def last(self, index: str) -> Job | None:
        """Return the newest job of an index."""
        return next((job for job in reversed(self.jobs) if job.index == index), None)

    def open_job(self, index: str) -> Job | None:
        """Return the waiting or running job of an index."""
        return next((job for job in self.jobs if job.index == index and job.is_open), None)

    def add(
        self, index: str, generation: str, settings: Mapping[str, Setting], state: JobState
    ) -> Job:
        """Add a job, and forget the oldest ended ones above `MAX_JOBS`."""
        self.last_id += 1
        job = Job(self.last_id, index, generation, _now(), state, settings=dict(settings))
        self.jobs.append(job)
        ended = [job_ for job_ in self.jobs if job_.state not in ("waiting", "running")]
        forgotten = {job_.id for job_ in ended[: max(0, len(self.jobs) - MAX_JOBS)]}
        self.jobs = [job_ for job_ in self.jobs if job_.id not in forgotten]
        kept = {job_.index for job_ in self.jobs}
        self.ended = {name: counts for name, counts in self.ended.items() if name in kept}
        return job

    def change(self, id_: int, **changes: Any) -> Job:
        """Change fields of a job, and return it."""
        job = replace(self.find(id_), **changes)
        self.jobs = [job if job_.id == id_ else job_ for job_ in self.jobs]
        return job

    def start(self, id_: int) -> Job | None:
        """Set a waiting job to running, and return it; None if it was cancelled meanwhile."""
        if self.find(id_).state != "waiting":
            return None
        return self.change(id_, state="running", begun=_now())

    def end(self, id_: int, state: JobState, **changes: Any) -> Job:
        """Set the outcome of a job, and count it."""
        job = self.change(id_, state=state, **changes)
        self.ended.setdefault(job.index, Counter())[state] += 1
        return job


_LOCK_TIMEOUT: Final = 2.0
"""Seconds to wait for the lock of the file, which a change holds for one sync of a small file."""

_POLL_INTERVAL: Final = 0.002
"""Seconds between two attempts to take a lock."""

_HISTORY: Final = TypeAdapter(JobHistory)


class JobLedger:
    """The file of all jobs in an index directory; safe to share between threads and processes.

    Cost: 20 µs to read a few jobs; a sync of the file to change them.
    """

    def __init__(self, home: Path) -> None:
        self._home = home
        self._path = home / ".jobs.json"
        self._change_lock = Lock()

    def read(self) -> JobHistory:
        """Return the current jobs."""
        try:
            return _HISTORY.validate_json(read_regular(self._path))
        except FileNotFoundError:
            return JobHistory()
        except (OSError, ValidationError) as error:
            reason = "it is damaged" if isinstance(error, ValidationError) else error
            raise StoreError(
                f"cannot read jobs from `{self._path}`: {reason}; correct its permissions, or "
                "remove it to begin another history"
            ) from error

    @contextmanager
    def change(self) -> Iterator[JobHistory]:
        """Yield the jobs, and write them when the block ends without an exception.

        The block should be short, as it holds the lock. StoreError if they cannot be written.
        """
        try:
            with self._change_lock, self._file_lock(".jobs.lock", _LOCK_TIMEOUT):
                history = self.read()
                yield history
                replace_file(self._path, _HISTORY.dump_json(history).decode())
        except OSError as error:  # Timeout is one
            raise StoreError(
                f"cannot record jobs ({error}); free disk space, and make `{self._home}` writable"
            ) from error

    @contextmanager
    def running(self) -> Iterator[bool]:
        """Take the lock of the process that runs jobs if it is free, and yield whether it was.

        No job can run in an index directory that cannot be written.
        """
        with ExitStack() as locks:
            try:
                if os.access(self._home, os.W_OK):
                    locks.enter_context(self._file_lock(".jobs.running", 0))
                    has_lock = True
                else:
                    has_lock = False
            except Timeout:
                has_lock = False
            yield has_lock

    def _file_lock(self, name: str, timeout: float) -> FileLock:
        """Return a lock between processes; entering raises Timeout after so many seconds."""
        return FileLock(
            self._home / name, timeout=timeout, thread_local=False, poll_interval=_POLL_INTERVAL
        )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
