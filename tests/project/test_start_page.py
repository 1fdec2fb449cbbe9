"""README, quick start and tuning guide print what they show, run in order."""

import doctest
import re
import shlex

import pytest

from klsa_search import open_index
from klsa_search.evaluation import candidates
from tests.conftest import ROOT
from tests.support.shown import FLAGS, commands, unsigned, wrong_examples
from tools.reference_page import COMMANDS

pytestmark = pytest.mark.slow

BLOCK = re.compile(r"```(text|console|python)\n(.*?)```", re.DOTALL)
PAGES = ("README", "docs/quickstart", "docs/guides/tune")


def test_they_print_what_they_show(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        candidates, "LENGTHS", ((0.9, 0.4),)
    )  # fewer trials: no page shows the choice
    monkeypatch.setattr(candidates, "TRIALS", 4)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    checker, ran = doctest.OutputChecker(), set()
    for page in PAGES:
        text = (ROOT / f"{page}.md").read_text(encoding="utf-8")
        for kind, block in BLOCK.findall(text):
            if kind == "text":
                (tmp_path / "new.jsonl").write_text(block)
            elif kind == "python" and ">>>" in block:
                assert wrong_examples(block, page) == ""
            elif kind == "python":
                exec(block, {})
                assert "Late for the birthday" in capsys.readouterr().out
            else:
                for command, wanted in commands(f"```console\n{block}```"):
                    program, *arguments = shlex.split(command)
                    capsys.readouterr()
                    COMMANDS[program].main(arguments, prog_name=program, standalone_mode=False)
                    printed = unsigned(capsys.readouterr().out).strip()
                    right = checker.check_output(wanted.strip() or "...", printed, FLAGS)
                    assert right, f"{command}\n{printed}"
                    ran.add(program)
    assert ran == {"klsa-index", "klsa-search", "klsa-eval"}


def test_the_example_of_the_readme(tmp_path, monkeypatch):
    """The table of titles is what both rankers return; its bold ones contain no query word."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    COMMANDS["klsa-index"].main(
        ["build", "examples/tickets.csv", "--name", "tickets"], standalone_mode=False
    )
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \d \| (.*?) \| (.*?) \|$", text, re.MULTILINE)
    with open_index("index/tickets") as index:
        for column, ranker in enumerate(("bm25", "klsa")):
            hits = index.search("money back", k=len(rows), ranker=ranker).hits
            assert [row[column].strip("*") for row in rows] == [hit.title for hit in hits]
        bold = {row[1].strip("*") for row in rows if row[1].startswith("**")}
        found = index.search("money back", k=len(index), ranker="bm25").hits
        assert len(bold) == 4
        assert bold.isdisjoint(hit.title for hit in found)
