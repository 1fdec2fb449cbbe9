"""Drift of an index from its build, batch by batch, computed from its log."""

from __future__ import annotations

from dataclasses import dataclass

from klsa_search.search.batches import Drift
from klsa_search.search.index import Index
from klsa_search.search.parts.part_set import unsupported
from klsa_search.search.state.state import drift_of
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
    """Return the drift of an index after each batch of writes; empty if there are no writes.

    The last point agrees with `index.drift`, unless there were writes since the last refresh. Cost:
    reading the log. Raise IndexDamaged, or PartitionsUnsupported for an index in partitions.

    >>> index.delete(["copy", "tyre"])
    2
    >>> drift(index)
    (DriftPoint(writes=2, time='...', added_share=0.0, changed_share=0.33...),)
    """
    if len(index.partitions) > 1:
        raise unsupported(index.name, "drift after each batch of writes")
    log, built = WriteLog(index.path), DocumentReader.open(index.path)
    manifest = index.manifest
    documents, first_later = manifest.counts.documents, manifest.trained
    if first_later is None:
        first_later = documents
    before = drift_of(index.path, manifest)
    live: dict[str, bool] = {}  # whether each written ID has a later document
    added, deleted, replaced = before.added, before.deleted, 0
    points = []
    last = log.last()
    ends = {batch.last: batch for batch in log.batches() if batch.undone is None}
    for writes, write in enumerate(log.rows(0, last), start=1):
        doc_id = None if write.id in live else built.find(write.id)
        if doc_id is not None and doc_id < first_later:
            deleted += 1
        elif doc_id is not None or live.get(write.id):
            added, replaced = added - 1, replaced + 1
        live[write.id] = write.document is not None
        added += live[write.id]
        if write.seq in ends:
            drift = Drift(added=added, deleted=deleted, passed=replaced)
            count = documents + added - before.added - (deleted - before.deleted)
            points.append(
                DriftPoint(
                    writes=writes,
                    time=ends[write.seq].time,
                    added_share=drift.added_share(count),
                    changed_share=drift.changed_share(count),
                )
            )
    return tuple(points)
