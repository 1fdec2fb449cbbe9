"""Examples of guides in Python print what they show."""

import pytest

from tests.conftest import ROOT
from tests.support.shown import commands, wrong_commands, wrong_examples

pytestmark = pytest.mark.slow

GUIDES = ROOT / "docs" / "guides"


@pytest.mark.parametrize("name", ["explain-scores", "rules"])
def test_examples_print_what_is_shown(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (GUIDES / f"{name}.md").read_text(encoding="utf-8")
    assert wrong_examples(page, f"{name}.md") == ""
    assert not commands(page) or wrong_commands(page, tmp_path) == ""
