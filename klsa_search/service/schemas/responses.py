"""Response models of documents, writes and indexes, and the maximum size of a response.

A response is encoded in one call that holds the GIL: neither deadlines nor /health nor signals are
handled meanwhile, so its size is checked first.
"""

from __future__ import annotations

from json.encoder import encode_basestring
from time import perf_counter
from typing import Final

from pydantic import BaseModel, ConfigDict

from klsa_search.errors import QueryError


class Answer(BaseModel):
    """Base of all response bodies."""

    model_config = ConfigDict(frozen=True, from_attributes=True, ser_json_inf_nan="null")


def elapsed(begin: float) -> float:
    """Return the milliseconds since `begin`, in seconds of `perf_counter`."""
    return round(1000 * (perf_counter() - begin), 3)


MAX_ANSWER: Final = 2**25
"""Maximum bytes of the JSON of an answer: 0.1 s to encode, enough for a document of 30 MB."""

_NUMBER: Final = 25
"""Maximum bytes of a number, true, false or null, with a separator."""

_DELIMITERS: Final = 6
"""Maximum bytes of quotes or brackets, with separators."""

_SCALARS: Final = (float, int, type(None))
_CONTAINERS: Final = (dict, list, tuple)


def refuse_too_large(answer: BaseModel) -> None:
    """Raise QueryError if an answer would take more than `MAX_ANSWER` bytes.

    Cost: some microseconds a hit, at most that of `MAX_ANSWER` bytes.
    """
    if _exceeds(answer):
        raise too_large()


def too_large() -> QueryError:
    """Return the error for an answer that is too large."""
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
            left -= _DELIMITERS + _width(value)
        elif isinstance(value, _SCALARS):
            left -= _NUMBER
        else:
            left -= _DELIMITERS
            if not isinstance(value, _CONTAINERS):
                value = vars(value)  # of a model
            waiting += value
            if isinstance(value, dict):
                waiting += value.values()
    return left < 0


def _width(text: str) -> int:
    # A longer text is not encoded, as its length alone exceeds the limit.
    return len(text) if len(text) > MAX_ANSWER else len(encode_basestring(text).encode())
