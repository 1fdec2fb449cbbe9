"""What docs/explaining.md shows is what comes out."""

from __future__ import annotations

import doctest
import re

from klsa_search.cli.search import klsa_search
from tests.conftest import ROOT

PAGE = ROOT / "docs" / "explaining.md"


def test_its_examples_give_what_it_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    page = PAGE.read_text(encoding="utf-8")
    examples = doctest.DocTestParser().get_doctest(page, {}, PAGE.name, str(PAGE), 0)
    result = doctest.DocTestRunner().run(examples)
    assert (result.failed, result.attempted) == (0, len(examples.examples))
    shown = re.search(r"\$ klsa-search (.*)\n((?:.+\n)+)```", page)
    capsys.readouterr()
    klsa_search.main(shown[1].split(), standalone_mode=False)
    # The last digit of nothing may bear any sign.
    assert capsys.readouterr().out.replace("-0.0000", "0.0000") == shown[2]
