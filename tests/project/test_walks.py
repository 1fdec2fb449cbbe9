"""Commands of docs/guides/walkthroughs.md print what it shows, if their packages are installed."""

import re
from importlib.util import find_spec

import pytest

from tests.conftest import ROOT
from tests.support.shown import commands, wrong_commands

WALKS = re.split(r"(?m)^## ", (ROOT / "docs" / "guides" / "walkthroughs.md").read_text("utf-8"))[1:]
NEEDED = {
    "A table of tickets, with filters": "numpy",
    "A folder of mixed files": "pypdfium2",
    "An experiment in PyTerrier": "pyterrier",
    "An assistant over MCP": "mcp_types",
    "The service behind a key": "numpy",
}


def titled(walk):
    return walk.partition("\n")[0]


def test_every_walk_is_run_where_it_can_be():
    assert [titled(walk) for walk in WALKS] == list(NEEDED)
    assert all(len(commands(walk)) > 2 for walk in WALKS)


@pytest.mark.parametrize("walk", [pytest.param(each, id=titled(each)) for each in WALKS])
def test_what_is_typed_says_what_is_written(walk, tmp_path, kept_port, request):
    if find_spec(NEEDED[titled(walk)]) is None:
        pytest.skip(f"{NEEDED[titled(walk)]} is not installed: make test-connect")
    if "data=" in walk:
        (tmp_path / "data").symlink_to(request.getfixturevalue("collections_home"))
    # Others may listen at the port of the page.
    assert wrong_commands(walk.replace("8000", str(kept_port)), tmp_path) == ""
