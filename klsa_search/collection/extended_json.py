"""Values with a type as MongoDB exports them in JSON, such as {"$oid": "65f0c0ff"}."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from math import isnan
from typing import Any, Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def without_types(value: Any) -> Any:
    """Return a JSON value with objects such as {"$oid": ...} as texts and numbers.

    Dates become ISO 8601, NaN null. What MongoDB has no plain value for stays as it is.

    >>> without_types({"_id": {"$oid": "65f0"}, "n": {"$numberLong": "5"}})
    {'_id': '65f0', 'n': 5}
    >>> without_types({"$date": {"$numberLong": "1709285400000"}})
    '2024-03-01T09:30:00+00:00'
    """
    if isinstance(value, list):
        return [without_types(element) for element in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        ((name, inner),) = value.items()
        if name in _TYPES:
            try:
                return _TYPES[name](inner)
            except (ArithmeticError, TypeError, ValueError):
                return value
    return {name: without_types(inner_value) for name, inner_value in value.items()}


def _date(value: Any) -> str:
    if isinstance(value, str):
        return value
    milliseconds = without_types(value)
    return (_EPOCH + timedelta(milliseconds=milliseconds)).isoformat()


def _double(value: Any) -> float | None:
    number = float(value)
    return None if isnan(number) else number


_TYPES: Final[dict[str, Callable[[Any], Any]]] = {
    "$oid": str,
    "$date": _date,
    "$numberInt": int,
    "$numberLong": int,
    "$numberDouble": _double,
    "$numberDecimal": str,
    "$symbol": str,
    "$uuid": str,
}
