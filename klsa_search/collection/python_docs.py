"""The docstrings of the Python standard library as a collection."""

from __future__ import annotations

import ast
import inspect
import sysconfig
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from klsa_search.collection.folder import Selection, walk
from klsa_search.collection.model import Document

# Installed packages, tests, and programs distributed with the library.
OUTSIDE = frozenset(
    {"distutils", "idlelib", "lib2to3", "site-packages", "test", "tests", "turtledemo"}
)
DEFINITIONS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
Definition = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def standard_library() -> Path:
    """Return the folder of the running interpreter's standard library."""
    return Path(sysconfig.get_path("stdlib"))


def documents(root: Path) -> Iterator[Document]:
    """Stream one document for each module, class and function below `root` with a docstring.

    The id is the dotted name, followed by `#2` and so on if it is defined again; the title is the
    name and its kind, the text the docstring after `inspect.cleandoc`. Files are parsed with `ast`,
    not imported; files that do not parse and nested functions are skipped. Memory: one module.
    """
    # On some systems the library is a folder of links.
    for path in walk(root, Selection(follow_links=True)):
        module_path = path.relative_to(root)
        if path.suffix == ".py" and OUTSIDE.isdisjoint(module_path.parts):
            parts = module_path.with_suffix("").parts
            # Modules in dist-packages, lib-dynload or config-3.11 cannot be imported by path.
            if all(part.isidentifier() for part in parts) and parts != ("__init__",):
                yield from _module(path, ".".join(parts).removesuffix(".__init__"))


def _module(path: Path, module: str) -> Iterator[Document]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in strings
            tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return
    times: Counter[str] = Counter()
    for name, node in _definitions(tree, module):
        docstring = ast.get_docstring(node, clean=False)
        if not docstring or not docstring.strip():
            continue
        times[name] += 1
        kind = _kind(node)
        line = getattr(node, "lineno", 1)
        yield Document(
            id=name if times[name] == 1 else f"{name}#{times[name]}",
            title=f"{name} — {kind}",
            text=inspect.cleandoc(docstring),
            metadata={"kind": kind, "module": module, "line": line},
            origin=f"{path}:{line}",
        )


def _definitions(node: ast.AST, name: str) -> Iterator[tuple[str, Definition]]:
    """Yield (dotted name, node) in source order, through classes, `if` and `try`."""
    if isinstance(node, ast.Module):
        yield name, node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, DEFINITIONS):
            inner = f"{name}.{child.name}"
            yield inner, child
            if isinstance(child, ast.ClassDef):
                yield from _definitions(child, inner)
        elif isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield from _definitions(child, name)


def _kind(node: Definition) -> str:
    if isinstance(node, ast.Module):
        return "module"
    return "class" if isinstance(node, ast.ClassDef) else "function"
