"""What docs/quickstart.md and docs/guides/tune.md show, in a row, is what comes out."""

import re
import shlex

from starlette.testclient import TestClient

from klsa_search.evaluation.tuning import space
from klsa_search.service import Catalog, create_app
from tests.conftest import ROOT
from tests.support.shown import commands, wrong_examples
from tools.reference_page import COMMANDS

BLOCK = re.compile(r"```(text|console|python)\n(.*?)```", re.DOTALL)


def test_they_give_what_they_say(tmp_path, monkeypatch, capsys, patient_service):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(space, "LENGTHS", ((0.9, 0.4),))  # fewer trials: no page shows the choice
    monkeypatch.setattr(space, "TRIALS", 4)
    ran = set()
    for page in ("quickstart", "guides/tune"):
        text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
        for kind, block in BLOCK.findall(text):
            if kind == "text":
                (tmp_path / "tickets.csv").write_text(block)
            elif kind == "python":
                assert wrong_examples(block, page) == ""
            else:
                for command, wanted in commands(f"```console\n{block}```"):
                    capsys.readouterr()
                    found = answered(shlex.split(command), tmp_path, capsys)
                    assert wanted in ("", found), command
                    ran.add(command.split()[0])
    assert ran == {"klsa-index", "klsa-search", "klsa-eval", "curl"}


def answered(words, folder, capsys):
    """What a command prints, or what the service answers to curl."""
    program, *arguments = words
    if program == "curl":
        with Catalog(folder / "index", interval=0) as catalog:
            answer = TestClient(create_app(catalog)).get(words[1].removeprefix("localhost:8000"))
        assert answer.json()["hits"], answer.text
        return answer.text
    COMMANDS[program].main(arguments, prog_name=program, standalone_mode=False)
    return capsys.readouterr().out
