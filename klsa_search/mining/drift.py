"""Drift: how far an index is from its build, write by write, computed from its log alone."""

from __future__ import annotations

from dataclasses import dataclass

from klsa_search.search.index import Index
from klsa_search.search.writing import Drift
from klsa_search.storage.documents import DocumentReader
from klsa_search.storage.log import WriteLog


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftPoint:
    """Drift of an index after one batch of writes.

    writes         number of documents written and deleted until then
    time           time of the batch: ISO 8601, UTC
    added_share    documents added since the build, as a share of all documents
    changed_share  documents added, deleted and replaced, as a share of all that ever existed
    """

    writes: int
    time: str
    added_share: float
    changed_share: float


def drift(index: Index) -> tuple[DriftPoint, ...]:
    """Return the drift of an index after each batch of writes; None if there are no writes.

    The last point agrees with `index.drift`, unless there were writes since the last refresh. Cost:
    reading the log. IndexDamaged.

    >>> index.delete(["copy", "tyre"])
    2
    >>> drift(index)
    (DriftPoint(writes=2, time='...', added_share=0.0, changed_share=0.33...),)
    """
    log, built = WriteLog(index.path), DocumentReader(index.path)
    documents = index.manifest.counts.documents
    try:
        later: dict[str, bool] = {}  # whether each id that was written is there, as a later one
        added = gone = passed = 0
        points = []
        last = log.last()
        ends = {batch.last: batch for batch in log.batches() if batch.undone is None}
        for writes, write in enumerate(log.rows(0, last), start=1):
            if write.id not in later:
                gone += built.find(write.id) is not None
            elif later[write.id]:
                added, passed = added - 1, passed + 1
            later[write.id] = write.document is not None
            added += later[write.id]
            if write.seq in ends:
                drift = Drift(added=added, deleted=gone, passed=passed)
                count = documents - gone + added
                points.append(
                    DriftPoint(
                        writes=writes,
                        time=ends[write.seq].time,
                        added_share=drift.added_share(count),
                        changed_share=drift.changed_share(count),
                    )
                )
        return tuple(points)
    finally:
        built.close()
