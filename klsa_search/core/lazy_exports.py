"""Names that a package exports and imports at their first use (PEP 562)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module


def lazy_exports(
    namespace: dict[str, object], names: Mapping[str, str]
) -> tuple[list[str], Callable[[str], object], Callable[[], list[str]]]:
    """Return `__all__`, `__getattr__` and `__dir__` of a package whose imports wait for their use.

    So commands load only what they need.

    namespace  globals of the package
    names      exported names, separated by blanks, by their module below `klsa_search`
    """
    modules = {name: module for module, exported in names.items() for name in exported.split()}

    def get(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module {namespace['__name__']!r} has no attribute {name!r}")
        module = import_module(f"klsa_search.{modules[name]}")
        value = namespace[name] = getattr(module, name)
        return value

    return sorted(modules), get, lambda: sorted({*namespace, *modules})
