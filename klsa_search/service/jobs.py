"""Jobs: refits of indexes in a child process, automatic or requested, with their history.

An index is refitted when its drift reaches a threshold, or when a client requests it, possibly with
other settings. The catalog loads the new generation like any other.

Jobs are recorded in a file of the index directory, which survives restarts. All processes of a
service share it, and one of them refits at a time. The file is replaced atomically, and a lock ends
with its process.
"""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import tempfile
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from time import monotonic, time
from types import TracebackType
from typing import IO, Any, Final, Literal

from filelock import FileLock, Timeout
from pydantic import TypeAdapter, ValidationError

from klsa_search.errors import IndexBusy, JobNotFound, StoreError
from klsa_search.service.background import PeriodicTask
from klsa_search.service.catalog import Catalog
from klsa_search.storage.files import read_regular, replace_file

Setting = bool | int | float | str | list[str] | dict[str, str | float]
JobState = Literal["waiting", "running", "done", "failed", "cancelled"]
JobKind = Literal["refit"]


@dataclass(frozen=True, slots=True)
class Job:
    """One job.

    generation   generation that is rebuilt
    begun        time of its start, or of its request while it waits: UTC, ISO 8601
    settings     settings to change
    phase        current or last phase of the build; None before the first
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
    cancelling: bool = False

    @property
    def is_open(self) -> bool:
        """Whether it waits or runs, and was not cancelled."""
        return self.state in ("waiting", "running") and not self.cancelling


def job_not_found(id_: int) -> JobNotFound:
    """Return the error for an unknown job."""
    return JobNotFound(f"no job {id_}; list jobs with GET /jobs", field="id")


def _busy(job: Job) -> IndexBusy:
    return IndexBusy(
        f"index `{job.index}` is being refitted already (job {job.id}); wait for it to finish, or "
        "cancel it, then try again"
    )


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
        ended = [each for each in self.jobs if each.state not in ("waiting", "running")]
        forgotten = {each.id for each in ended[: max(0, len(self.jobs) - MAX_JOBS)]}
        self.jobs = [each for each in self.jobs if each.id not in forgotten]
        kept = {each.index for each in self.jobs}
        self.ended = {name: counts for name, counts in self.ended.items() if name in kept}
        return job

    def change(self, id_: int, **changes: Any) -> Job:
        """Change fields of a job, and return it."""
        job = replace(self.find(id_), **changes)
        self.jobs = [job if each.id == id_ else each for each in self.jobs]
        return job

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


_INTERVAL = 1.0
"""Seconds between two checks for due jobs."""

_CANCEL_INTERVAL = 0.2
"""Seconds between two checks whether the running job was cancelled."""

_PAUSE_FACTOR = 9
"""After a refit, the next automatic one waits this many times as long as it took."""

_MOSTLY_CHANGED = 0.5
"""Share of changed documents from which it waits only as long as the last one took. While an index
is filled, each refit then reads at least twice as many documents, so their sum stays small.
"""

_FAILURE_PAUSE = 600.0
"""Minimum seconds between a failed or cancelled refit and the next automatic one."""

_STOP_TIMEOUT = 2.0
"""Seconds that a refit has to remove its files when it is cancelled or the service stops."""

_PROGRESS = re.compile(r"([a-z ]{1,40}) ([0-9]{1,18}) ([0-9]{1,18}|-)")

_INTERRUPTED: Final = (
    "the process of the refit ended, with the service or for lack of memory; request it again"
)

_log = logging.getLogger(__name__)


class Jobs:
    """Refits the indexes of a catalog, one at a time: requested ones first, then by drift.

    command  command that refits an index: `--settings JSON` and its name are appended; it ends
             when its stdin closes, writes its progress to stdout, and the reason of a failure as
             the last line of stderr
    share    share of changed documents for an automatic refit, above 0; None: only on request
    As a context manager it checks for due jobs once a second, in its own thread.
    """

    def __init__(self, catalog: Catalog, command: Sequence[str], *, share: float | None) -> None:
        self._catalog = catalog
        self._command = command
        self._share = share
        self._ledger = JobLedger(catalog.home)
        self._lock = threading.Lock()  # of the following
        self._closed = threading.Event()
        self._process: subprocess.Popen[str] | None = None
        self.watch = PeriodicTask("refits", self.run_due, _INTERVAL)

    def __enter__(self) -> Jobs:
        """Start the thread."""
        self.watch.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        failure: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close."""
        self.close()

    def all(self) -> list[Job]:
        """Return all recorded jobs, newest first."""
        return self._ledger.read().jobs[::-1]

    def get(self, id_: int) -> Job:
        """Return a job; JobNotFound."""
        return self._ledger.read().find(id_)

    def open_job(self, index: str) -> Job | None:
        """Return the waiting or running job of an index."""
        return self._ledger.read().open_job(index)

    def last(self) -> Mapping[str, Job]:
        """Return the newest job of each index that had one, by name."""
        newest = {job.index: job for job in self._ledger.read().jobs}
        return dict(sorted(newest.items()))

    def ended(self) -> Mapping[tuple[str, str], int]:
        """Return counts of ended jobs by index and outcome (done, failed, cancelled)."""
        ended = sorted(self._ledger.read().ended.items())
        return {
            (name, outcome): count
            for name, outcomes in ended
            for outcome, count in sorted(outcomes.items())
        }

    def request(self, name: str, generation: str, settings: Mapping[str, Setting]) -> Job:
        """Queue a refit of an index with changed settings, and return it.

        If one is waiting or running it is returned; IndexBusy if its settings differ.
        """
        with self._ledger.change() as history:
            job = history.open_job(name)
            if job is None:
                return history.add(name, generation, settings, "waiting")
            if settings and job.settings != settings:
                raise _busy(job)
            return job

    def refuse_conflict(self, name: str, settings: Iterable[str]) -> None:
        """Raise IndexBusy if a waiting or running refit changes one of these settings."""
        job = self.open_job(name)
        if job is not None and not job.settings.keys().isdisjoint(settings):
            raise _busy(job)

    def cancel(self, id_: int) -> Job:
        """Cancel a job and return it; JobNotFound. An ended job stays as it is.

        A running one ends soon after, as cancelled, or as done if it was finished before.
        """
        with self._ledger.change() as history:
            job = history.find(id_)
            if job.state == "waiting":
                return history.end(id_, "cancelled")
            return history.change(id_, cancelling=True) if job.state == "running" else job

    def run_due(self) -> bool:
        """Run the next requested or due refit, if any; return whether one ran.

        Does nothing while another process of the service refits.
        """
        with self._ledger.running() as has_lock:
            if not has_lock:
                return False
            history = self._ledger.read()
            if any(job.state == "running" for job in history.jobs):
                history = self._end_interrupted()
            for job in history.jobs:
                if job.state == "waiting":
                    self._start(job.id)
                    return True
            return self._share is not None and self._refit_most_changed(self._share, history)

    def _end_interrupted(self) -> JobHistory:
        """End the running jobs: this process has the lock, so none of them runs."""
        with self._ledger.change() as history:
            for job in history.jobs:
                if job.state == "running":
                    self._log_end(history, job, None, _INTERRUPTED)
        return history

    def _refit_most_changed(self, share: float, history: JobHistory) -> bool:
        due = []
        for status in self._catalog.statuses():
            last = history.last(status.name)
            if status.index is None:
                continue
            index = status.index
            changed = index.drift.changed_share(len(index))
            if last is not None:
                if time() < _retry_time(last, changed):
                    continue
                if last.state == "done" and last.generation == index.generation:
                    continue  # the new generation is not loaded yet
            if changed >= share:
                due.append((changed, status.name, index.generation))
        if due:
            _, name, generation = max(due)
            with self._ledger.change() as history:
                # If one was requested meanwhile, `run_due` runs it next.
                is_free = history.open_job(name) is None
                job = history.add(name, generation, {}, "running") if is_free else None
            if job is not None:
                self._refit(job)
        return bool(due)

    def finish(self) -> None:
        """Stop, and wait for a running refit; call `close` to end it after all."""
        self.watch.stop()
        self.watch.join()

    def close(self) -> None:
        """Stop, and end a running refit, which leaves its index unchanged."""
        self.watch.stop()
        with self._lock:
            self._closed.set()
            process = self._process
        if process is not None:
            _end_process(process)

    def _start(self, id_: int) -> None:
        """Run a waiting job, unless it was cancelled meanwhile."""
        with self._ledger.change() as history:
            if history.find(id_).state != "waiting":
                return
            job = history.change(id_, state="running", begun=_now())
        self._refit(job)

    def _refit(self, job: Job) -> None:
        begin = monotonic()
        try:
            error = self._run(job)
        except OSError as failure:
            error = f"a process for it cannot be started: {failure}"
        except BaseException as failure:
            error = f"internal error (`{type(failure).__name__}`); see the log of the service"
            self._end(job, begin, error)
            raise
        self._end(job, begin, error)

    def _end(self, job: Job, begin: float, error: str | None) -> None:
        seconds = round(monotonic() - begin, 1)
        with self._ledger.change() as history:
            is_stopped = error is not None and self._closed.is_set()
            self._log_end(history, job, seconds, _INTERRUPTED if is_stopped else error)

    def _log_end(
        self, history: JobHistory, job: Job, seconds: float | None, error: str | None
    ) -> None:
        """Record the end of a job, and log a failure."""
        if error is not None and history.find(job.id).cancelling:
            history.end(job.id, "cancelled", seconds=seconds)
            return
        history.end(job.id, "done" if error is None else "failed", seconds=seconds, error=error)
        if error is not None and not self._closed.is_set():
            _log.warning("refit of %s failed: %s", job.index, error)

    def _run(self, job: Job) -> str | None:
        """Run the command to its end and record its progress; return why it failed, or None."""
        with tempfile.TemporaryFile("w+", errors="replace") as messages:
            code = self._run_child(job, messages)
            messages.seek(0)
            return code if isinstance(code, str) else _reason(code, messages.read().splitlines())

    def _run_child(self, job: Job, messages: IO[str]) -> int | str:
        with self._lock:
            if self._closed.is_set():
                return "the service is being stopped"
            self._process = process = subprocess.Popen(
                [*self._command, "--settings", json.dumps(dict(job.settings)), job.index],
                stdin=subprocess.PIPE,  # closed when this process ends, however it ends
                stdout=subprocess.PIPE,
                stderr=messages,
                text=True,
                errors="replace",
            )

        def end_if_cancelled() -> None:
            if self._ledger.read().find(job.id).cancelling:
                _end_process(process)

        cancelling = PeriodicTask("cancelling", end_if_cancelled, _CANCEL_INTERVAL)
        with process:
            cancelling.start()  # any process of the service may record the cancellation
            try:
                for line in process.stdout or ():
                    self._record_progress(job, line)
                return process.wait()
            finally:
                cancelling.stop()

    def _record_progress(self, job: Job, line: str) -> None:
        """Record a line of phase, done and total amount; other lines are ignored."""
        progress = _PROGRESS.fullmatch(line.strip())
        if progress:
            phase, done, total = progress.groups()
            with suppress(StoreError), self._ledger.change() as history:  # the refit continues
                history.change(
                    job.id, phase=phase, done=int(done), total=None if total == "-" else int(total)
                )


def _end_process(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(_STOP_TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()  # the next build removes its files


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _retry_time(job: Job, changed: float) -> float:
    """Return the time, in seconds of `time`, of the next automatic refit at the earliest.

    changed  share of documents that changed since the last one
    """
    seconds = job.seconds or 0.0
    factor = 1 if changed >= _MOSTLY_CHANGED else _PAUSE_FACTOR
    pause = max(factor * seconds, 0.0 if job.state == "done" else _FAILURE_PAUSE)
    return datetime.fromisoformat(job.begun).timestamp() + seconds + pause


def _reason(code: int, messages: Sequence[str]) -> str | None:
    if code == 0:
        return None
    if code < 0:
        return (
            f"the refit was killed by signal {-code}; make sure that there is free "
            "memory, or refit it with klsa-index refit"
        )
    return (
        messages[-1].removeprefix("error: ") if messages else f"the refit ended with status {code}"
    )
