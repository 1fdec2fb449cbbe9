"""Invalid values in words: what pydantic found, as errors of the package say it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from klsa_search.core.arguments import brief, name_of, wrong_type
from klsa_search.core.wording import suggestion

_LIST: Final = f"{name_of(list)}, such as ['a', 'b']"
_MAPPING: Final = f"{name_of(Mapping)}, such as {{{{'a': 1}}}}"
_REASONS: Final[Mapping[str, str]] = {
    "greater_than_equal": "at least {ge}",
    "greater_than": "above {gt}",
    "less_than_equal": "at most {le}",
    "less_than": "below {lt}",
    "literal_error": "{expected}",
    "finite_number": "a finite number",
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), name_of(int)),
    **dict.fromkeys(("float_type", "float_parsing"), name_of(float)),
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    **dict.fromkeys(("tuple_type", "list_type", "set_type", "iterable_type"), _LIST),
    **dict.fromkeys(("dict_type", "mapping_type", "dataclass_type", "model_type"), _MAPPING),
}
"""What a value must be, by the type of the fault."""

NO_ALIASES: Final[Mapping[str, str]] = MappingProxyType({})


def reason_of(fault: ErrorDetails) -> str:
    """Return why a value is invalid: "must be at least 1"."""
    reason = _REASONS.get(fault["type"])
    return fault["msg"] if reason is None else f"must be {reason.format(**fault.get('ctx', {}))}"


def first_fault(
    error: ValidationError,
    model: type[BaseModel],
    kind: str,
    aliases: Mapping[str, str] = NO_ALIASES,
) -> tuple[str, str]:
    """Return a sentence about the first invalid value of a model, and the name of its field.

    kind     what a field is called, such as "setting"
    aliases  fields by names that they have elsewhere
    """
    first = error.errors(include_url=False)[0]
    if first["type"] == "misfit":
        return first["msg"], first["ctx"]["field"]
    name = str(first["loc"][0]) if first["loc"] else f"{kind}s"
    if first["type"] == "extra_forbidden":
        names = sorted(model.model_fields)
        near = f"use `{aliases[name]}`; " if name in aliases else suggestion(name, names)
        return f"unknown {kind} {name!r}; {near}the {kind}s are: {', '.join(names)}", name
    if first["type"] == "string_type":
        where = name + "".join(f"[{at}]" for at in first["loc"][1:] if isinstance(at, int))
        return wrong_type(where, first["input"], str), name
    return f"{name} = {brief(first['input'])}: {reason_of(first)}", name
