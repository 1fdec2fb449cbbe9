"""What every request may ask for: the types are the contract, the limits and the schema.

Those of a search are in `searching`, those of mining in `mining`, and what only one router reads
stands with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from klsa_search.search.wishes import MOST_NAMES

# No request may take more than about a second of an index like Reuters-21578, and whatever it asks
# for, `size.MAX_ANSWER` holds. Limits of single requests are declared with their fields.
MAX_HITS = 1_000
MAX_QUERY = 10_000
MAX_NAME = 100


def encodable(text: str) -> str:
    """Refuse half of a surrogate pair, which JSON can spell and UTF-8 cannot carry back."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError("it contains half of a surrogate pair") from error
    return text


Text = Annotated[str, AfterValidator(encodable)]
# A limit stands before the validator: behind it, it would count what it calls items.
QueryText = Annotated[str, Field(max_length=MAX_QUERY), AfterValidator(encodable)]
Name = Annotated[str, Field(max_length=MAX_NAME), AfterValidator(encodable)]
Names = Annotated[
    tuple[Text, ...],
    Field(max_length=MOST_NAMES),
    # JSON has lists, and a strict tuple is none.
    BeforeValidator(lambda given: tuple(given) if isinstance(given, list) else given),
]
IndexName = Annotated[Name, Field(description="may be left out when one index is served")]


def misfit(field: str, message: str) -> PydanticCustomError:
    """What a validator raises for what does not fit together."""
    return PydanticCustomError("misfit", "{message}", {"message": message, "field": field})


class RequestModel(BaseModel):
    """Base of the parameters of a request; unknown names are errors.

    In a body a number is a number: "10" and true are not. In a URL all values are texts; see
    `querying`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _known(cls, given: Any) -> Any:
        names = given if isinstance(given, Mapping) else {}
        for name in names:
            if name not in cls.model_fields:
                raise PydanticCustomError(
                    "unknown_parameter",
                    "unknown parameter {name}; the parameters are: {known}",
                    {
                        "name": repr(name),
                        "known": ", ".join(cls.model_fields),
                        "field": str(name).encode(errors="backslashreplace").decode(),
                    },
                )
        return given


class DocumentRequest(RequestModel):
    """The parameters of GET /documents/{id}."""

    index: IndexName | None = None
