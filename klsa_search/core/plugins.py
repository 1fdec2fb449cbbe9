"""Plug-ins: parts of other installed packages, found by their entry points.

A package names its plug-ins in its metadata, in a group for each kind:

    [project.entry-points."klsa_search.rankers"]
    my-ranker = "my_package.rankers:rank"

The metadata of installed packages is read at the first name that is not built in, once per process,
and the code of a plug-in is imported at its first use. Built-in names cannot be replaced.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from operator import attrgetter
from typing import Any, Final, Literal

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from klsa_search.errors import PluginFailed, SettingsError

PluginKind = Literal["ranker", "kernel", "spectral", "tokenizer", "embedder", "reranker"]

GROUPS: Final[Mapping[PluginKind, str]] = {
    "ranker": "klsa_search.rankers",
    "kernel": "klsa_search.kernels",
    "spectral": "klsa_search.spectral_functions",
    "tokenizer": "klsa_search.tokenizers",
    "embedder": "klsa_search.embedders",
    "reranker": "klsa_search.rerankers",
}
"""Group of entry points of each kind of plug-in."""


@dataclass(frozen=True)
class Plugin:
    """An installed plug-in: its name, and the distribution that provides it."""

    name: str
    distribution: str
    version: str


@cache
def entry_points_of(kind: PluginKind) -> dict[str, list[EntryPoint]]:
    """Return the entry points of a kind by name. Cost: reads the metadata of all packages."""
    entries: dict[str, list[EntryPoint]] = {}
    for entry in entry_points(group=GROUPS[kind]):
        entries.setdefault(entry.name, []).append(entry)
    return entries


def plugin_names(kind: PluginKind) -> tuple[str, ...]:
    """Return the names of the installed plug-ins of a kind, sorted; imports none of them."""
    return tuple(sorted(entry_points_of(kind)))


def find_plugin(kind: PluginKind, name: str) -> Plugin | None:
    """Return an installed plug-in, without importing it; None if no package provides it.

    Raise PluginFailed if several packages do.
    """
    entry = _entry(kind, name)
    return None if entry is None else _plugin(entry)


@cache
def load_plugin(kind: PluginKind, name: str) -> Any:
    """Import a plug-in and return its object; PluginFailed if that is not possible."""
    entry = _entry(kind, name)
    if entry is None:
        raise PluginFailed(
            f"{kind} `{name}` is not installed; install the package that provides it", field=kind
        )
    try:
        return entry.load()
    except Exception as error:  # code of another package may raise anything
        plugin = _plugin(entry)
        raise PluginFailed(
            f"{kind} `{name}` of {plugin.distribution} {plugin.version} cannot be imported "
            f"({type(error).__name__}: {error}); correct or reinstall {plugin.distribution}",
            field=kind,
        ) from error


def imported(kind: PluginKind, name: str) -> object:
    """Import what is named `module:path`; SettingsError if that is not possible."""
    module, _, path = name.partition(":")
    try:
        loaded: object = attrgetter(path)(import_module(module))
    except Exception as error:  # user code may raise anything
        raise SettingsError(
            f"{kind} `{name}` cannot be imported ({type(error).__name__}: {error}); install its "
            "module, or put its folder on PYTHONPATH",
            field=kind,
        ) from error
    return loaded


def _entry(kind: PluginKind, name: str) -> EntryPoint | None:
    result = entry_points_of(kind).get(name, [])
    if len(result) > 1:
        packages = " and ".join(
            sorted(f"{p.distribution} {p.version}" for p in map(_plugin, result))
        )
        raise PluginFailed(
            f"{kind} `{name}` is provided by {packages}; uninstall all but one", field=kind
        )
    return result[0] if result else None


def _plugin(entry: EntryPoint) -> Plugin:
    # Entry points of installed packages have a distribution.
    assert entry.dist is not None
    return Plugin(entry.name, entry.dist.name, entry.dist.version)


@dataclass(frozen=True)
class PluginName:
    """Metadata of a text field that names a built-in part or a plug-in, for validation by pydantic.

    `built_in` are the names of the built-in parts. Only the existence of a plug-in is checked.
    """

    kind: PluginKind
    built_in: tuple[str, ...]

    def checked(self, name: str) -> str:
        """Return the name; raise PydanticCustomError if neither form of part has it."""
        if name not in self.built_in and find_plugin(self.kind, name) is None:
            choices = ", ".join((*self.built_in, *plugin_names(self.kind)))
            raise PydanticCustomError(
                "unknown_name",
                "no plug-in of this name is installed; {step}install the package that provides it",
                {"step": f"use one of {choices}, or " if choices else ""},
            )
        return name

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Validate after the type."""
        return core_schema.no_info_after_validator_function(self.checked, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Return the schema with all names."""
        return {
            **handler(schema),
            "enum": [*dict.fromkeys((*self.built_in, *plugin_names(self.kind)))],
        }
