"""Vectors of a source in arrays of their own: row i is the vector of the i-th document."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from os import PathLike
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from klsa_search.collection.model import Document
from klsa_search.collection.vectors import (
    MAX_DIMENSION,
    MAX_SPACES,
    name_fault,
    quantised,
    set_vectors,
    vectors_of,
)
from klsa_search.errors import CollectionError

RowVectorsLike = Mapping[str, "npt.NDArray[Any] | str | PathLike[str]"]
"""By space, an array (documents, dimension), or the path of one as NumPy stores it (`.npy`)."""

_TYPES: Final = ("float16", "float32", "float64", "int8")


class RowVectors:
    """The rows for the documents of a source, by space; files are mapped into memory.

    CollectionError for what is not such an array.
    """

    def __init__(self, given: RowVectorsLike) -> None:
        for space in given:
            if fault := name_fault(space):
                raise CollectionError(f"vectors: {fault}; choose another", field="vectors")
        if len(given) > MAX_SPACES:
            raise CollectionError(
                f"vectors: {len(given)} spaces are given, {MAX_SPACES} are allowed", field="vectors"
            )
        self._rows = {space: _opened(space, value) for space, value in given.items()}

    def attached(
        self, documents: Iterator[Document], skipped: Callable[[], int]
    ) -> Iterator[Document]:
        """Yield documents with their vectors, which replace none.

        skipped  returns how many records of the source are no documents
        CollectionError if there are more or fewer rows than documents, for a row that is no vector
        and for a document with a vector in the same space.
        """
        count = 0
        for count, document in enumerate(documents, 1):
            if skipped():
                raise CollectionError(
                    "a record of the source was skipped, so that the rows of vectors may belong to "
                    "other documents; correct the record, or give vectors in `_vectors`",
                    field="vectors",
                )
            yield self._with_row(document, count - 1)
        for space, rows in self._rows.items():
            if len(rows) != count:
                raise _other_number(space, rows, f"{count:,}")

    def _with_row(self, document: Document, row: int) -> Document:
        vectors = vectors_of(document)
        for space, rows in self._rows.items():
            if row >= len(rows):
                raise _other_number(space, rows, "more")
            where = f"vectors of `{space}`: row {row} (document {document.id[:60]!r})"
            if space in vectors:
                raise CollectionError(
                    f"{where}: the document has a vector in `_vectors.{space}` already; remove one "
                    "of them, or name another space",
                    field="vectors",
                )
            try:
                vectors[space] = quantised(rows[row])
            except ValueError as error:
                raise CollectionError(
                    f"{where} {error}; correct the row", field="vectors"
                ) from None
        return set_vectors(document, vectors)


def _opened(space: str, given: object) -> npt.NDArray[Any]:
    """Return the rows of a space."""
    where = f"vectors of `{space}`"
    rows = given
    if isinstance(given, str | PathLike):
        where = f"{where} (`{given}`)"
        try:
            rows = np.load(given, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            reason = getattr(error, "strerror", None) or "it is not an array of NumPy"
            raise CollectionError(
                f"{where} cannot be read: {reason}; name a file that numpy.save wrote",
                field="vectors",
            ) from None
    if not isinstance(rows, np.ndarray) or rows.ndim != 2:
        shape = f"of shape {rows.shape}" if isinstance(rows, np.ndarray) else type(rows).__name__
        raise CollectionError(
            f"{where} is {shape}; give an array (documents, dimension)", field="vectors"
        )
    if rows.dtype.name not in _TYPES:
        raise CollectionError(
            f"{where} has numbers of type {rows.dtype}; use one of {', '.join(_TYPES)}",
            field="vectors",
        )
    if not 1 <= rows.shape[1] <= MAX_DIMENSION:
        raise CollectionError(
            f"{where} has {rows.shape[1]:,} values a row; 1 to {MAX_DIMENSION:,} are allowed",
            field="vectors",
        )
    return rows


def _other_number(space: str, rows: npt.NDArray[Any], documents: str) -> CollectionError:
    return CollectionError(
        f"vectors of `{space}`: there are {len(rows):,} rows, and the source has {documents} "
        "documents; row i is the vector of the i-th document",
        field="vectors",
    )
