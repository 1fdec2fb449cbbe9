"""Public names of `klsa_search` and `klsa_search.collection`, imported at their first use."""

import ast
from importlib import import_module
from pathlib import Path

import pytest

import klsa_search
import klsa_search.collection

PACKAGES = pytest.mark.parametrize("package", [klsa_search, klsa_search.collection])


@PACKAGES
def test_python_and_type_checkers_find_the_same_names(package):
    blocks = [n for n in ast.parse(Path(package.__file__).read_text()).body if type(n) is ast.If]
    block = next(block for block in blocks if ast.unparse(block.test) == "TYPE_CHECKING")
    typed = {alias.name: node.module for node in block.body for alias in node.names}
    assert sorted(package.__all__) == sorted(typed)
    for name, module in typed.items():
        assert getattr(package, name) is getattr(import_module(module), name)
        assert name in dir(package)


@PACKAGES
def test_no_name_is_that_of_a_module(package):
    folder = Path(package.__file__).parent
    assert not {path.stem for path in folder.iterdir()} & set(package.__all__)


def test_a_missing_name_is_named():
    with pytest.raises(AttributeError, match="module 'klsa_search' has no attribute 'nothing'"):
        _ = klsa_search.nothing
    with pytest.raises(ImportError):
        from klsa_search import nothing  # noqa: F401
