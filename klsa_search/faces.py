"""Faces of packages: the names a package hands on, imported when they are first asked for.

A command that lists indexes asks the rooms for three names, and would wait a second for what the
others need. Type checkers, which do not wait, read the imports under TYPE_CHECKING; a test holds
the lists of a face against each other.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def handing_on(
    package: str, modules: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make `__getattr__` and `__dir__` of a package (PEP 562).

    package  its `__name__`
    modules  module within the package → the names it has for the face, parted by blanks; none may
             be that of a module of the package, for Python would put the module in its place
    """
    homes = {
        name: f"{package}.{module}" for module, names in modules.items() for name in names.split()
    }

    def given(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(import_module(homes[name]), name)
        setattr(sys.modules[package], name, found)
        return found

    def listed() -> list[str]:
        return sorted({*homes, *vars(sys.modules[package])})

    return given, listed
