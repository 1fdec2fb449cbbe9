"""Bases of requests and answers: limits, reading of query parameters, encoding.

FastAPI's `Query()` takes 130 µs to read a `SearchRequest`, half the time of an empty request; the
model takes 5 µs. As a dependency it would take 15 µs more.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from inspect import cleandoc
from itertools import dropwhile
from time import perf_counter
from typing import Annotated, Any, Final, Self, TypeVar

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError, Url, to_json

from klsa_search.core.parameters import encodable
from klsa_search.core.wording import suggestion
from klsa_search.errors import QueryError

# With these limits no request of an index like Reuters-21578 takes more than about a second. The
# size of a response is limited by `MAX_ANSWER`.
MAX_HITS = 1_000
MAX_QUERY = 10_000
MAX_NAME = 100


# Limits are before the validator: after it, pydantic calls characters items in its message.
QueryText = Annotated[str, Field(max_length=MAX_QUERY), AfterValidator(encodable)]
Name = Annotated[str, Field(max_length=MAX_NAME), AfterValidator(encodable)]
IndexName = Annotated[Name, Field(description="may be left out when one index is served")]


def field_error(field: str, message: str) -> PydanticCustomError:
    """Return the error of a validator for a field that conflicts with others."""
    return PydanticCustomError("field_error", "{message}", {"message": message, "field": field})


class RequestModel(BaseModel):
    """Base of the parameters of a request; unknown names are errors.

    In a body, types are strict: "10" and true are not numbers. A text where a list of texts is
    needed is a list of one. In a URL all values are text: see `read_parameters`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown(cls, value: Any) -> Any:
        if isinstance(value, list):
            required = [name for name, about in cls.model_fields.items() if about.is_required()]
            form = ", ".join(f'"{name}": ...' for name in required) or "..."
            raise PydanticCustomError(
                "list_sent", "a list was sent; send an object: {form}", {"form": f"{{{form}}}"}
            )
        fields = cls.model_fields.keys()
        for name in value if isinstance(value, dict) else ():
            if name not in fields:
                advice = suggestion(str(name), fields).strip()
                advice = advice or f"the parameters are: {', '.join(fields)}"
                raise PydanticCustomError(
                    "unknown_parameter",
                    "unknown parameter {name}; {advice}",
                    {
                        "name": repr(name),
                        "advice": advice,
                        "field": str(name).encode(errors="backslashreplace").decode(),
                    },
                )
        if isinstance(value, dict) and any(isinstance(item, str) for item in value.values()):
            lists = _of_kind(cls, _is_list)
            return {
                name: [item] if isinstance(item, str) and name in lists else item
                for name, item in value.items()
            }
        return value

    @classmethod
    async def of_url(cls, request: Request) -> Self:
        """Return the parameters in the URL of a request: a dependency of routes."""
        return read_parameters(request, cls)


M = TypeVar("M", bound=RequestModel)
T = TypeVar("T")


def read_parameters(request: Request, model: type[M]) -> M:
    """Return the model of the query string of a request.

    Values of a list are separated by commas, or the parameter is repeated. RequestValidationError,
    as FastAPI raises it, if another parameter is repeated or a value is invalid. Objects
    can only be in a body. For the OpenAPI schema of the parameters see `documented_parameters`.
    """
    query = request.scope["query_string"].decode("latin-1")
    texts_of: defaultdict[str, list[str]] = defaultdict(list)
    for name, text in Url(f"http://service/?{query}").query_params():  # 4 times as fast as urllib
        texts_of[name].append(text)
    value: dict[str, Any] = {}
    fault = ""
    for name, values in texts_of.items():
        if name in _of_kind(model, _is_list):
            value[name] = ",".join(values).split(",")
        elif name in _of_kind(model, _is_object):
            fault = f"{name} cannot be in a URL; send it with POST, in a JSON body"
        else:
            value[name] = values[-1]
            if len(values) > 1 and name in model.model_fields:  # else the model refuses it
                fault = f"{name} is given {len(values)} times; give it once"
        if fault:
            error = {"type": "not_in_url", "loc": ("query", name), "msg": fault}
            raise RequestValidationError([error | {"input": values[-1], "ctx": {"field": name}}])
    try:
        return model.model_validate(value, strict=False)  # in a URL numbers are text
    except ValidationError as error:
        errors_ = [{**values, "loc": ("query", *values["loc"])} for values in error.errors()]
        raise RequestValidationError(errors_) from None


@cache
def _of_kind(model: type[BaseModel], is_kind: Callable[[dict[str, Any]], bool]) -> frozenset[str]:
    """Return the names of the parameters that are lists, or objects."""
    properties = model.model_json_schema()["properties"]
    return frozenset(name for name, about in properties.items() if is_kind(about))


def _is_list(about: dict[str, Any]) -> bool:
    return bool(_in_url(about).get("type") == "array")


def _is_object(about: dict[str, Any]) -> bool:
    kinds = {one.get("type") for one in about.get("anyOf", [about])}
    return kinds <= {"null", "object"}


def documented_parameters(model: type[BaseModel]) -> dict[str, Any]:
    """Return the OpenAPI schema of the query parameters of a model."""
    schema = model.model_json_schema()
    required = schema.get("required", [])
    parameters = []
    for name, about in schema["properties"].items():
        if _is_object(about):
            continue
        about = _in_url(about)
        one = {"name": name, "in": "query", "required": name in required, "schema": about}
        if _is_list(about):
            one |= {"style": "form", "explode": False}
        if "description" in about:
            one["description"] = about["description"]
        parameters.append(one)
    return {"parameters": parameters}


def _in_url(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema without the types that a URL cannot have: null and objects."""
    kinds = [one for one in schema.get("anyOf", ()) if one.get("type") not in ("null", "object")]
    if len(kinds) != 1:
        return schema
    kind: dict[str, Any] = kinds[0]
    return {name: part for name, part in schema.items() if name != "anyOf"} | kind


class Answer(BaseModel):
    """Base of all response bodies."""

    model_config = ConfigDict(frozen=True, from_attributes=True, ser_json_inf_nan="null")


class IndexAnswer(Answer):
    """Base of answers that are computed from one index; `IndexService.answer` sets these fields."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)

    index: str = ""
    generation: str = ""
    time_ms: float = Field(0.0, description="duration in milliseconds")


ROW: Final = re.compile(r"(\w+(?:, \w+)*)  +(\S.*)")
"""Line of a docstring that begins the description of fields."""


def documented(answer: type[T]) -> type[T]:
    """Add to the docstring of an answer the descriptions of the fields of the class it extends."""
    lines = cleandoc(answer.__base__.__doc__ or "").partition("\n>>>")[0].splitlines()
    rows = list(dropwhile(lambda line: not ROW.fullmatch(line), lines))
    answer.__doc__ = "\n".join([cleandoc(answer.__doc__ or ""), "", *rows])
    return answer


def elapsed(begin: float) -> float:
    """Return the milliseconds since `begin`, in seconds of `perf_counter`."""
    return round(1000 * (perf_counter() - begin), 3)


MAX_ANSWER: Final = 2**25  # maximum bytes of the JSON of an answer: enough for a document of 30 MB


def encoded(answer: object) -> bytes:
    """Return an answer as JSON; QueryError if it is larger than `MAX_ANSWER`."""
    content = to_json(answer, inf_nan_mode="null")
    if len(content) > MAX_ANSWER:
        raise too_large()
    return content


def too_large() -> QueryError:
    """Return the error for an answer that is too large."""
    return QueryError(
        f"the answer is larger than {MAX_ANSWER:,} bytes; request less at a time, "
        "or read the index in Python (klsa_search.open_index)"
    )
