"""Vectors of documents: the metadata field `_vectors`, and the form in which it is stored.

    {"id": "a", "text": "...", "_vectors": {"minilm": [0.1, -0.3, ...]}}

names a space and the vector of the document in it, or several vectors, which are those of its
passages. A vector counts by its direction only. It is stored as 8-bit integers, largest 127, in
base64: sums of their products are exact, so the same vectors give the same scores on any machine.
Vectors may also come in arrays beside the source, whose row i is that of the i-th document.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from klsa_search.collection.model import Document
from klsa_search.core.wording import counted
from klsa_search.errors import BadDocument, CollectionError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

VECTORS: Final = "_vectors"

LARGEST: Final = 127  # largest absolute value in a stored vector
MAX_DIMENSION: Final = 8192
MAX_SPACES: Final = 10

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

Rows: TypeAlias = "npt.NDArray[np.int8]"  # (n, dimension), stored vectors


def quantised(value: object) -> Rows:
    """Return one vector or several, as an array or lists, in stored form: (n, dimension).

    ValueError says what is wrong with them. Quantising stored vectors changes nothing.

    >>> quantised([0.6, 0.8])
    array([[ 95, 127]], dtype=int8)
    """
    import numpy as np  # all readers of documents import this module

    try:
        rows = np.atleast_2d(np.asarray(value, np.float64))
    except OverflowError:
        raise ValueError("contains a number beyond those of 64-bit floating point") from None
    except (TypeError, ValueError):
        raise ValueError("is not a list of numbers, or lists of numbers of one length") from None
    if rows.ndim != 2 or not rows.size:
        raise ValueError("is not a list of numbers, or lists of numbers of one length")
    if rows.shape[1] > MAX_DIMENSION:
        raise ValueError(f"has {rows.shape[1]:,} values, {MAX_DIMENSION:,} are allowed")
    if not np.isfinite(rows).all():
        raise ValueError("contains NaN or an infinite number")
    largest = np.abs(rows).max(axis=1, keepdims=True)
    if not largest.all():
        raise ValueError("contains only zeros, which have no direction")
    stored: Rows = np.rint(rows / largest * LARGEST).astype(np.int8)
    return stored


def with_vectors(document: Document) -> Document:
    """Return a document whose vectors have the stored form; ValueError says what is wrong."""
    # A Document made in Python may have metadata of any type, which others refuse.
    if not isinstance(document.metadata, Mapping) or VECTORS not in document.metadata:
        return document
    stored = _stored(document.metadata[VECTORS], f"document {document.id[:60]!r}")
    metadata = {**document.metadata, VECTORS: stored}
    if not stored:
        del metadata[VECTORS]
    return replace(document, metadata=metadata)


def vectors_of(document: Document) -> dict[str, Rows]:
    """Return the vectors of a document in stored form, by space."""
    stored = document.metadata.get(VECTORS)
    if not stored:
        return {}
    return {name: _decoded(rows) for name, rows in stored.items()}


def set_vectors(document: Document, vectors: Mapping[str, Rows]) -> Document:
    """Return a document with these vectors instead of its own."""
    metadata = {name: value for name, value in document.metadata.items() if name != VECTORS}
    if vectors:
        metadata[VECTORS] = {name: _encoded(rows) for name, rows in sorted(vectors.items())}
    return replace(document, metadata=metadata)


def without_vectors(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return metadata without vectors."""
    if VECTORS not in metadata:
        return metadata
    return {name: value for name, value in metadata.items() if name != VECTORS}


def name_fault(name: object) -> str | None:
    """Return why this cannot be the name of a space, or None."""
    if isinstance(name, str) and _NAME.fullmatch(name):
        return None
    return (
        f"a space {str(name)[:60]!r}, whose name is not 1 to 64 letters, digits, '.', '_' or '-', "
        "beginning with a letter or digit"
    )


def checked_vectors(document: Document) -> Document:
    """Return a document with its vectors in stored form; BadDocument."""
    try:
        return with_vectors(document)
    except ValueError as error:
        raise BadDocument(f"{error}; correct it and write again", field=VECTORS) from None


def of_spaces(documents: Iterable[Document], dimensions: Mapping[str, int]) -> Iterator[Document]:
    """Yield documents with their vectors in stored form.

    dimensions  of the spaces of the index
    BadDocument for invalid vectors, and for one of another dimension than its space, or than the
    first of the documents in it.
    """
    seen = dict(dimensions)
    for document in documents:
        yield with_dimensions(checked_vectors(document), seen)


def with_dimensions(document: Document, dimensions: dict[str, int]) -> Document:
    """Return a document; BadDocument if a vector has another dimension than its space.

    dimensions  by space; spaces that only this document has are added
    """
    check_dimensions(document, vectors_of(document), dimensions)
    return document


def check_dimensions(
    document: Document, vectors: Mapping[str, Rows], dimensions: dict[str, int]
) -> None:
    """Check the dimensions of the vectors of a document: see `with_dimensions`."""
    for name, rows in vectors.items():
        size = rows.shape[1]
        if size != (dimension := dimensions.get(name, size)):
            where = f"{document.origin}: " if document.origin else ""
            raise BadDocument(
                f"{where}document {document.id!r}: the vector `{VECTORS}.{name}` has {size:,} "
                f"values, and the space `{name}` has {dimension:,}; correct it",
                field=VECTORS,
            )
    dimensions.update({name: rows.shape[1] for name, rows in vectors.items()})


def _stored(spaces: object, where: str) -> dict[str, list[str]]:
    if spaces is None:
        return {}
    if not isinstance(spaces, Mapping):
        raise ValueError(
            f"{where}: `{VECTORS}` is a {type(spaces).__name__}, not a mapping of "
            "the name of a space to a vector"
        )
    if len(spaces) > MAX_SPACES:
        raise ValueError(f"{where}: `{VECTORS}` has {len(spaces)} spaces, {MAX_SPACES} are allowed")
    stored = {}
    for name, value in sorted(spaces.items(), key=lambda item: str(item[0])):
        if value is None:
            continue
        if fault := name_fault(name):
            raise ValueError(f"{where}: `{VECTORS}` has {fault}")
        try:
            is_encoded = isinstance(value, list) and value and isinstance(value[0], str)
            stored[name] = _encoded(_decoded(value) if is_encoded else quantised(value))
        except ValueError as error:
            raise ValueError(f"{where}: the vector `{VECTORS}.{name}` {error}") from None
    return stored


def _encoded(rows: Rows) -> list[str]:
    return [base64.b64encode(row.tobytes()).decode("ascii") for row in rows]


def _decoded(rows: Sequence[str]) -> Rows:
    """Return stored vectors; ValueError if they are not."""
    import numpy as np

    try:
        pieces = [base64.b64decode(row, validate=True) for row in rows]
    except (binascii.Error, TypeError, ValueError):
        raise ValueError("is neither numbers nor stored vectors in base64") from None
    if len({len(piece) for piece in pieces}) != 1:
        raise ValueError("has vectors of different dimensions")
    return quantised(np.frombuffer(b"".join(pieces), np.int8).reshape(len(pieces), -1))


RowVectorsLike = Mapping[str, "npt.NDArray[Any] | str | PathLike[str]"]
"""By space, an array (documents, dimension), or the path of one as NumPy stores it (`.npy`)."""

_TYPES: Final = ("float16", "float32", "float64", "int8")


def row_vectors(vectors: RowVectorsLike) -> dict[str, npt.NDArray[Any]]:
    """Return the rows for the documents of a source, by space; files are mapped into memory.

    CollectionError for what is not such an array.
    """
    if len(vectors) > MAX_SPACES:
        raise _fault(f"vectors: {len(vectors)} spaces are given, {MAX_SPACES} are allowed")
    return {space: _rows_of(space, value) for space, value in vectors.items()}


def with_row_vectors(
    documents: Iterator[Document],
    rows_of: Mapping[str, npt.NDArray[Any]],
    skipped: Callable[[], int],
) -> Iterator[Document]:
    """Yield documents with their vectors, which replace none.

    rows_of  as `row_vectors` returns them
    skipped  returns how many records of the source are no documents
    CollectionError if there are more or fewer rows than documents, for a row that is no vector and
    for a document with a vector in the same space.
    """
    count = 0
    for row, document in enumerate(documents):
        if skipped():
            raise _fault(
                "a record of the source was skipped, so that the rows of vectors may belong to "
                "other documents; correct the record, or give vectors in `_vectors`"
            )
        vectors, count = vectors_of(document), row + 1
        for space, rows in rows_of.items():
            if row >= len(rows):
                raise _other_number(space, rows, "more")
            where = f"vectors of `{space}`: row {row} (document {document.id[:60]!r})"
            if space in vectors:
                raise _fault(
                    f"{where}: the document has a vector in `_vectors.{space}` already; remove one "
                    "of them, or name another space"
                )
            try:
                vectors[space] = quantised(rows[row])
            except ValueError as error:
                raise _fault(f"{where} {error}; correct the row") from None
        yield set_vectors(document, vectors)
    for space, rows in rows_of.items():
        if len(rows) != count:
            raise _other_number(space, rows, f"{count:,}")


def _rows_of(space: str, value: object) -> npt.NDArray[Any]:
    import numpy as np

    if fault := name_fault(space):
        raise _fault(f"vectors: {fault}; choose another")
    where, rows = f"vectors of `{space}`", value
    if isinstance(value, str | PathLike):
        where = f"{where} (`{value}`)"
        try:
            rows = np.load(value, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            reason = getattr(error, "strerror", None) or "it is not an array of NumPy"
            raise _fault(
                f"{where} cannot be read: {reason}; name a file that numpy.save wrote"
            ) from None
    if not isinstance(rows, np.ndarray) or rows.ndim != 2:
        shape = f"of shape {rows.shape}" if isinstance(rows, np.ndarray) else type(rows).__name__
        raise _fault(f"{where} is {shape}; give an array (documents, dimension)")
    if rows.dtype.name not in _TYPES:
        raise _fault(f"{where} has numbers of type {rows.dtype}; use one of {', '.join(_TYPES)}")
    if not 1 <= rows.shape[1] <= MAX_DIMENSION:
        raise _fault(
            f"{where} has {rows.shape[1]:,} values a row; 1 to {MAX_DIMENSION:,} are allowed"
        )
    return rows


def _other_number(space: str, rows: npt.NDArray[Any], documents: str) -> CollectionError:
    return _fault(
        f"vectors of `{space}`: {counted(len(rows), 'row')}, and the source has {documents} "
        "documents; row i is the vector of the i-th document"
    )


def _fault(message: str) -> CollectionError:
    return CollectionError(message, field="vectors")
