"""What README and tuning guide show of the support tickets; `tests/smoke` runs the quick start."""

import doctest
import re
import shlex

import pytest

from klsa_search import open_index
from klsa_search.evaluation import candidates
from tests.conftest import ROOT
from tests.support.shown import FLAGS, commands, unsigned, wrong_examples
from tools.reference_page import COMMANDS

BLOCK = re.compile(r"```(console|python)\n(.*?)```", re.DOTALL)


@pytest.fixture
def tickets(tmp_path, monkeypatch):
    """Build the index of the quick start in an empty folder, and return its path."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    build = ["build", "examples/tickets.csv", "--name", "tickets"]
    COMMANDS["klsa-index"].main(build, standalone_mode=False)
    return "index/tickets"


@pytest.mark.slow
def test_commands_of_the_tuning_guide_print_what_is_shown(tickets, monkeypatch, capsys):
    # Fewer trials: no page shows the choice.
    monkeypatch.setattr(candidates, "LENGTHS", ((0.9, 0.4),))
    monkeypatch.setattr(candidates, "TRIALS", 4)
    checker, ran = doctest.OutputChecker(), set()
    page = (ROOT / "docs/guides/tune.md").read_text(encoding="utf-8")
    for kind, block in BLOCK.findall(page):
        if kind == "python":
            assert wrong_examples(block, "tune") == ""
            continue
        for command, wanted in commands(f"```console\n{block}```"):
            program, *arguments = shlex.split(command)
            capsys.readouterr()
            COMMANDS[program].main(arguments, prog_name=program, standalone_mode=False)
            printed = unsigned(capsys.readouterr().out).strip()
            right = checker.check_output(wanted.strip() or "...", printed, FLAGS)
            assert right, f"{command}\n{printed}"
            ran.add(program)
    assert ran == {"klsa-index", "klsa-search", "klsa-eval"}


def test_the_example_of_the_readme(tickets):
    """The table of titles is what both rankers return; its bold ones contain no query word."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \d \| (.*?) \| (.*?) \|$", text, re.MULTILINE)
    with open_index(tickets) as index:
        for column, ranker in enumerate(("bm25", "klsa")):
            hits = index.search("money back", k=len(rows), ranker=ranker).hits
            assert [row[column].strip("*") for row in rows] == [hit.title for hit in hits]
        bold = {row[1].strip("*") for row in rows if row[1].startswith("**")}
        found = index.search("money back", k=len(index), ranker="bm25").hits
        assert len(bold) == 4
        assert bold.isdisjoint(hit.title for hit in found)
