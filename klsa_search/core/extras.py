"""Optional extras of the package: their dependencies, and whether those are installed."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Final, Literal, NamedTuple

from klsa_search.errors import MissingExtra

ExtraName = Literal[
    "cluster",
    "estimators",
    "eval",
    "figures",
    "files",
    "haystack",
    "irds",
    "langchain",
    "mcp",
    "onnx",
    "pyterrier",
    "remote",
    "sentence-transformers",
    "tables",
    "watch",
]


class _Extra(NamedTuple):
    """An extra: the feature that needs it, and its packages, import name → distribution name."""

    needed_by: str
    packages: Mapping[str, str]


_EXTRAS: Final[Mapping[ExtraName, _Extra]] = {
    "cluster": _Extra("clusters", {"ray": "ray"}),
    "estimators": _Extra("the estimators", {"sklearn": "scikit-learn"}),
    "eval": _Extra(
        "measures of rankings",
        {"ir_measures": "ir-measures", "pytrec_eval": "pytrec-eval-terrier"},
    ),
    "figures": _Extra("figures", {"matplotlib": "matplotlib"}),
    "files": _Extra(
        "files of these kinds",
        {
            # In the standard library since Python 3.14.
            **({"backports.zstd": "backports.zstd"} if sys.version_info < (3, 14) else {}),
            "lxml": "lxml",
            "pypdfium2": "pypdfium2",
        },
    ),
    "haystack": _Extra("document stores of Haystack", {"haystack": "haystack-ai"}),
    "irds": _Extra("data sets by name", {"ir_datasets": "ir-datasets"}),
    "langchain": _Extra("retrievers of LangChain", {"langchain_core": "langchain-core"}),
    # mcp_types exists since version 2; version 1 lacks the API used here.
    "mcp": _Extra("assistants over MCP", {"mcp": "mcp", "mcp_types": "version 2 of mcp"}),
    "onnx": _Extra("ONNX models", {"onnxruntime": "onnxruntime", "tokenizers": "tokenizers"}),
    "pyterrier": _Extra("pipelines of PyTerrier", {"pyterrier": "pyterrier"}),
    "remote": _Extra("backups at a URL", {"fsspec": "fsspec"}),
    "sentence-transformers": _Extra(
        "embedders of sentence-transformers", {"sentence_transformers": "sentence-transformers"}
    ),
    "tables": _Extra(
        "Parquet files and spreadsheets",
        {"pyarrow": "pyarrow", "python_calamine": "python-calamine"},
    ),
    "watch": _Extra("watched sources", {"watchfiles": "watchfiles"}),
}


def require(name: ExtraName) -> None:
    """Raise MissingExtra if a package of the extra is not installed.

    The packages are not imported. Cost: one lookup in each folder of `sys.path`.
    """
    needed_by, packages = _EXTRAS[name]
    for module, package in packages.items():
        if not is_importable(module):
            raise MissingExtra(
                f"{needed_by} need {package}, which is not installed; run pip "
                f"install 'klsa-search[{name}]'"
            )


def is_installed(name: ExtraName) -> bool:
    """Return whether all packages of an extra are installed; cost as `require`."""
    return all(map(is_importable, _EXTRAS[name].packages))


def is_importable(module: str) -> bool:
    """Return whether a module is installed, without importing it."""
    # The parent of a namespace package may be missing, too.
    package, _, rest = module.partition(".")
    return find_spec(package) is not None and (not rest or find_spec(module) is not None)
