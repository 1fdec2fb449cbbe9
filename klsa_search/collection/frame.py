"""Data frames as sources, one document per row. pandas and polars are known by their methods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any


def is_frame(source: Any) -> bool:
    """Whether it is a data frame of pandas or polars; imports neither."""
    return hasattr(source, "columns") and _reader(source) is not None


def rows(frame: Any) -> Iterator[Mapping[str, Any]]:
    """Rows by column, one in memory at a time; a gap is None, a date or time in ISO 8601."""
    reader = _reader(frame)
    assert reader is not None
    names = [str(name) for name in frame.columns]
    for row in reader():
        yield dict(zip(names, map(_plain, row), strict=True))


def _reader(frame: Any) -> Any:
    if hasattr(frame, "iter_rows"):  # polars
        return frame.iter_rows
    if hasattr(frame, "itertuples"):  # pandas
        return lambda: frame.itertuples(index=False, name=None)
    return None


def _plain(value: Any) -> Any:
    """What JSON has for the value of a cell."""
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if hasattr(value, "tolist"):  # NumPy's
        return _plain(value.tolist())
    # NaN and NaT are not equal to themselves; NA of pandas is not known to be.
    same = value == value
    if not isinstance(same, bool) or not same:
        return None
    return value.isoformat() if isinstance(value, date) else value
