"""The sums of an opened generation, compared while it is in use."""

from __future__ import annotations

import hashlib
import io
import threading
import time
from pathlib import Path
from typing import Any, Final, Literal

from klsa_search.errors import IndexDamaged, StoreError
from klsa_search.store.checked import forget
from klsa_search.store.current import current_generation
from klsa_search.store.manifest import Manifest
from klsa_search.store.sums import compare_sum

REST: Final = 7
"""Times of what it works that a comparison in the background rests."""


class SumCheck:
    """Compares the sums of a generation in a thread of its own, behind whatever else runs.

    It takes a ninth of one processor at most, and half of what the disk gives: ten seconds a
    gigabyte, or a few times that while searches run.
    """

    def __init__(self, generation: Path, manifest: Manifest) -> None:
        self._generation, self._manifest = generation, manifest
        self._stopped = threading.Event()
        self._failure: str | None = None
        self._whole = False
        self._thread = threading.Thread(target=self._run, name="sums", daemon=True)
        self._thread.start()

    @property
    def state(self) -> Literal["checking", "whole", "damaged", "stopped"]:
        """What is known: `stopped` where nothing will be, as it was stopped or overtaken."""
        if self._failure is not None:
            return "damaged"
        if self._whole:
            return "whole"
        return "checking" if self._thread.is_alive() else "stopped"

    @property
    def failure(self) -> str | None:
        """A sentence that names the damaged file, if there is one."""
        return self._failure

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the end; whether it came in that time."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def stop(self) -> None:
        """End it, within milliseconds, whatever is known."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            for name in sorted(self._manifest.files):
                compare_sum(self._generation / name, self._manifest, self._unhurried)
            self._whole = True
        except (_Stopped, OSError):  # out of file descriptors, which says nothing of the files
            return
        except IndexDamaged as failure:
            if self._in_use():
                forget(self._generation)
                self._failure = failure.message

    def _unhurried(self, path: Path) -> str:
        with _Unhurried(path, self._stopped) as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()

    def _in_use(self) -> bool:
        """Whether CURRENT still names the generation: files of a former one may be gone."""
        try:
            return current_generation(self._generation.parent) == self._generation
        except (StoreError, OSError):
            return True


class _Stopped(Exception):
    """The result is no longer needed."""


class _Unhurried(io.FileIO):
    """A file whose reader rests before it reads on."""

    def __init__(self, path: Path, stopped: threading.Event) -> None:
        super().__init__(path)
        self._stopped = stopped
        self._began = time.perf_counter(), time.thread_time()

    def readinto(self, buffer: Any, /) -> int:
        """Rest in proportion to the work since the last reading, then read."""
        passed, worked = time.perf_counter() - self._began[0], time.thread_time() - self._began[1]
        if self._stopped.wait(passed + REST * worked):
            raise _Stopped
        self._began = time.perf_counter(), time.thread_time()
        return super().readinto(buffer)
