"""The optional extras of the package: what needs them, and whether they are installed."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Final, Literal, NamedTuple

from klsa_search.errors import MissingExtra

ExtraName = Literal[
    "estimators", "eval", "figures", "haystack", "irds", "langchain", "mcp", "pyterrier"
]


class _Extra(NamedTuple):
    """What needs it, and its packages: name to import → name to install."""

    needed_by: str
    packages: Mapping[str, str]


_EXTRAS: Final[Mapping[ExtraName, _Extra]] = {
    "estimators": _Extra("the estimators", {"sklearn": "scikit-learn"}),
    "eval": _Extra(
        "measures of rankings",
        {"ir_measures": "ir-measures", "pytrec_eval": "pytrec-eval-terrier"},
    ),
    "figures": _Extra("figures", {"matplotlib": "matplotlib"}),
    "haystack": _Extra("document stores of Haystack", {"haystack": "haystack-ai"}),
    "irds": _Extra("data sets by name", {"ir_datasets": "ir-datasets"}),
    "langchain": _Extra("retrievers of LangChain", {"langchain_core": "langchain-core"}),
    # Version 2 brought mcp_types; version 1 knows nothing of what is used here.
    "mcp": _Extra("assistants over MCP", {"mcp": "mcp", "mcp_types": "version 2 of mcp"}),
    "pyterrier": _Extra("pipelines of PyTerrier", {"pyterrier": "pyterrier"}),
}


def require(name: ExtraName) -> None:
    """Raise MissingExtra where a package of the extra is not installed: before the work.

    Looks for the packages without importing them; cost: a glance at each folder of `sys.path`.
    """
    needed_by, packages = _EXTRAS[name]
    for module, package in packages.items():
        if find_spec(module) is None:
            raise MissingExtra(
                f"{needed_by} need {package}, which is not installed: "
                f"pip install 'klsa-search[{name}]'"
            )
