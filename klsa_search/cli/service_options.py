"""Options that are made from the settings of the service."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin

import click
from pydantic.fields import FieldInfo

from klsa_search.cli.options import FOLDER, type_of
from klsa_search.service.settings import PREFIX, ServiceSettings, shown_as

F = TypeVar("F", bound=Callable[..., Any])


def service_options(*names: str) -> Callable[[F], F]:
    """Decorate a command with --config, and an option for each of these settings, or for all.

    Type, limits, help and default come from the setting itself. What is not given arrives as None:
    the environment and the file may have it.
    """
    config = click.option(
        "--config",
        type=click.Path(path_type=Path, dir_okay=False, exists=True, readable=False),
        envvar=f"{PREFIX}CONFIG",
        show_envvar=True,
        help="Read service settings from this TOML file",
    )

    def decorate(function: F) -> F:
        for name in reversed(names or tuple(ServiceSettings.model_fields)):
            function = _option(name, ServiceSettings.model_fields[name])(function)
        return config(function)

    return decorate


def flag_of(name: str, field: FieldInfo) -> str:
    """The option of a setting."""
    own = "--" + name.replace("_", "-")
    return shown_as(field).option or (f"{own}/--no-{own[2:]}" if field.annotation is bool else own)


def default_of(field: FieldInfo) -> str:
    """The default of a setting, in words."""
    default = shown_as(field).default
    if default is None and isinstance(field.default, bool):
        return "yes" if field.default else "no"
    return default or ("none" if field.default in (None, ()) else f"{field.default}")


def _option(name: str, field: FieldInfo) -> Callable[[F], F]:
    many = get_origin(field.annotation) is tuple
    kind = _only(field.annotation)
    path = FOLDER if name == "home" else click.Path(path_type=Path, dir_okay=False)
    return click.option(
        flag_of(name, field),
        name,
        default=None,
        multiple=many,
        metavar=shown_as(field).metavar,
        type=path if kind is Path else str if many else type_of(kind, field.metadata),
        callback=(lambda _context, _option, values: values or None) if many else None,
        help=f"{field.description}{'; repeatable' if many else ''}  [default: {default_of(field)}]",
    )


def _only(annotation: Any) -> Any:
    """The type of a setting that may also be None."""
    if isinstance(annotation, UnionType):
        return next(each for each in get_args(annotation) if each is not type(None))
    return annotation
