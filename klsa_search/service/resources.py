"""What all requests of an application share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from klsa_search.service.admission import Admission, Writes
from klsa_search.service.analytics.recorder import Recorder
from klsa_search.service.background import BackgroundWork, PeriodicTask, Replication
from klsa_search.service.jobs import Jobs
from klsa_search.service.middleware.auth import Keys
from klsa_search.service.middleware.bodies import remove_abandoned
from klsa_search.service.middleware.clients import Rates
from klsa_search.service.open_indexes import OpenIndexes


@dataclass(frozen=True, kw_only=True)
class Resources:
    """What all requests of an application share.

    heavy     threads for expensive requests; `admission` has those for others
    writes    None if the service is read-only
    recorder  of analytics
    """

    open_indexes: OpenIndexes
    keys: Keys
    admission: Admission
    heavy: Admission
    rates: Rates | None = None
    writes: Writes | None = None
    jobs: Jobs | None = None
    replications: Sequence[Replication] = ()
    recorder: Recorder | None = None

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run refits, replications and analytics until the block ends; then close the indexes.

        At the start, files are removed that a killed service has left.
        """
        with ExitStack() as started:
            started.callback(self.open_indexes.close)
            remove_abandoned()
            for task in self._background:
                started.enter_context(task)
            yield

    @property
    def pools(self) -> dict[str, Admission]:
        """The admission of requests by name."""
        writes = {} if self.writes is None else {"write": self.writes}
        return {"search": self.admission, "heavy": self.heavy, **writes}

    @property
    def watches(self) -> list[PeriodicTask]:
        """The periodic tasks."""
        return [self.open_indexes.watch, *(task.watch for task in self._background)]

    @property
    def _background(self) -> list[BackgroundWork]:
        tasks = (*self.replications, self.jobs, self.recorder)
        return [task for task in tasks if task is not None]
