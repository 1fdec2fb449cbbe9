"""Manuals that come with Python (PSF licence), as documents."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module
from pydoc_data.topics import topics
from types import ModuleType
from typing import Any, Final

from klsa_search.collection import Document

MODULES: Final = (
    "argparse", "ast", "asyncio", "calendar", "codecs", "collections", "configparser", "contextlib",
    "copy", "csv", "dataclasses", "datetime", "decimal", "difflib", "doctest", "email.message",
    "enum", "fractions", "functools", "gettext", "hashlib", "heapq", "http.client", "imaplib",
    "inspect", "io", "itertools", "json", "logging", "mailbox", "multiprocessing.pool", "optparse",
    "pathlib", "pickle", "queue", "random", "re", "secrets", "shelve", "shutil", "smtplib",
    "socket", "statistics", "string", "subprocess", "tarfile", "tempfile", "textwrap", "threading",
    "timeit", "tokenize", "traceback", "typing", "unittest", "urllib.request", "uuid", "zipfile",
)  # fmt: skip


def reference() -> list[Document]:
    """Return the language reference, a document for each topic."""
    return [
        Document(id=name, title=text.split("\n", 1)[0], text=text) for name, text in topics.items()
    ]


def library() -> list[Document]:
    """Return the documentation of the standard library, a document for each of `MODULES`."""
    return [
        Document(id=name, title=name, text="\n\n".join(_sections(import_module(name))))
        for name in MODULES
    ]


def _sections(module: ModuleType) -> Iterator[str]:
    """Yield the documentation of a module, and of its public functions, classes and methods."""
    yield inspect.getdoc(module) or ""
    names = getattr(module, "__all__", None)
    for name in names or sorted(name for name in vars(module) if not name.startswith("_")):
        value = getattr(module, name)
        if inspect.isclass(value) or inspect.isroutine(value):
            yield from _documented(f"{module.__name__}.{name}", value)
        if inspect.isclass(value):
            for method, function in vars(value).items():
                if not method.startswith("_") and inspect.isroutine(function):
                    yield from _documented(f"{name}.{method}", function)


def _documented(name: str, value: Any) -> Iterator[str]:
    if value.__doc__:
        yield f"{name}\n\n{inspect.cleandoc(value.__doc__)}"
