"""Syntax trees of the sources, parsed once for all tests that read them."""

import ast
import gc
from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).parents[2]

Node = TypeVar("Node", bound=ast.AST)


@lru_cache(maxsize=2)  # millions of nodes
def _by_kind(folder: str) -> dict[type[ast.AST], list[tuple[Path, ast.AST]]]:
    found = defaultdict(list)
    gc.disable()  # half of the time
    for path in sorted((ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            found[type(node)].append((path, node))
    gc.freeze()
    gc.enable()
    return found


def nodes(folder: str, kind: type[Node]) -> Iterator[tuple[Path, Node]]:
    """Yield every node of that kind in the Python files below a folder, and its file."""
    for path, node in _by_kind(folder).get(kind, ()):
        assert isinstance(node, kind)
        yield path, node
