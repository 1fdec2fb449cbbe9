"""Vectors of documents: the metadata field `_vectors`, and the form in which it is stored.

    {"id": "a", "text": "...", "_vectors": {"minilm": [0.1, -0.3, ...]}}

names a space and the vector of the document in it, or several vectors, which are those of its
passages. A vector counts by its direction only. It is stored as 8-bit integers, largest 127, in
base64: sums of their products are exact, so the same vectors give the same scores on any machine.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from klsa_search.collection.model import Document

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

VECTORS: Final = "_vectors"

LARGEST: Final = 127
"""Largest absolute value in a stored vector."""
MAX_DIMENSION: Final = 8192
MAX_SPACES: Final = 10

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

Rows: TypeAlias = "npt.NDArray[np.int8]"
"""(n, dimension), stored vectors."""


def quantised(given: object) -> Rows:
    """Return one vector or several, as an array or lists, in stored form: (n, dimension).

    ValueError says what is wrong with them. Quantising stored vectors changes nothing.

    >>> quantised([0.6, 0.8])
    array([[ 95, 127]], dtype=int8)
    """
    import numpy as np  # all readers of documents import this module

    try:
        rows = np.atleast_2d(np.asarray(given, np.float64))
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


def vectors_of_passage(vectors: Mapping[str, Rows], passage: int, passages: int) -> dict[str, Rows]:
    """Return the vectors of a passage of a document: its own, or all of the document.

    passages  of the document; its vectors are those of its passages if there are as many
    """
    return {
        name: rows[passage : passage + 1] if len(rows) == passages else rows
        for name, rows in vectors.items()
    }


def name_fault(name: object) -> str | None:
    """Return why this cannot be the name of a space, or None."""
    if isinstance(name, str) and _NAME.fullmatch(name):
        return None
    return (
        f"a space {str(name)[:60]!r}, whose name is not 1 to 64 letters, digits, '.', '_' or '-', "
        "beginning with a letter or digit"
    )


def dimension_fault(name: str, rows: Rows, dimension: int) -> str | None:
    """Return why vectors cannot be in a space of that dimension, or None."""
    if rows.shape[1] == dimension:
        return None
    return (
        f"the vector `{VECTORS}.{name}` has {rows.shape[1]:,} values, and the space `{name}` has "
        f"{dimension:,}"
    )


def _stored(given: object, where: str) -> dict[str, list[str]]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ValueError(
            f"{where}: `{VECTORS}` is a {type(given).__name__}, not a mapping of "
            "the name of a space to a vector"
        )
    if len(given) > MAX_SPACES:
        raise ValueError(f"{where}: `{VECTORS}` has {len(given)} spaces, {MAX_SPACES} are allowed")
    stored = {}
    for name, value in sorted(given.items(), key=lambda item: str(item[0])):
        if value is None:
            continue
        if fault := name_fault(name):
            raise ValueError(f"{where}: `{VECTORS}` has {fault}")
        try:
            stored[name] = _encoded(_decoded(value) if _is_encoded(value) else quantised(value))
        except ValueError as error:
            raise ValueError(f"{where}: the vector `{VECTORS}.{name}` {error}") from None
    return stored


def _is_encoded(value: object) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], str)


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
        raise ValueError("has vectors of several lengths")
    return quantised(np.frombuffer(b"".join(pieces), np.int8).reshape(len(pieces), -1))
