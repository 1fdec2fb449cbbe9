"""Commands of guides print what they show, if the packages they need are installed."""

import re
from importlib.util import find_spec

import pytest

from tests.conftest import ROOT
from tests.support.shown import commands, wrong_commands, wrong_examples

pytestmark = pytest.mark.slow

GUIDES = ROOT / "docs" / "guides"
WALKS = {
    "import-documents": (("CSV and other tables", "Folders of files"), "pypdfium2"),
    "product-catalogue": (("From a file to a search box",), "numpy"),
    "run-the-service": (("Authentication",), "numpy"),
    "integrations": (("PyTerrier",), "pyterrier"),
}
"""Pages with commands to run, in which sections, and a package that they need."""


def walk(name):
    """Return sections of a guide."""
    headings, _ = WALKS[name]
    text = (GUIDES / f"{name}.md").read_text(encoding="utf-8")
    return "".join(
        text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0] for heading in headings
    )


def test_every_guide_with_commands_is_run():
    elsewhere = {"explain-scores", "tune"}
    shown = {path.stem for path in GUIDES.glob("*.md") if commands(path.read_text("utf-8"))}
    assert shown == WALKS.keys() | elsewhere
    for name in WALKS:
        page = (GUIDES / f"{name}.md").read_text(encoding="utf-8")
        assert commands(walk(name)) == commands(page)


@pytest.mark.parametrize("name", WALKS)
def test_commands_print_what_is_shown(name, tmp_path, kept_port, request):
    if find_spec(WALKS[name][1]) is None:
        pytest.skip(f"{WALKS[name][1]} is not installed: make test-connect")
    text = walk(name)
    if "data" in re.findall(r"--data (\w+)", text):
        (tmp_path / "data").symlink_to(request.getfixturevalue("collections_home"))
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    # Another process may listen at the port of the page.
    assert wrong_commands(text.replace("8000", str(kept_port)), tmp_path) == ""


@pytest.mark.parametrize("name", ["explain-scores", "rules"])
def test_examples_print_what_is_shown(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (GUIDES / f"{name}.md").read_text(encoding="utf-8")
    assert wrong_examples(page, f"{name}.md") == ""
    assert not commands(page) or wrong_commands(page, tmp_path) == ""
