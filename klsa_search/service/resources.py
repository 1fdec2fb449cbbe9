"""What all requests of an application share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from klsa_search.service.admission import Admission
from klsa_search.service.analytics.recorder import Recorder
from klsa_search.service.background import Writes
from klsa_search.service.catalog import Catalog
from klsa_search.service.jobs import Jobs
from klsa_search.service.metrics import Metrics
from klsa_search.service.replication import Replication
from klsa_search.service.write_failures import WriteFailures


@dataclass(frozen=True)
class Resources:
    """What all requests of an application share.

    admission     threads for requests
    heavy         threads for expensive requests
    writes        queue of writes; None if the service is read-only
    jobs          refits of indexes; None if there are none
    replications  backups of the indexes, and following of others
    recorder      of analytics; None if they are off
    """

    catalog: Catalog
    admission: Admission
    heavy: Admission
    metrics: Metrics
    write_failures: WriteFailures
    writes: Writes | None = None
    jobs: Jobs | None = None
    replications: Sequence[Replication] = ()
    recorder: Recorder | None = None
