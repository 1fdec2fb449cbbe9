"""The steps of docs/guides/assistants.md give what it shows, with a scripted client of MCP."""

import pytest

from tests.conftest import ROOT
from tests.support.shown import wrong_examples

pytestmark = pytest.mark.external

pytest.importorskip("mcp_types", reason="needs version 2 of mcp: pip install 'klsa-search[mcp]'")


def test_its_steps_give_what_it_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "guides" / "assistants.md").read_text("utf-8")
    assert wrong_examples(page, "assistants.md") == ""
