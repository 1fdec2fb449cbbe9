"""Groups of settings: their base class, their faults, and options of the command line for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from reprlib import Repr
from typing import Any, Final, Self

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import PydanticCustomError

from klsa_search.errors import SettingsError

_BRIEF: Final = Repr()
_BRIEF.maxother = _BRIEF.maxstring = 200


@dataclass(frozen=True)
class Shown:
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


def first_fault(error: ValidationError, model: type[BaseModel], kind: str) -> tuple[str, str]:
    """Return a sentence about the first invalid value of a model, and the name of its field.

    kind  what a field is called, such as "setting"
    """
    first = error.errors(include_url=False)[0]
    if first["type"] == "misfit":
        return first["msg"], first["ctx"]["field"]
    name = str(first["loc"][0]) if first["loc"] else f"{kind}s"
    if first["type"] == "extra_forbidden":
        names = ", ".join(sorted(model.model_fields))
        return f"unknown {kind} {name!r}; the {kind}s are: {names}", name
    value = _BRIEF.repr(first["input"])
    if first["type"] == "string_type":
        return f"{name} = {value} is not a text; give a string", name
    return f"{name} = {value}: {first['msg']}", name


def conflict(field: str, reason: str, value: object) -> PydanticCustomError:
    """Return the error of a validator that names the parameter to change."""
    context = {"field": field, "reason": reason, "value": repr(value)}
    return PydanticCustomError("misfit", "{field} = {value}: {reason}", context)
