"""The front door: every public name with its signature, as `tests/public_api.txt` has it.

python -m tools.public_api        writes it anew, after a change that is meant
"""

from __future__ import annotations

import inspect
import re
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path

TABLE = Path(__file__).parent.parent / "tests" / "public_api.txt"
PACKAGES = {
    "klsa_search": None,
    "klsa_search.analysis": ("Analyzer", "Token", "languages", "stemmers"),
    "klsa_search.client": None,
    "klsa_search.collection": None,
    "klsa_search.embedding": None,
    "klsa_search.errors": None,
    "klsa_search.estimators": None,
    "klsa_search.indexing": None,
    "klsa_search.mining": None,
    "klsa_search.plugins": None,
    "klsa_search.plugins.testing": None,
}
"""What is public, as the docstring of the package says: package → names, None for all it has."""


class _Written(str):
    """An annotation that shows as it was written, in any version of Python."""

    def __repr__(self) -> str:
        return str(self)


def public_names(package):
    module = import_module(package)
    if PACKAGES[package] is not None:
        return PACKAGES[package]
    return getattr(module, "__all__", None) or [
        name for name, held in vars(module).items() if inspect.isclass(held)
    ]


def signature(callable_):
    written = inspect.signature(callable_)

    def shown(annotation):
        return annotation if annotation is inspect.Signature.empty else _Written(annotation)

    parameters = [
        parameter.replace(annotation=shown(parameter.annotation))
        for parameter in written.parameters.values()
    ]
    whole = written.replace(
        parameters=parameters, return_annotation=shown(written.return_annotation)
    )
    return re.sub(r" at 0x[0-9a-f]+", "", str(whole))  # of a default that has no other name


def ours(held):
    return (getattr(held, "__module__", None) or "").startswith("klsa_search")


def lines():
    """One line a name; of classes also each public method and property that is ours."""
    for package in PACKAGES:
        module = import_module(package)
        for name in public_names(package):
            held, title = getattr(module, name), f"{package}.{name}"
            if inspect.isclass(held):
                yield from _of_class(title, held)
            elif callable(held):
                yield f"{title}{signature(held)}"
            else:
                yield f"{title}: {type(held).__name__}"


def _of_class(title, held):
    parents = ", ".join(base.__name__ for base in held.__bases__ if base is not object)
    yield f"class {title}({parents})"
    if issubclass(held, BaseException):
        yield f"{title}.code = {held.code!r}"
        return
    if is_dataclass(held):
        for field in fields(held):
            yield f"{title}.{field.name}: {field.type}"
    elif ours(held.__init__) and not getattr(held, "_is_protocol", False):
        yield f"{title}{signature(held.__init__).replace('(self, ', '(').replace('(self)', '()')}"
    for name, member in inspect.getmembers(held):
        if name.startswith("_") or not ours(getattr(member, "fget", None) or member):
            continue
        if isinstance(member, property):
            yield f"{title}.{name} (property)"
        elif callable(member) and not inspect.isclass(member):
            yield f"{title}.{name}{signature(member)}"


def text():
    return "\n".join(lines()) + "\n"


if __name__ == "__main__":
    TABLE.write_text(text(), encoding="utf-8")
