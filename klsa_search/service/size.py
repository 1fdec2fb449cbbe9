"""The size of an answer: so much and no more, found out before it is told as JSON.

To tell it is one call that lets nothing else run: neither a deadline nor /health nor a signal.
"""

from __future__ import annotations

from collections.abc import Mapping
from json.encoder import encode_basestring
from typing import Final

from pydantic import BaseModel

from klsa_search.errors import QueryError

MAX_ANSWER: Final = 2**25
"""Bytes of one answer's JSON: 0.1 s of telling, and more than a document of 30 MB takes."""

_NUMBER: Final = 25
"""Bytes of a number, true, false or null at most, with what stands between it and the next."""

_MARKS: Final = 6
"""Bytes of a text's quotes, of what stands before and after it, and of a pair of brackets."""


def refuse_too_large(answer: BaseModel) -> None:
    """QueryError where an answer would take more than `MAX_ANSWER` bytes; seen within that much."""
    left = MAX_ANSWER
    waiting: list[object] = [answer]
    while waiting:
        value = waiting.pop()
        if isinstance(value, BaseModel):
            value = dict(value)
        if isinstance(value, str):
            # Written out only where it may fit, so that no text costs more than the bound.
            left -= _MARKS + (len(encode_basestring(value).encode()) if len(value) < left else left)
        elif isinstance(value, Mapping):
            left -= _MARKS
            waiting += value.keys()
            waiting += value.values()
        elif isinstance(value, list | tuple):
            left -= _MARKS
            waiting += value
        else:
            left -= _NUMBER
        if left < 0:
            raise too_large()


def too_large() -> QueryError:
    """Say that an answer would be."""
    return QueryError(
        f"the answer would have more than {MAX_ANSWER:,} bytes: ask for less at a time, or read "
        "the index in Python (klsa_search.open_index)"
    )
