"""Names that a package exports and imports at their first use (PEP 562)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module


def lazy_exports(
    namespace: dict[str, object], modules: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package, so that commands load only what they need.

    namespace  globals of the package
    modules    module that defines each exported name
    """

    def get(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module {namespace['__name__']!r} has no attribute {name!r}")
        value = namespace[name] = getattr(import_module(modules[name]), name)
        return value

    def names() -> list[str]:
        return sorted({*namespace, *modules})

    return get, names
