"""Sources of klsa-index build: columns, standard input, damaged files."""

import io
import sys

import pytest

from tests.conftest import ROOT

TICKETS = "ticket,subject,body,notes\n7,Pump,It leaks coolant,Again\n8,Fan,It hums,\n"
NAMED = ("--id", "ticket", "--title", "subject", "--text", "body", "--text", "notes")


@pytest.fixture
def typed(monkeypatch):
    def give(text):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    return give


def test_a_table_from_standard_input_with_columns_of_its_own(shell, typed):
    typed(TICKETS)
    build = ("klsa-index", "build", "-", "--name", "tickets", "--format", "csv", *NAMED)
    told = shell(*build, "--json").json
    assert (told["source"], told["counts"]["documents"], told["numbered"]) == ("stdin", 2, [])
    [hit] = shell("klsa-search", "tickets", "coolant again", "--json").json["hits"]
    assert (hit["id"], hit["title"]) == ("7", "Pump")


def test_a_blank_column_is_none(shell, typed):
    typed("id,title,text\n7,Pump,It leaks\n")
    build = ("klsa-index", "build", "-", "--name", "pumps", "--id", "", "--title", "")
    assert len(shell(*build, "--json").json["numbered"]) == 1
    [hit] = shell("klsa-search", "pumps", "leaks", "--json").json["hits"]
    assert (hit["id"], hit["title"], hit["metadata"]) == ("1", "", {"id": "7", "title": "Pump"})


def test_numbered_ids_are_reported_and_never_added(shell, tmp_path):
    table = tmp_path / "a.csv"
    table.write_text("title,text\nPump,leaks\nFan,hums\n")
    done = shell("klsa-index", "build", table, "--name", "it")
    assert done.code == 0
    assert f"the documents of {table} have no IDs" in done.err
    done = shell("klsa-index", "add", "it", table)
    assert done.code == 2
    assert "would replace" in done.err


def test_files_that_cannot_be_read_are_counted_by_kind(shell, tmp_path):
    folder = tmp_path / "mixed"
    folder.mkdir()
    (folder / "a.md").write_text("# Pump\n\nIt leaks.\n\n# Fan\n\nIt hums.\n")
    for name in ("b.pdf", "c.pdf", "d.docx"):
        (folder / name).write_bytes(b"%PDF-1.7 and nothing")
    build = ("klsa-index", "build", folder, "--name", "mixed", "--sections")
    assert "b.pdf:1: is damaged" in shell(*build).err
    done = shell(*build, "--on-error", "skip")
    assert done.code == 0
    assert "skipped 1 .docx: is damaged, 2 .pdf: is damaged; the first reasons:" in done.err
    assert [line.split(":")[0] for line in done.err.splitlines()[1:]] == [
        f"  {folder}/b.pdf",
        f"  {folder}/c.pdf",
        f"  {folder}/d.docx",
    ]
    told = shell(*build, "--on-error", "skip", "--json").json
    assert told["skipped"]["kinds"] == {".pdf: is damaged": 2, ".docx: is damaged": 1}
    assert told["counts"]["documents"] == 2


def test_stop_words_of_a_file(shell, tmp_path):
    words = tmp_path / "stop.txt"
    words.write_text("pump # of no use here\n\ncoolant hum\n")
    analyze = ("klsa-index", "analyze", "The pump hums and coolant leaks", "--json")
    told = shell(*analyze, "--extra-stop-words", words).json
    assert [each["term"] for each in told] == ["hum", "leak"]
    words.write_bytes(b"\xff")
    done = shell(*analyze, "--extra-stop-words", words)
    assert (done.code, "is not UTF-8" in done.err) == (2, True)


def test_an_export_of_a_help_desk_by_two_commands(shell):
    source = ROOT / "examples" / "helpdesk.csv"
    done = shell("klsa-index", "build", source, "--name", "desk", "--split", "tags=;", "--json")
    assert [note.partition(": ")[2].split(",")[0] for note in done.json["notes"]] == [
        "read as CSV with delimiter ';'",
        "read as Windows-1252",
        "using column 'key' as id",
    ]
    columns = done.json["fields"]["columns"]
    assert {name: (each["type"], each["missing"]) for name, each in columns.items()} == {
        "opened": ("date", 1),
        "priority": ("number", 2),
        "tags": ("keyword", 0),
    }
    search = ("klsa-search", "desk", "printer", "--facet", "tags", "--json")
    found = shell(*search, "--filter", "tags = printer AND priority <= 2").json
    assert found["facets"]["tags"]["values"][0] == ["printer", 4]
    [cafe] = [hit for hit in found["hits"] if hit["id"] == "SUP-1041"]
    assert cafe["title"] == "Printer in the café is silent"
    assert cafe["metadata"]["tags"] == ["printer", "hardware"]
    done = shell("klsa-index", "sync", "desk", source, "--json").json
    assert (done["unchanged"], done["added"], done["changed"], done["deleted"]) == (12, 0, 0, 0)
