"""Jobs: refits and compactions of indexes in a child process, automatic or requested.

An index is refitted when its drift reaches a threshold, or when a client requests it, possibly with
other settings. It is compacted when opening it reads many later documents. The service loads the
new generation like any other. All processes of a service share one record of jobs
(`job_ledger.py`), and one of them works at a time.
"""

from __future__ import annotations

import json
import logging
import re
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from time import monotonic, time
from typing import Final

from klsa_search.core.service_reports import Job, JobKind, Setting
from klsa_search.errors import IndexBusy, StoreError
from klsa_search.search.index import Index
from klsa_search.service.background import BackgroundWork, PeriodicTask
from klsa_search.service.job_ledger import JobHistory, change_jobs, read_jobs, running_jobs
from klsa_search.service.open_indexes import OpenIndexes
from klsa_search.service.schemas.errors import shown_message
from klsa_search.storage.names import is_built

INTERVAL = 1.0  # seconds between two checks for due jobs
_CANCEL_INTERVAL = 0.2  # seconds between two checks whether the running job was cancelled
PAUSE_FACTOR = 9  # after a refit, the next automatic one waits this many times as long as it took
_MOSTLY_CHANGED = 0.5
"""Share of changed documents from which it waits only as long as the last one took. While an index
is filled, each refit then reads at least twice as many documents, so their sum stays small.
"""

_FAILURE_PAUSE = 600.0
"""Minimum seconds between a failed or cancelled refit and the next automatic one."""

_LOADING_TIME = 600.0  # seconds in which all processes of a service load a new generation
_STOP_TIMEOUT = 2.0
"""Seconds that a refit has to remove its files when it is cancelled or the service stops."""

_PROGRESS = re.compile(r"([a-z ]{1,40}) ([0-9]{1,18}) ([0-9]{1,18}|-)")

COMPACTED_SHARE: Final = 0.05
"""Share of doc ids that were written or deleted since the last generation, for a compaction."""

LEAST_COMPACTED: Final = 1_000  # their number, at least: reading fewer takes a few milliseconds
_INTERRUPTED: Final = (
    "the process that ran the {kind} was killed, possibly for lack of memory; request it again"
)

_log = logging.getLogger(__name__)


class Jobs(BackgroundWork):
    """Refits and compacts the indexes of a directory, one at a time: requested ones first.

    command  command that refits an index: `--settings JSON` and its name are appended, for a
             compaction `--compact` and its name; it ends when its stdin closes, writes its progress
             to stdout, and the reason of a failure as the last line of stderr
    share    share of changed documents for an automatic refit, above 0; None: only on request,
             and no compactions
    As a context manager it checks for due jobs once a second, in its own thread.
    """

    def __init__(
        self, open_indexes: OpenIndexes, command: Sequence[str], *, share: float | None
    ) -> None:
        self._open_indexes = open_indexes
        self._command = command
        self._share = share
        self._home = open_indexes.home
        self._lock = threading.Lock()  # of the following
        self._closed = threading.Event()
        self._process: subprocess.Popen[str] | None = None
        self.watch = PeriodicTask("refits", self.run_due, INTERVAL)

    def __exit__(self, *_: object) -> None:
        """Close, and wait until the end of a running refit is recorded."""
        self.close()
        self.watch.join(_STOP_TIMEOUT)

    def history(self) -> JobHistory:
        """Return all recorded jobs. Cost: 0.5 ms."""
        return read_jobs(self._home)

    def request(self, name: str, generation: str, settings: Mapping[str, Setting]) -> Job:
        """Queue a refit of an index with changed settings, and return it.

        If one is waiting or running it is returned; IndexBusy if its settings differ.
        """
        with change_jobs(self._home) as history:
            job = history.open_job(name)
            if job is None:
                return history.add(name, generation, settings, "waiting")
            if settings and job.settings != settings:
                raise _busy(job)
            return job

    def refuse_conflict(self, name: str, settings: Iterable[str]) -> None:
        """Raise IndexBusy if a waiting or running refit changes one of these settings."""
        job = self.history().open_job(name)
        if job is not None and not job.settings.keys().isdisjoint(settings):
            raise _busy(job)

    def cancel(self, id_: int) -> Job:
        """Cancel a job and return it; JobNotFound. An ended job stays as it is.

        A running one ends soon after, as cancelled, or as done if it was finished before.
        """
        with change_jobs(self._home) as history:
            job = history.find(id_)
            if job.state == "waiting":
                return history.end(id_, "cancelled")
            return history.change(id_, cancelling=True) if job.state == "running" else job

    def forget(self, name: str) -> None:
        """Cancel the waiting jobs of a deleted index: another may be built under its name."""
        if any(job.index == name and job.state == "waiting" for job in self.history().jobs):
            with change_jobs(self._home) as history:
                for job in history.jobs:
                    if job.index == name and job.state == "waiting":
                        history.end(job.id, "cancelled")

    def run_due(self) -> bool:
        """Run the next requested or due refit, if any; return whether one ran.

        Does nothing while another process of the service refits.
        """
        with running_jobs(self._home) as has_lock:
            if not has_lock:
                return False
            history = self.history()
            if any(job.state == "running" for job in history.jobs):
                history = self._end_interrupted()
            for job in history.jobs:
                if job.state == "waiting":
                    with change_jobs(self._home) as history:
                        started = history.start(job.id)
                    if started is not None:
                        self._run_job(started)
                    return True
            return self._share is not None and self._start_due_job(self._share, history)

    def _end_interrupted(self) -> JobHistory:
        """End the running jobs: this process has the lock, so none of them runs."""
        with change_jobs(self._home) as history:
            for job in history.jobs:
                if job.state == "running":
                    self._log_end(history, job, None, _INTERRUPTED.format(kind=job.kind))
        return history

    def _start_due_job(self, share: float, history: JobHistory) -> bool:
        due: list[tuple[float, str, str, JobKind]] = []
        for status in self._open_indexes.statuses():
            index = status.index
            if index is None:
                continue
            newest = history.last(status.name)
            if (
                newest
                and (newest.state, newest.generation) == ("done", index.generation)
                and time() < retry_time(newest, 1.0) + _LOADING_TIME
            ):
                # The new generation is not loaded yet. After that time it is one of the same name
                # of an index that was built in the place of a deleted one.
                continue
            changed = index.drift.changed_share(len(index))
            written, parts = _written(index), len(index.partitions)
            kinds: dict[JobKind, bool] = {  # partitions cannot be compacted
                "refit": changed >= share or (parts > 1 and written >= _MOSTLY_CHANGED),
                "compaction": parts == 1 and written >= COMPACTED_SHARE,
            }
            for kind, is_due in kinds.items():
                last = history.last(status.name, kind)
                if is_due and (last is None or time() >= retry_time(last, changed)):
                    due.append((changed, status.name, index.generation, kind))
                    break
        if due:
            _, name, generation, kind = max(due)
            with change_jobs(self._home) as history:
                # If one was requested meanwhile, `run_due` runs it next.
                is_free = history.open_job(name) is None
                job = history.add(name, generation, {}, "running", kind) if is_free else None
            if job is not None:
                self._run_job(job)
        return bool(due)

    def close(self) -> None:
        """Stop, and end a running refit, which leaves its index unchanged and waits again."""
        self.watch.stop()
        with self._lock:
            self._closed.set()
            process = self._process
        if process is not None:
            _end_process(process)

    def _run_job(self, job: Job) -> None:
        begin, error = monotonic(), None
        try:
            error = self._run(job)
        except OSError as failure:
            error = f"a process for it cannot be started: {failure}"
        except BaseException as failure:
            error = f"internal error (`{type(failure).__name__}`); see the log of the service"
            raise
        finally:
            self._end(job, round(monotonic() - begin, 1), error)

    def _end(self, job: Job, seconds: float, error: str | None) -> None:
        built = None
        if error is None:
            self._open_indexes.load(job.index)
            served = {status.name: status.index for status in self._open_indexes.statuses()}
            index = served.get(job.index)  # None if it was deleted meanwhile
            built = None if index is None else index.generation
        with change_jobs(self._home) as history:
            is_stopped = error is not None and self._closed.is_set()
            if is_stopped and not history.find(job.id).cancelling:  # another process runs it again
                history.change(job.id, state="waiting", phase=None, done=0, total=None)
            else:
                self._log_end(history, job, seconds, error, built)

    def _log_end(
        self,
        history: JobHistory,
        job: Job,
        seconds: float | None,
        error: str | None,
        built: str | None = None,
    ) -> None:
        """Record the end of a job, and log a failure."""
        is_deleted = not is_built(self._home / job.index)
        if error is not None and (is_deleted or history.find(job.id).cancelling):
            history.end(job.id, "cancelled", seconds=seconds)
            return
        if error is None:
            progress = {"phase": None, "done": 0, "total": None}
            history.end(job.id, "done", seconds=seconds, built=built, **progress)
        else:
            shown = shown_message(error, self._home)
            history.end(job.id, "failed", seconds=seconds, error=shown)
            _log.warning("%s of %s failed: %s", job.kind, job.index, error)

    def _run(self, job: Job) -> str | None:
        """Run the command to its end and record its progress; return why it failed, or None."""
        settings = ["--settings", json.dumps(dict(job.settings))]
        options = ["--compact"] if job.kind == "compaction" else settings

        def end_if_cancelled() -> None:
            if self.history().find(job.id).cancelling:
                _end_process(process)

        cancelling = PeriodicTask("cancelling", end_if_cancelled, _CANCEL_INTERVAL)
        with tempfile.TemporaryFile("w+", errors="replace") as messages:
            with self._lock:
                if self._closed.is_set():
                    return "the service is being stopped"
                self._process = process = subprocess.Popen(
                    [*self._command, *options, job.index],
                    stdin=subprocess.PIPE,  # closed when this process ends, however it ends
                    stdout=subprocess.PIPE,
                    stderr=messages,
                    text=True,
                    errors="replace",
                )
            with process:
                cancelling.start()  # any process of the service may record the cancellation
                try:
                    for line in process.stdout or ():
                        self._record_progress(job, line)
                    process.wait()  # before its stdin is closed, which would end it
                finally:
                    cancelling.stop()
            messages.seek(0)
            return _reason(job.kind, process.returncode, messages.read().splitlines())

    def _record_progress(self, job: Job, line: str) -> None:
        """Record a line of phase, done and total amount; other lines are ignored."""
        progress = _PROGRESS.fullmatch(line.strip())
        if progress:
            phase, done, total = progress.groups()
            with suppress(StoreError), change_jobs(self._home) as history:  # the refit continues
                history.change(
                    job.id, phase=phase, done=int(done), total=None if total == "-" else int(total)
                )


def _busy(job: Job) -> IndexBusy:
    return IndexBusy(
        f"index `{job.index}` is being refitted already (job {job.id}); wait for it to finish, or "
        "cancel it, then try again"
    )


def _written(index: Index) -> float:
    """Return the share of doc ids that were written or deleted later; 0 for few."""
    doc_ids = index.max_doc
    later = 2 * doc_ids - index.manifest.counts.documents - len(index)
    return later / doc_ids if later >= LEAST_COMPACTED else 0.0


def _end_process(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(_STOP_TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()  # the next build removes its files


def retry_time(job: Job, changed: float) -> float:
    """Return the time, in seconds of `time`, of the next automatic refit at the earliest.

    changed  share of documents that changed since the last one
    """
    seconds = job.seconds or 0.0
    factor = 1 if changed >= _MOSTLY_CHANGED else PAUSE_FACTOR
    pause = max(factor * seconds, 0.0 if job.state == "done" else _FAILURE_PAUSE)
    started = datetime.fromisoformat(job.started).timestamp()
    # A job of the future ran before the clock was set back; else nothing is refitted until then.
    return 0.0 if started > time() else started + seconds + pause


def _reason(kind: JobKind, code: int, messages: Sequence[str]) -> str | None:
    if code == 0:
        return None
    if code < 0:
        command = "compact" if kind == "compaction" else kind
        return (
            f"the {kind} was killed by signal {-code}; make sure that there is free memory, or run "
            f"klsa-index {command}"
        )
    ended = f"the {kind} ended with status {code}"
    return messages[-1].removeprefix("error: ") if messages else ended
