"""Documents written after a build: arrays like those of the build, which grow at their end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

import numpy as np

from klsa_search.collection.model import Document
from klsa_search.core.array_types import GrowableArray, GrowableLists
from klsa_search.delta.segment import DeltaSegment
from klsa_search.lowrank.sparse_expansion import SparseExpansion
from klsa_search.storage.forward_index import ForwardPart
from klsa_search.storage.records import RecordsPart, record_of


class LaterDocuments:
    """Rows of D, features, codes and records of later documents.

    One thread appends; what is returned does not change.

    built  expansion of the build
    """

    def __init__(self, built: SparseExpansion) -> None:
        self._built = built
        self._rows = GrowableArray(np.uint32, built.rows.shape[1])
        self._scales = GrowableArray(np.float32, built.scales.shape[1])
        self._vectors = GrowableArray(np.int8, built.document_vectors.shape[1])
        self._features = GrowableLists(np.uint32)
        self._codes, self._records = GrowableLists(np.uint8), GrowableLists(np.uint8)

    def append(self, segment: DeltaSegment, documents: Sequence[Document]) -> None:
        """Append documents: their segment, and their records."""
        self._rows.extend(segment.rows)
        self._scales.extend(segment.scales)
        self._vectors.extend(segment.cards)
        self._features.extend(segment.features, segment.feature_starts)
        self._codes.extend(segment.forward_codes, segment.forward_starts)
        records = [b"".join(record_of(document)) for document in documents]
        starts = np.array([0, *accumulate(map(len, records))], np.int64)
        self._records.extend(np.frombuffer(b"".join(records), np.uint8), starts)

    def bytes(self) -> int:
        """Return the bytes of all arrays."""
        rows = (self._rows, self._scales, self._vectors)
        lists = (self._features, self._codes, self._records)
        return sum(array.rows.nbytes for array in rows) + sum(
            array.numbers.nbytes + array.starts.nbytes for array in lists
        )

    def expansion(self) -> SparseExpansion:
        """Return the rows and features, with the statistics of the build."""
        return replace(
            self._built,
            rows=self._rows.rows,
            scales=self._scales.rows,
            starts=self._features.starts,
            features=self._features.numbers,
            document_vectors=self._vectors.rows,
        )

    def codes(self) -> ForwardPart:
        """Return the codes of the forward index, and the start of each document."""
        return self._codes.numbers, self._codes.starts

    def records(self) -> RecordsPart:
        """Return the records."""
        return RecordsPart(self._records.numbers, self._records.starts)
