"""Groups of settings: their base class, and options of the command line for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import PydanticCustomError

from klsa_search.core.faults import first_fault
from klsa_search.errors import SettingsError


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
