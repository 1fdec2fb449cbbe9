"""Facets: counts of the values of a metadata field among the matches."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from klsa_search.storage.columns.columns import Field

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facet:
    """Value counts of a metadata field over all matches; a document counts once for each value.

    type         "keyword", "number" or "date"
    values       values with their numbers of documents, most frequent first, then ascending; dates
                 as in 2024-03-01T00:00:00Z
    other_count  number of further distinct values
    missing      number of matches without a value
    min, max     smallest and largest value of a number or date field, if any

    >>> facet: klsa.Facet = index.search("coolant", facets=["about"]).facets["about"]
    >>> facet.values[:2]
    (('pumps', 2), ('engines', 1))
    """

    type: str
    values: tuple[tuple[Any, int], ...]
    other_count: int
    missing: int
    min: float | str | None
    max: float | str | None


def facet_of(field: Field, matches: npt.NDArray[np.bool_], limit: int) -> Facet:
    """Count the values of a field in some documents, (N,) bool. Cost: O(N + values)."""
    if field.starts is None:
        held_values = field.values[matches & field.present()]
        with_value = len(held_values)
    else:
        lengths = np.diff(field.starts)
        held_values = field.values[np.repeat(matches, lengths)]
        with_value = int(np.count_nonzero(lengths[matches]))
    values, counts = np.unique(held_values, return_counts=True)
    first = np.argsort(-counts, kind="stable")[:limit]
    spanned = field.type != "keyword" and len(values) > 0
    counted = values[first]
    if field.type == "keyword":
        names: list[Any] = field.texts.at(counted)
    else:
        names = [_to_json(field, value) for value in counted.tolist()]
    return Facet(
        type=field.type,
        values=tuple(zip(names, counts[first].tolist(), strict=True)),
        other_count=len(values) - len(first),
        missing=int(np.count_nonzero(matches)) - with_value,
        min=_to_json(field, values[0].item()) if spanned else None,
        max=_to_json(field, values[-1].item()) if spanned else None,
    )


def comparable(kind: str, value: float | str) -> float | str:
    """Return what orders a value of a facet of a type: of a date, microseconds since 1970."""
    if kind != "date" or not isinstance(value, str):
        return value
    return int(np.datetime64(value.removesuffix("Z"), "us").astype(np.int64))


def _to_json(field: Field, value: Any) -> Any:
    if field.type == "number":
        return int(value) if value.is_integer() else value
    try:
        moment = _EPOCH + timedelta(microseconds=value)
    except OverflowError:  # outside the years 1 to 9999
        return str(np.datetime64(value, "us")) + "Z"
    return moment.isoformat().replace("+00:00", "Z")
