import pytest

from klsa_search.collection.opening import open_collection
from klsa_search.collection.public_collections import python_documents

SOURCE = '''"""About the module.

    Indented.
"""
if True:
    def f():
        """First f."""
def f():
    """Second f."""
    def inner():
        """Not listed."""
class C:
    async def m(self):
        """A method.

        More.
        """
    def silent(self): ...
'''


def test_definitions_of_a_small_library(tmp_path):
    (tmp_path / "pkg" / "test").mkdir(parents=True)
    (tmp_path / "pkg" / "__init__.py").write_text(SOURCE)
    (tmp_path / "pkg" / "test" / "x.py").write_text('"""A test."""')
    (tmp_path / "broken.py").write_text("def")
    (tmp_path / "nul.py").write_bytes(b"\0")
    (tmp_path / "lib-dynload").mkdir()
    (tmp_path / "lib-dynload" / "x.py").write_text('"""Not a module by its path."""')
    found = list(python_documents(tmp_path))
    assert [(d.id, d.metadata["kind"], d.metadata["line"]) for d in found] == [
        ("pkg", "module", 1),
        ("pkg.f", "function", 6),
        ("pkg.f#2", "function", 8),
        ("pkg.C.m", "function", 13),
    ]
    assert found[0].text == "About the module.\n\nIndented."
    assert found[3].text == "A method.\n\nMore."
    assert found[3].title == "pkg.C.m — function"
    assert found[3].metadata["module"] == "pkg"


@pytest.mark.slow
def test_the_standard_library_itself():
    source = open_collection("python-docs")
    found = list(source.documents())
    ids = [document.id for document in found]
    assert (source.name, source.format) == ("python-docs", "python-docs")
    assert 3000 < len(ids) < 20_000
    assert {"json", "json.dumps", "json.encoder.JSONEncoder"} <= set(ids)
    assert source.problems.count == 0
    assert source.queries() == []
    assert source.judgements() == []
