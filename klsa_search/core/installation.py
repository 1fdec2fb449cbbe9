"""The installed package: its version, the folder of its caches, and its optional extras."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from platformdirs import user_cache_path

from klsa_search.errors import MissingExtra

__version__ = version("klsa-search")


def cache_folder() -> Path | None:
    """Return the user's cache folder of klsa-search, which may be missing or read-only.

    None for a user without a home, for example in a container with any user ID.
    """
    try:
        return user_cache_path("klsa-search")
    except RuntimeError:  # neither HOME nor XDG_CACHE_HOME, and no entry of the user
        return None


_EXTRAS: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "cluster": ("clusters", {"ray": "ray"}),
    "estimators": ("the estimators", {"sklearn": "scikit-learn"}),
    "eval": (
        "measures of rankings",
        {"ir_measures": "ir-measures", "pytrec_eval": "pytrec-eval-terrier"},
    ),
    "figures": ("figures", {"matplotlib": "matplotlib"}),
    "files": (
        "files of these kinds",
        {
            # In the standard library since Python 3.14.
            **({"backports.zstd": "backports.zstd"} if sys.version_info < (3, 14) else {}),
            "lxml": "lxml",
            "pypdfium2": "pypdfium2",
        },
    ),
    "haystack": ("document stores of Haystack", {"haystack": "haystack-ai"}),
    "irds": ("data sets by name", {"ir_datasets": "ir-datasets"}),
    "langchain": ("retrievers of LangChain", {"langchain_core": "langchain-core"}),
    # mcp_types exists since version 2; version 1 lacks the API used here.
    "mcp": ("assistants over MCP", {"mcp": "mcp", "mcp_types": "version 2 of mcp"}),
    "onnx": ("ONNX models", {"onnxruntime": "onnxruntime", "tokenizers": "tokenizers"}),
    "pyterrier": ("pipelines of PyTerrier", {"pyterrier": "pyterrier"}),
    "remote": ("backups at a URL", {"fsspec": "fsspec"}),
    "sentence-transformers": (
        "embedders of sentence-transformers",
        {"sentence_transformers": "sentence-transformers"},
    ),
    "tables": (
        "Parquet files and spreadsheets",
        {"pyarrow": "pyarrow", "python_calamine": "python-calamine"},
    ),
    "watch": ("watched sources", {"watchfiles": "watchfiles"}),
}
"""The feature that needs an extra, and its packages, import name → distribution name."""


def require(name: str) -> None:
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


def is_installed(name: str) -> bool:
    """Return whether all packages of an extra are installed; cost as `require`."""
    return all(map(is_importable, _EXTRAS[name][1]))


def is_importable(module: str) -> bool:
    """Return whether a module is installed, without importing it."""
    # The parent of a namespace package may be missing, too.
    package, _, rest = module.partition(".")
    return find_spec(package) is not None and (not rest or find_spec(module) is not None)
