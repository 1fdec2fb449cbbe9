"""Output contains no control characters, whatever documents and names contain."""

import ast
import json
import logging
import re
import sys
import unicodedata
from pathlib import Path

import pytest

import klsa_search
from klsa_search.cli.main import Invocation, SentenceFormatter, exception_hook
from klsa_search.indexing.build import build

DIRECTIONS = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
STEERING = [
    character
    for character in map(chr, range(0x10000))  # none comes later
    if unicodedata.category(character) in ("Cc", "Zl", "Zp")
    or unicodedata.bidirectional(character) in DIRECTIONS
    or character in "\u061c\u200e\u200f"
]
ALL = "".join(STEERING).replace("\0", "")
DOCUMENTS = [
    {"id": f"{number}{ALL}", "title": f"Coolant{ALL}", "text": f"The coolant{ALL}leaks {word}.",
     f"kind{ALL}": f"note{ALL}", "[/bold]": "brackets"}
    for number, word in enumerate(["fast", "fast", "slowly", "rarely"])
]  # fmt: skip
COMMANDS = [
    "klsa-search cars coolant",
    "klsa-search cars coolant --highlight --quality --explain",
    "klsa-search cars coolant --json --facet KIND",
    "klsa-search cars coolant --facet KIND --facet [/bold]",
    "klsa-search cars coolant --sort nothingALL",
    "klsa-search cars coolant --filter KIND:ALL",
    "klsa-search cars coolantsALL",
    "klsa-search cars coolant --explain-id 0ALL",
    "klsa-search cars coolant --explain-id nothingALL",
    "klsa-search nothingALL coolant",
    "klsa-index info cars",
    "klsa-index info cars --json",
    "klsa-index analyze coolantALL",
    "klsa-index duplicates cars",
    "klsa-index duplicates cars --json",
    "klsa-index cluster cars -k 2",
    "klsa-index related cars coolant",
    "klsa-index related cars nothingALL",
    "klsa-index delete cars nothingALL",
    "klsa-index dump cars fileALL",
    "klsa-index build nothingALL --name other",
    "klsa-index build folder --name other --on-error skip",
    "klsa-index add cars folder --on-error skip",
    "klsa-index plan bad.jsonl",
    "klsa-index add cars bad.jsonl",
    "klsa-index cars --nothingALL",
    "klsa-index nothingALL",
]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    build(DOCUMENTS, name="cars", home=home).close()
    return home


def test_the_characters_are_those_of_unicode():
    assert len(STEERING) == 65 + 2 + 9 + 3


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_steers_a_terminal(home, shell, tmp_path, monkeypatch, command):
    monkeypatch.setenv("KLSA_HOME", str(home))
    name = re.sub("[\0/]", "", ALL)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / f"{name}.txt").write_bytes(b"\xff")
    (tmp_path / "folder" / f"{name}.xyz").write_bytes(b"")
    (tmp_path / "folder" / "good.txt").write_text(f"coolant{ALL}")
    (tmp_path / "bad.jsonl").write_text('{"id": "a"}\n' + json.dumps({"id": [], f"a{ALL}": 1}))
    program, *arguments = command.replace("KIND", f"kind{ALL}").replace("ALL", ALL).split(" ")
    done = shell(program, *arguments)
    told = (done.out + done.err).replace("\n", "")
    assert told
    assert set(told) & set(STEERING) == set()
    if "--facet" in arguments and "--json" in arguments:
        assert ALL in {hit["id"][1:] for hit in done.json["hits"]}


@pytest.mark.parametrize("debug", [False, True])
def test_no_failure_and_no_log_steers_a_terminal(capsys, debug):
    failure = ValueError(f"of {ALL}")
    exception_hook(Invocation(debug))(ValueError, failure, None)
    told = capsys.readouterr().err
    assert "ValueError: of " in told
    record = logging.LogRecord("klsa", 30, "", 1, "%s", (ALL,), (ValueError, failure, None))
    told += SentenceFormatter().format(record)
    assert set(told.replace("\n", "")) & set(STEERING) == set()


def test_export_escapes_on_a_terminal_alone(home, shell, monkeypatch):
    monkeypatch.setenv("KLSA_HOME", str(home))
    to_a_pipe = shell("klsa-index", "dump", "cars").out
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    to_a_terminal = shell("klsa-index", "dump", "cars").out
    assert "\u202e" in to_a_pipe
    assert set(to_a_terminal.replace("\n", "")) & set(STEERING) == set()
    as_it_was = [json.loads(line) for line in to_a_pipe.split("\n")[:-1]]
    assert [json.loads(line) for line in to_a_terminal.split("\n")[:-1]] == as_it_was
    assert as_it_was[0]["title"] == DOCUMENTS[0]["title"]


def test_all_commands_write_through_one_module():
    offences = []
    folder = Path(klsa_search.__file__).parent / "cli"
    for path in sorted(folder.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Attribute(value=ast.Name(id="click"), attr="echo" | "secho" | "style"):
                    offences.append(f"{path.name}:{node.lineno}")
                case ast.Name(id="print"):
                    offences.append(f"{path.name}:{node.lineno}")
    # The processes that refit and replicate print for the service that started them.
    children = {"children.py"}
    assert {each.partition(":")[0] for each in offences} - children == {"output.py"}
