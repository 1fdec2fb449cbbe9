"""Values of Python programs, of MongoDB in JSON, and lists in tables, as plain JSON values."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from math import isnan
from pathlib import PurePath
from typing import Any, Final
from uuid import UUID

_JSON: Final = frozenset({str, int, float, bool, type(None)})


def json_value(value: Any) -> Any:
    """Return a value as Python programs, databases and data frames have it as a JSON value.

    Dates and times are ISO 8601, numbers of NumPy are numbers, UUIDs and paths are texts, members
    of enumerations are their values, and NaN, NaT and NA are None, also in lists, tuples, sets and
    mappings. A decimal number that is not whole becomes the nearest float64. Anything else is
    returned unchanged.
    """
    if type(value) in _JSON:
        return None if isinstance(value, float) and isnan(value) else value
    if isinstance(value, list | tuple | range):
        return [json_value(item) for item in value]
    if isinstance(value, set | frozenset):
        return [json_value(item) for item in sorted(value, key=str)]
    if isinstance(value, Mapping):
        return {name: json_value(item) for name, item in value.items()}
    if hasattr(value, "tolist") and hasattr(value, "dtype"):  # NumPy's
        if value.dtype.str[1:] == "M8[ns]":  # which becomes a number
            value = value.astype("datetime64[us]")
        return json_value(value.tolist())
    # NaN and NaT are not equal to themselves; comparing NA of pandas gives no bool.
    same = value == value
    if not isinstance(same, bool) or not same:
        return None
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Decimal):
        is_integer = value.is_finite() and value == value.to_integral_value()
        return int(value) if is_integer else float(value)
    if isinstance(value, Enum):
        return json_value(value.value)
    return str(value) if isinstance(value, UUID | PurePath) else value


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


_TYPES: Final[dict[str, Callable[[Any], Any]]] = {
    "$oid": str,
    "$date": _date,
    "$numberInt": int,
    "$numberLong": int,
    "$numberDouble": lambda value: json_value(float(value)),
    "$numberDecimal": str,
    "$symbol": str,
    "$uuid": str,
}


_ELEMENT: Final = r"""(?:u?'(?:[^'\\]|\\.)*+'|u?"(?:[^"\\]|\\.)*+"|[^\s'",\[\]]++)"""
_PYTHON_LIST: Final = re.compile(rf"\[\s*+(?:{_ELEMENT}\s*+(?:,\s*+{_ELEMENT}\s*+)*+,?\s*+)?\]")


_ARRAY_ELEMENT: Final = r'"(?:[^"\\]|\\.)*+"|[^\s"\'{},:\\][^"{},\\]*+'
_ARRAY: Final = re.compile(rf"\{{(?:(?:{_ARRAY_ELEMENT})(?:,(?:{_ARRAY_ELEMENT}))*+)?\}}")


def list_of(cell: Any) -> list[Any] | None:
    """Return a list as JSON, Python and PostgreSQL write it; None for another cell.

    >>> list_of('["red", "big"]'), list_of("['red', 'big']"), list_of("[red]")
    (['red', 'big'], ['red', 'big'], None)
    >>> list_of('{red,"big, heavy",NULL}'), list_of("{}"), list_of('{"a": 1}')
    (['red', 'big, heavy'], [], None)
    """
    if isinstance(cell, str) and cell.startswith("{") and _ARRAY.fullmatch(cell):
        elements = (e for e in re.findall(_ARRAY_ELEMENT, cell) if e != "NULL")
        return [re.sub(r"\\(.)", r"\1", e[1:-1]) if e[0] == '"' else e for e in elements]
    if not (isinstance(cell, str) and cell.startswith("[") and cell.endswith("]")):
        return None
    try:
        value = json.loads(cell)
    except ValueError:
        if not _PYTHON_LIST.fullmatch(cell):  # Python joins texts without a comma, as NumPy writes
            return None
        try:
            value = ast.literal_eval(cell)
        except (MemoryError, RecursionError, SyntaxError, ValueError):
            return None
    except RecursionError:
        return None
    is_plain = isinstance(value, list) and all(isinstance(v, str | int | float) for v in value)
    return value if is_plain else None
