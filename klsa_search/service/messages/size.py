"""Limit of the size of an answer, checked before it is written as JSON.

To tell it is one call that lets nothing else run: neither a deadline nor /health nor a signal.
"""

from __future__ import annotations

from json.encoder import encode_basestring
from typing import Final

from pydantic import BaseModel

from klsa_search.errors import QueryError

MAX_ANSWER: Final = 2**25
"""Maximum bytes of the JSON of an answer: 0.1 s of writing, enough for a document of 30 MB."""

_NUMBER: Final = 25
"""Bytes of a number, true, false or null at most, with what stands between it and the next."""

_MARKS: Final = 6
"""Bytes of a text's quotes, of what stands before and after it, and of a pair of brackets."""

_PLAIN: Final = (float, int, type(None))
_HOLDERS: Final = (dict, list, tuple)


def refuse_too_large(answer: BaseModel) -> None:
    """QueryError where an answer would take more than `MAX_ANSWER` bytes.

    Cost: that of the bound, however large the answer is; some microseconds a hit.
    """
    if _exceeds(answer):
        raise too_large()


def too_large() -> QueryError:
    """Say that an answer would be."""
    return QueryError(
        f"the answer is larger than {MAX_ANSWER:,} bytes; request less at a time, "
        "or read the index in Python (klsa_search.open_index)"
    )


def _exceeds(answer: BaseModel) -> bool:
    left = MAX_ANSWER
    waiting: list[object] = [answer]
    while waiting and left >= 0:
        value = waiting.pop()
        if isinstance(value, str):
            left -= _MARKS + _width(value)
        elif isinstance(value, _PLAIN):
            left -= _NUMBER
        else:
            left -= _MARKS
            if not isinstance(value, _HOLDERS):
                value = vars(value)  # of a model
            waiting += value
            if isinstance(value, dict):
                waiting += value.values()
    return left < 0


def _width(text: str) -> int:
    # One that is longer than all may be is not written out, so that no text costs more than that.
    return len(text) if len(text) > MAX_ANSWER else len(encode_basestring(text).encode())
