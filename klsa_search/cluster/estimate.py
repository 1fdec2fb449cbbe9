"""Estimate: the memory of one worker, by phase, estimated from the shape of a collection.

As `indexing.sizes`: figures follow from the arrays that are alive together in a step, and files
that are mapped count. Only `_BASE` and the sizes of Python's own objects are measured.
"""

from __future__ import annotations

from klsa_search import progress
from klsa_search.cluster.counting import KEYS
from klsa_search.cluster.cutting import PIECE
from klsa_search.cluster.rows import ENTRIES
from klsa_search.cluster.source import MOST, PART
from klsa_search.config import Settings
from klsa_search.errors import SettingsError
from klsa_search.indexing import Shape
from klsa_search.indexing.layout import layout
from klsa_search.indexing.sizes import BASE, memory_needed
from klsa_search.kernel.document import EXACT

_BASE = 140 * 2**20  # an interpreter with NumPy, SciPy and compiled code, most of it in files
_TERM = 200  # bytes of a term in a dictionary
_DOCUMENT = 400  # of a document that was read: its id, twice, and where its record is
_PAIR = 40  # of a key among those that are looked through
_WEIGHED = 110  # of an entry that becomes a feature
_SPLIT = 12  # of a posting in the making
_ENTRY = 20  # of an entry of a shard's features: number, column, and in the other precision
_FEATURE = 24  # of each feature: sums over all documents


def refuse_uncut(documents: int, settings: Settings) -> None:
    """SettingsError where D of so many documents is not cut."""
    kept = layout(documents, settings)
    if kept != "sparse":
        raise SettingsError(
            f"expansion: these settings need a {kept} expansion, which only a "
            "build on one machine supports; build without --cluster, or use the "
            "settings of the default preset",
            field="expansion",
        )


def worker_memory(shape: Shape, settings: Settings, shards: int) -> dict[str, int]:
    """Bytes at the peak of each phase of a worker that has one step at a time.

    SettingsError where D is not cut.
    """
    refuse_uncut(shape.documents, settings)
    N, V, features = shape.documents, shape.terms, shape.terms + shape.pairs
    piece = min(1.0, max(PIECE / max(shape.stored, 1), 1 / MOST))  # of all documents
    shard = max(1 / shards, piece)
    part = min(1.0, max(PART / max(shape.stored, 1), 1 / MOST))
    counted = 16 * shape.words * piece + 12 * shape.tokens * piece + 32 * V
    texts = 300 * shape.texts
    weighing = max(
        _PAIR * min(KEYS, shape.tokens),
        _WEIGHED * min(ENTRIES, shape.features) + 40 * shape.tokens * piece + 24 * V,
        _SPLIT * shape.non_zeros * shard + 24 * N,
    )
    needed = {
        progress.DOCUMENTS: max(_DOCUMENT * N * part, _TERM * V * piece**0.5 + texts),
        progress.COUNTS: counted,
        progress.POSTINGS: weighing,
    }
    # Of the kernel a worker has the rows of a shard, and of its vectors some columns at a time.
    alone = memory_needed(shape, settings, memory=2**63, processes=1)
    needed[progress.EIGENVECTORS] = (
        alone[progress.EIGENVECTORS] - BASE
        if N <= EXACT
        else _ENTRY * shape.features / shards + _FEATURE * features
    )
    for phase in (progress.NEIGHBOURS, progress.EXPANSION):
        needed[phase] = (alone[phase] - BASE) / shards
    return {phase: _BASE + int(size) for phase, size in needed.items()}
