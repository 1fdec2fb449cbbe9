"""Faces of packages: what they hand on is there, and the same to Python and to a type checker."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import klsa_search
from tests.support.waiting import PATIENCE

PACKAGE = Path(klsa_search.__file__).parent


def faces():
    """Packages that hand names on when they are asked for."""
    return [p for p in sorted(PACKAGE.rglob("__init__.py")) if "handing_on(" in p.read_text()]


def name_of(path):
    return ".".join(path.parent.relative_to(PACKAGE.parent).parts)


def written(path):
    """The imports for type checkers and the table for Python: name → module."""
    tree = ast.parse(path.read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    imported = {
        alias.name: node.module
        for node in block.body
        for alias in node.names
        if alias.asname is None
    }
    table = next(node for node in ast.walk(block.orelse[0]) if isinstance(node, ast.Dict))
    package = name_of(path)
    handed = {
        name: f"{package}.{module.value}"
        for module, names in zip(table.keys, table.values, strict=True)
        for name in names.value.split()
    }
    return imported, handed


@pytest.mark.parametrize("path", faces(), ids=name_of)
def test_the_lists_of_a_face_agree(path):
    imported, handed = written(path)
    assert imported == handed
    package = importlib.import_module(name_of(path))
    assert sorted(package.__all__) == sorted(handed)
    for name in package.__all__:
        assert getattr(package, name) is getattr(importlib.import_module(handed[name]), name)
        assert name in dir(package)


@pytest.mark.parametrize("path", faces(), ids=name_of)
def test_no_name_is_that_of_a_module(path):
    modules = {beside.stem for beside in path.parent.iterdir()}
    assert not modules & set(written(path)[1])


def test_a_name_that_is_not_there_is_named():
    with pytest.raises(AttributeError, match="module 'klsa_search' has no attribute 'nothing'"):
        _ = klsa_search.nothing
    with pytest.raises(ImportError):
        from klsa_search import nothing  # noqa: F401


def test_the_first_to_ask_imports():
    program = (
        "import sys, klsa_search.store as face\n"
        "assert 'klsa_search.store.manifest' not in sys.modules\n"
        "assert face.Manifest is vars(face)['Manifest']\n"
        "assert 'klsa_search.store.manifest' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=PATIENCE)
