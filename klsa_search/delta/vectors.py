"""Vectors of documents written after a build."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from klsa_search.collection.model import Document
from klsa_search.collection.vectors import vectors_of
from klsa_search.core.array_types import GrowableArray
from klsa_search.kernels.vector_space import VectorRows, VectorSpace, VectorSpaces, scales_of


class _GrowingRows(NamedTuple):
    """The arrays of `VectorRows`."""

    rows: GrowableArray
    documents: GrowableArray
    scales: GrowableArray

    @classmethod
    def empty(cls, dimension: int) -> _GrowingRows:
        """Return no vectors of a space."""
        rows = GrowableArray(np.int8, dimension)
        return cls(rows, GrowableArray(np.int32), GrowableArray(np.float32))


class DeltaVectors:
    """Spaces of vectors to which documents are appended; those returned do not change.

    built  of the generation
    """

    def __init__(self, built: VectorSpaces) -> None:
        self._built = built
        self._later: dict[str, _GrowingRows] = {}

    def extend(self, documents: Sequence[Document], doc_id: int) -> None:
        """Append documents, of which the first has this doc id."""
        for number, document in enumerate(documents, doc_id):
            for name, rows in vectors_of(document).items():
                if name not in self._later:
                    self._later[name] = _GrowingRows.empty(rows.shape[1])
                later = self._later[name]
                later.rows.extend(rows)
                later.documents.extend(np.full(len(rows), number, np.int32))
                later.scales.extend(scales_of(rows))

    def spaces(self) -> VectorSpaces:
        """Return the spaces of all documents so far."""
        spaces = dict(self._built)
        for name, (rows, documents, scales) in self._later.items():
            space = spaces.get(name, VectorSpace(name, rows.rows.shape[1], ()))
            part = VectorRows(rows.rows, documents.rows, scales.rows)
            spaces[name] = replace(space, parts=(*space.parts, part))
        return spaces
