"""The commands of docs/guides/update-documents.md that write, run as shown."""

import json
import re
import shlex
from pathlib import Path

import pytest

from klsa_search import build
from klsa_search.cli.index import klsa_index
from klsa_search.service.admission import Writes
from klsa_search.service.open_indexes import OpenIndexes
from tests.conftest import ROOT
from tests.support.application import app_of_indexes
from tests.support.client import AppClient

BLOCK = re.compile(r"```(\w*)\n(.*?)```", re.DOTALL)
REPORTS = [
    {"id": "heat", "text": "An engine that overheats."},
    {"id": "horn", "text": "A horn that will not sound."},
]


@pytest.fixture
def blocks(tmp_path, monkeypatch):
    """Lines of shell and of curl; a home with the index they speak of, and the file they add."""
    monkeypatch.chdir(tmp_path)
    build(REPORTS, name="reports").close()
    lamp = json.dumps({"id": "lamp", "text": "A lamp."}) + "\n"
    (tmp_path / "new.jsonl").write_text(lamp)
    page = (ROOT / "docs" / "guides" / "update-documents.md").read_text(encoding="utf-8")
    plain = [text for kind, text in BLOCK.findall(page) if not kind]
    shell, curl = (
        next(text for text in plain if text.startswith(first))
        for first in ("klsa-index add", "curl -X PUT")
    )
    return [
        [shlex.split(line, comments=True) for line in block.splitlines()]
        for block in (shell, curl)
    ]  # fmt: skip


def test_its_shell_commands_run(blocks, capsys):
    for program, *arguments in blocks[0]:
        assert program == "klsa-index"
        klsa_index.main(arguments, standalone_mode=False)
    told = capsys.readouterr().out.splitlines()
    assert told[0] == "reports: added 1 document; 3 in total"
    assert told[1] == "reports: deleted 1 document; 2 in total"
    assert told[-1] == "reports: 3 documents, generation 000002"


def test_its_requests_are_answered(blocks):
    with OpenIndexes(Path.cwd() / "index", interval=0) as open_indexes:
        client = AppClient(app_of_indexes(open_indexes, writes=Writes()))
        told = [sent(client, *arguments).json() for _, *arguments in blocks[1]]
    assert [(each.get("added"), each.get("deleted")) for each in told] == [
        (1, 0), (None, None), (0, 0), (0, 1), (0, 1)
    ]  # fmt: skip
    assert told[1]["ok"]


def sent(client, *arguments):
    """Do what curl does with these."""
    method, headers, body, target = None, {}, None, None
    words = iter(arguments)
    for word in words:
        if word == "-X":
            method = next(words)
        elif word == "-H":
            name, _, value = next(words).partition(": ")
            headers[name] = value
        elif word == "-d":
            body = next(words).encode()
        elif word == "--data-binary":
            body = (Path.cwd() / next(words).removeprefix("@")).read_bytes()
        elif word == "-T":
            path = Path.cwd() / next(words)
            method, body = "PUT", path.read_bytes()
        else:
            target = re.sub("^(http://127.0.0.1|localhost):8000", "", word)
    if method == "PUT" and target.endswith("/"):
        target += path.name
    answer = client.request(
        method or ("POST" if body else "GET"), target, headers=headers, content=body
    )
    assert answer.is_success, answer.text
    return answer
