"""The base of answers, and the maximum size of a response."""

from __future__ import annotations

from time import perf_counter
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field

from klsa_search.errors import QueryError


class Answer(BaseModel):
    """Base of all response bodies."""

    model_config = ConfigDict(frozen=True, from_attributes=True, ser_json_inf_nan="null")


class IndexAnswer(Answer):
    """Base of answers that are computed from one index; `IndexService.answer` sets these fields."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)

    index: str = ""
    generation: str = ""
    time_ms: float = Field(0.0, description="duration in milliseconds")


def elapsed(begin: float) -> float:
    """Return the milliseconds since `begin`, in seconds of `perf_counter`."""
    return round(1000 * (perf_counter() - begin), 3)


MAX_ANSWER: Final = 2**25
"""Maximum bytes of the JSON of an answer: enough for a document of 30 MB."""


def encoded(answer: BaseModel, **options: Any) -> bytes:
    """Return an answer as JSON; QueryError if it is larger than `MAX_ANSWER`.

    options  of `BaseModel.model_dump_json`
    """
    content = answer.model_dump_json(**options).encode()
    if len(content) > MAX_ANSWER:
        raise too_large()
    return content


def too_large() -> QueryError:
    """Return the error for an answer that is too large."""
    return QueryError(
        f"the answer is larger than {MAX_ANSWER:,} bytes; request less at a time, "
        "or read the index in Python (klsa_search.open_index)"
    )
