"""Arrays over all documents: those of the generation, and later ones appended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from klsa_search.collection.model import Document
from klsa_search.delta.segment import DeltaSegment
from klsa_search.lowrank.sparse_expansion import SparseExpansion
from klsa_search.storage.appendable_memmap import AppendableMemmap
from klsa_search.storage.forward_index import Forward
from klsa_search.storage.records import record_of

_ROW_ARRAYS: Final = ("cut_rows", "cut_scales", "cut_cards", "lengths")
"""Arrays with one row for each document."""

_ENTRY_ARRAYS: Final = {
    "cut_starts": "cut_features",
    "forward_starts": "forward_codes",
    "documents_starts": "documents",
}
"""Arrays of offsets for each document, and the arrays of entries that they refer to."""


class AppendedArrays:
    """Arrays over all documents, each contiguous. One thread appends; views do not change.

    Doc ids between those of the generation and the first later one are unused: all arrays are 0.

    first  doc id of the first later document
    """

    def __init__(self, generation: Path, first: int) -> None:
        names = (*_ROW_ARRAYS, *_ENTRY_ARRAYS, *_ENTRY_ARRAYS.values())
        self._arrays = {name: AppendableMemmap.open(generation, name) for name in names}
        self._built = {name: len(array) for name, array in self._arrays.items()}
        self._first = first

    def __len__(self) -> int:
        """Return the number of doc ids."""
        return len(self._arrays["lengths"])

    def delta_bytes(self) -> int:
        """Return the number of bytes of later documents."""
        return sum(self.view(name)[built:].nbytes for name, built in self._built.items())

    def append(self, segment: DeltaSegment, documents: Sequence[Document]) -> None:
        """Append documents: their segment and their records."""
        if len(self) < self._first:
            self._pad(self._first - len(self))
        records = [b"".join(record_of(document)) for document in documents]
        sizes = np.array([0, *map(len, records)], np.int64)
        self._append_entries(
            "documents_starts", np.cumsum(sizes), np.frombuffer(b"".join(records), np.uint8)
        )
        self._append_entries("forward_starts", segment.forward_starts, segment.forward_codes)
        self._append_entries("cut_starts", segment.feature_starts, segment.features)
        rows: tuple[npt.NDArray[Any], ...] = (
            segment.rows, segment.scales, segment.cards, segment.lengths
        )  # fmt: skip
        for name, array in zip(_ROW_ARRAYS, rows, strict=True):
            self._arrays[name].append(array)

    def view(self, name: str) -> npt.NDArray[Any]:
        """Return an array in its present state, which does not change."""
        array = self._arrays[name]
        return array.view(len(array))

    def sparse_expansion(self, base: SparseExpansion) -> SparseExpansion:
        """Return D of all documents, with the statistics of `base`."""
        return replace(
            base,
            rows=self.view("cut_rows"),
            scales=self.view("cut_scales"),
            starts=self.view("cut_starts"),
            features=self.view("cut_features"),
            document_vectors=self.view("cut_cards"),
        )

    def forward(self, base: Forward, terms: int) -> Forward:
        """Return the forward index of all documents; the rank of a later term is its number."""
        later = np.arange(len(base.ranks), terms, dtype=np.int32)
        ranks = np.concatenate((base.ranks, later))
        codes, starts = self.view("forward_codes"), self.view("forward_starts")
        return Forward(codes, starts, ranks, base.fields)

    def _pad(self, gap: int) -> None:
        for name in _ROW_ARRAYS:
            rows = self._arrays[name].view(0)
            self._arrays[name].append(np.zeros((gap, *rows.shape[1:]), rows.dtype))
        for name in _ENTRY_ARRAYS:
            starts = self._arrays[name]
            starts.append(np.full(gap, starts.view(len(starts))[-1]))

    def _append_entries(
        self, name: str, starts: npt.NDArray[np.int64], entries: npt.NDArray[Any]
    ) -> None:
        entries_ = self._arrays[_ENTRY_ARRAYS[name]]
        self._arrays[name].append(len(entries_) + starts[1:])
        entries_.append(entries)
