"""Vectors as JSON: lists instead of arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from klsa_search.collection.vectors import VECTORS


def without_arrays(value: Any) -> Any:
    """Return a mapping, list or array with lists of numbers instead of arrays."""
    if isinstance(value, Mapping):
        return {name: without_arrays(entry) for name, entry in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return [without_arrays(entry) for entry in value] if isinstance(value, list | tuple) else value


def with_lists(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of a document, with lists instead of arrays in its vectors."""
    if VECTORS in record:
        return {**record, VECTORS: without_arrays(record[VECTORS])}
    if isinstance(metadata := record.get("metadata"), Mapping) and VECTORS in metadata:
        return {**record, "metadata": with_lists(metadata)}
    return record
