"""Groups of settings: their base class, their invalid values in words, and their options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from types import MappingProxyType
from typing import Any, Final, Self

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from klsa_search.core.arguments import brief, name_of, wrong_type
from klsa_search.core.wording import suggestion
from klsa_search.errors import SettingsError

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


@dataclass(frozen=True)
class OptionDisplay:
    """Option of a setting on the command line, as far as it does not follow from the declaration.

    option   option; by default --name, and --no-name for a yes or no
    metavar  placeholder of the value
    default  default in words
    """

    option: str | None = None
    metavar: str | None = None
    default: str | None = None


class SettingsGroup(BaseModel):
    """Base class of the groups: immutable, no unknown names, no conversion, finite numbers."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    @classmethod
    def checked(cls, options: Mapping[str, Any]) -> Self:
        """Return the group made of a mapping; SettingsError names the first invalid setting."""
        try:
            return cls(**options)
        except ValidationError as error:
            message, field = first_fault(error, cls, "setting")
            raise SettingsError(message, field=field) from None

    @classmethod
    def of(cls, settings: object) -> Self:
        """Return this group of settings that contain it."""
        return cls(**{name: getattr(settings, name) for name in cls.model_fields})


def conflict(field: str, reason: str, value: object) -> PydanticCustomError:
    """Return the error of a validator that names the parameter to change."""
    context = {"field": field, "reason": reason, "value": repr(value)}
    return PydanticCustomError("misfit", "{field} = {value}: {reason}", context)


def as_tuple(value: object) -> object:
    """Return the items of an iterable as a tuple, and everything else as it is.

    A text or a path is one item.
    """
    if isinstance(value, str | PathLike):
        return (value,)
    if isinstance(value, Iterable) and not isinstance(value, bytes | Mapping):
        return tuple(value)
    return value
