"""Base class of groups of settings: immutable, validated, with errors that name the setting."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from klsa_search.errors import SettingsError


class SettingsGroup(BaseModel):
    """Base class of the groups: immutable, no unknown names, no conversion, finite numbers."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    @classmethod
    def checked(cls, options: Mapping[str, Any]) -> Self:
        """Return the group made of a mapping; SettingsError names the first invalid setting."""
        try:
            return cls(**options)
        except ValidationError as error:
            first = error.errors()[0]
            if first["type"] == "misfit":
                name, message = first["ctx"]["field"], first["msg"]
                raise SettingsError(message, field=name) from None
            name = str(first["loc"][0]) if first["loc"] else "settings"
            if first["type"] == "extra_forbidden":
                names = ", ".join(sorted(cls.model_fields))
                message = f"unknown setting {name!r}; the settings are: {names}"
            else:
                message = f"{name} = {first['input']!r}: {first['msg']}"
            raise SettingsError(message, field=name) from None

    @classmethod
    def of(cls, settings: Any) -> Self:
        """Return this group of settings that contain it."""
        return cls(**{name: getattr(settings, name) for name in cls.model_fields})
