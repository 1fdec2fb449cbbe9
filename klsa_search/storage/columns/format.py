"""Files of the columns of metadata fields.

    fields_codes.npy        int32    keyword fields: codes of values, in the order of their texts
    fields_numbers.npy      float64  number fields
    fields_dates.npy        int64    date fields: microseconds since 1970 in UTC
    fields_starts.npy       int64    N + 1 for each field with lists: starts of the documents
    fields_texts.npy        uint8    texts of keyword fields in UTF-8, ascending in each field
    fields_text_starts.npy  int64    start of each text

Each file concatenates all fields of its kind in the order of their names, and exists if there is
such a field. A field without lists has one value a document: -1, NaN or the least int64 if it is
missing.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from klsa_search.core.build_settings import FieldType

DTYPES: Final[dict[FieldType, np.dtype[Any]]] = {
    "keyword": np.dtype(np.int32),
    "number": np.dtype(np.float64),
    "date": np.dtype(np.int64),
}
"""Storage type of each field type."""

MISSING: Final[dict[FieldType, Any]] = {
    "keyword": -1,
    "number": np.nan,
    "date": np.iinfo(np.int64).min,
}
"""Missing values of fields without lists."""

FILES: Final[dict[FieldType, str]] = {
    "keyword": "fields_codes",
    "number": "fields_numbers",
    "date": "fields_dates",
}
STARTS: Final = "fields_starts"
TEXTS: Final = "fields_texts"
TEXT_STARTS: Final = "fields_text_starts"
