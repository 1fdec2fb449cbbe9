"""The commands of docs/reference/features.md run."""

import json
import re
import shlex

import pytest

from klsa_search import build
from klsa_search.evaluation.run_records import record_run, write_record
from klsa_search.service.admission import Writes
from klsa_search.service.open_indexes import OpenIndexes
from tests.conftest import ROOT
from tests.project.test_public_api import METADATA, REPORTS
from tests.service.test_guide import sent
from tests.support.application import app_of_indexes
from tests.support.client import AppClient
from tools.openapi_examples import LAMP
from tools.reference_page import COMMANDS

PAGE = ROOT / "docs" / "reference" / "features.md"
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in PAGE.read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and not line.startswith("| feature ")
]
SHOWN = sorted({shown for row in ROWS for shown in re.findall("`([^`]+)`", row[-1])} - {"docker/"})


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return the folder that the page describes."""
    monkeypatch.chdir(tmp_path)
    records = [
        {"id": id_, "title": title, "text": text, "metadata": METADATA[id_]}
        for id_, title, text in REPORTS
    ]
    (tmp_path / "reports.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records))
    (tmp_path / "new.jsonl").write_text(json.dumps(LAMP) + "\n")
    (tmp_path / "queries.tsv").write_text("1\tleaking coolant\n2\twet roads\n")
    (tmp_path / "synonyms.txt").write_text("tyre, tire\n")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "hoses.md").write_text("# Hoses\n\nLook for stains.\n")
    (tmp_path / "own_words.py").write_text(
        "import re\n\n\ndef words(text):\n"
        "    return [(m[0], m.start(), m.end()) for m in re.finditer(r'[^\\W_]+', text)]\n"
        "\n\ndef vectors(texts, kind):\n    return [[1.0, len(text)] for text in texts]\n"
        "\n\ndef scores(query, texts):\n    return [len(text) for text in texts]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    index = build(tmp_path / "reports.jsonl", name="reports")
    index.judge("leaking coolant", "leak", 2)
    record = record_run(index, tmp_path / "queries.tsv", tmp_path / "out.trec")
    write_record(record, tmp_path / "out.json")
    index.close()
    return tmp_path


def test_every_row_has_a_command_or_says_no():
    assert len(ROWS) > 35
    for row in ROWS:
        assert len(row) == 3
        assert re.match("yes|partly|no", row[1]), row
        assert row[1].startswith("no") == (row[2] in ("", "|")), row


@pytest.mark.slow
@pytest.mark.usefixtures("patient_service")
@pytest.mark.parametrize("command", SHOWN)
def test_examples_of_features_run(folder, command, capsys):
    program, *arguments = shlex.split(command)
    if program == "curl":
        with OpenIndexes(folder / "index", interval=0) as open_indexes:
            client = AppClient(app_of_indexes(open_indexes, writes=Writes()))
            assert sent(client, *arguments).text
    else:
        COMMANDS[program].main(arguments, prog_name=program, standalone_mode=False)
        assert capsys.readouterr().out
