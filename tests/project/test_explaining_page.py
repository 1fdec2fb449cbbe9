"""Examples of docs/guides/explain-scores.md print what they show."""

from __future__ import annotations

from tests.conftest import ROOT
from tests.support.shown import wrong_commands, wrong_examples

PAGE = ROOT / "docs" / "guides" / "explain-scores.md"


def test_its_examples_give_what_it_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = PAGE.read_text(encoding="utf-8")
    assert wrong_examples(page, PAGE.name) == ""
    assert wrong_commands(page, tmp_path) == ""
