"""Drift of an index from its build, batch by batch, computed from its log."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from klsa_search.delta.statistics import trained_documents
from klsa_search.search.batches import Drift
from klsa_search.search.index import Index
from klsa_search.search.state.live_statistics import are_equal
from klsa_search.search.state.state import State, drift_of
from klsa_search.storage.documents import DocumentReader
from klsa_search.storage.write_log import WriteLog


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


class _Change(NamedTuple):
    """What one batch changes: numbers of writes, and of documents since the build."""

    writes: int = 0
    added: int = 0
    deleted: int = 0
    replaced: int = 0


def drift(index: Index) -> tuple[DriftPoint, ...]:
    """Return the drift of an index after each batch of writes; empty if there are no writes.

    The last point agrees with `index.drift`, unless there were writes since the last refresh. Cost:
    reading the log of each partition. Raise IndexDamaged.

    >>> index.delete(["copy", "tyre"])
    2
    >>> drift(index)
    (DriftPoint(writes=2, time='...', added_share=0.0, changed_share=0.33...),)
    """
    before, changes = _Change(), defaultdict[tuple[str, int], list[_Change]](list)
    for partition in index.partitions:
        of_build, batches = partition.parts.parts[0].read(changes_of)
        before = _sum([before, of_build])
        repeated = Counter[str]()  # a batch has one time in all partitions
        for time, change in batches:
            changes[time, repeated[time]].append(change)
            repeated[time] += 1
    total, points = before, []
    documents = index.manifest.counts.documents - before.added + before.deleted
    for (time, _), parts in sorted(changes.items()):
        total = _sum([total, *parts])
        drift = Drift(added=total.added, deleted=total.deleted, passed=total.replaced)
        count = documents - total.deleted + total.added
        points.append(
            DriftPoint(
                writes=total.writes,
                time=time,
                added_share=drift.added_share(count),
                changed_share=drift.changed_share(count),
            )
        )
    return tuple(points)


def _sum(changes: Sequence[_Change]) -> _Change:
    return _Change(*map(sum, zip(*changes, strict=True)))


def changes_of(state: State) -> tuple[_Change, list[tuple[str, _Change]]]:
    """Return what changed until the build of one part of an index, and then by each batch.

    With the time of the batch.
    """
    path, manifest = state.info.path, state.info.manifest
    log, built, of_build = WriteLog(path), DocumentReader.open(path), drift_of(path, manifest)
    of_training = trained_documents(path, manifest)
    trained: dict[int, bool] = {}  # of later documents
    latest: dict[str, int | None] = {}  # doc id of each written ID
    doc_id = manifest.counts.documents  # of the next document
    writes = added = deleted = replaced = 0
    changes = []
    last = log.last()
    ends = {batch.last: batch for batch in log.batches() if batch.undone is None}
    for write in log.rows(0, last):
        writes += 1
        before = latest[write.id] if write.id in latest else built.find(write.id)
        after = None if write.document is None else doc_id
        latest[write.id] = after
        is_trained = is_kept = False
        if before is not None:
            is_trained = trained[before] if before in trained else bool(of_training[before])
            is_kept = after is not None and _have_same_words(state, before, after)
            deleted += is_trained and not is_kept
            added -= not is_trained
            replaced += not (is_trained or is_kept)
        if after is not None:
            trained[after] = is_trained and is_kept
            added += not trained[after]
            doc_id += 1
        if write.seq in ends:
            changes.append((ends[write.seq].time, _Change(writes, added, deleted, replaced)))
            writes = added = deleted = replaced = 0
    return _Change(added=of_build.added, deleted=of_build.deleted), changes


def _have_same_words(state: State, document: int, other: int) -> bool:
    """Return whether two documents have equally many of each word; not of one not yet read."""
    snapshot = state.snapshot
    if other >= len(snapshot) or snapshot.lengths[document] != snapshot.lengths[other]:
        return False
    one, two = (snapshot.forward.rows(np.array([doc_id])) for doc_id in (document, other))
    return are_equal(one, two, 0)
