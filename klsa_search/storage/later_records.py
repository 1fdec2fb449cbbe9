"""Records of documents written after a build, and where the documents of each ID are."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import GrowableLists
from klsa_search.storage.documents import DocumentReader, RecordsPart, record_of
from klsa_search.storage.write_log import Write


class LaterRecords:
    """Records to whose end documents are appended; readers that it returned do not change.

    built  reads the documents of the build
    """

    def __init__(self, built: DocumentReader) -> None:
        self._built = built
        self._records = GrowableLists(np.uint8)
        self._doc_ids: dict[str, list[int]] = {}  # of later documents, which all readers share

    @property
    def bytes(self) -> int:
        """Return the bytes of all records."""
        return self._records.bytes

    def append(self, writes: Sequence[Write]) -> list[int]:
        """Append the documents of writes.

        Return the doc ids of the documents before them that they replace or delete, which may be
        deleted already.
        """
        doc_id = len(self._built) + len(self._records)
        replaced, records = list[int](), list[bytes]()
        for write in writes:
            later = self._doc_ids.get(write.id)
            previous = later[-1] if later else self._built.find(write.id)
            if previous is not None:
                replaced.append(previous)
            if write.document is not None:
                self._doc_ids.setdefault(write.id, []).append(doc_id + len(records))
                records.append(b"".join(record_of(write.document)))
        if records:
            starts = np.array([0, *accumulate(map(len, records))], np.int64)
            self._records.extend(np.frombuffer(b"".join(records), np.uint8), starts)
        return replaced

    def reader(self, live: npt.NDArray[np.bool_]) -> DocumentReader:
        """Return a reader of all documents; `live` is (N,), whether a doc id has a document."""
        part = RecordsPart(self._records.numbers, self._records.starts)
        return self._built.extended(part, self._doc_ids, live)
