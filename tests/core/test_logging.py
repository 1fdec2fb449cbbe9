"""Logging: the library is silent; commands and the service show its records."""

import json
import logging

import pytest

from klsa_search import build
from klsa_search.collection import open_collection
from tests.support.processes import run_python

GOOD = {"id": "w", "text": "a wing in supersonic flow"}


@pytest.fixture
def folder(tmp_path):
    """One document and a bad record, a file that is not read, and one without ids."""
    folder = tmp_path / "reports"
    folder.mkdir()
    (folder / "a.jsonl").write_text(json.dumps(GOOD) + "\n{\n")
    (folder / "b.jsonl").write_text(json.dumps({"text": "bread dough"}) + "\n")
    (folder / "picture.png").write_bytes(b"png")
    return folder


def ran(program, cwd):
    done = run_python(program, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def told(caplog):
    return [(each.name.partition(".")[0], each.getMessage()) for each in caplog.records]


SKIPPED = "reports: skipped 1 bad record; the first reasons:"
UNREAD = "reports: not read: 1 file: 1 .png (first: picture.png)"
NUMBERED = "b.jsonl have no IDs and were numbered"


def test_a_build_warns_of_what_it_left_out(folder, tmp_path, caplog):
    build(folder, name="t", home=tmp_path / "index", format="jsonl", on_error="skip").close()
    assert {name for name, _ in told(caplog)} == {"klsa_search"}
    unread, numbered, skipped, reason = (message for _, message in told(caplog))
    assert (unread, skipped) == (UNREAD, SKIPPED)
    assert NUMBERED in numbered
    assert "a.jsonl:2: invalid JSON" in reason


def test_an_addition_warns_too(folder, tmp_path, caplog):
    index = build([GOOD], name="t", home=tmp_path / "index")
    (folder / "b.jsonl").unlink()
    assert index.add(folder, format="jsonl", on_error="skip") == 1
    unread, skipped, _ = (message for _, message in told(caplog))
    assert (unread, skipped) == (UNREAD, SKIPPED)


def test_a_collection_reports_to_its_reader_only(folder, tmp_path, caplog):
    collection = open_collection(folder, format="jsonl", on_error="skip")
    build(collection, name="t", home=tmp_path / "index").close()
    assert (collection.problems.count, collection.unread.count) == (1, 1)
    assert not told(caplog)


@pytest.mark.slow
def test_the_library_writes_nothing(folder):
    program = """
import klsa_search as klsa
index = klsa.build("reports", name="t", format="jsonl", on_error="skip")
index.search("wing")
index.add([{"id": "1", "text": "bread"}])
klsa.open_index("index/t").search("bread", explain=True, highlight=True)
"""
    assert ran(program, folder.parent) == ("", "")


COMMAND = """
import click, logging
from klsa_search.cli.main import run
@click.command()
def command():
    logging.getLogger("klsa_search.any.room").warning("told %s", "once")
    logging.getLogger("klsa_search.any.room").info("not told")
run(command, [])
"""
WORKER = """
import logging
from klsa_search.cli.serving import configure_logging
from klsa_search.service.settings import ServiceSettings
configure_logging(ServiceSettings(log_format={log!r}))
logging.getLogger("klsa_search.any.room").warning("told %s", "once")
"""


@pytest.mark.parametrize(
    "program", [COMMAND, pytest.param(WORKER.format(log="plain"), marks=pytest.mark.slow)]
)
def test_commands_and_the_service_write_sentences_to_stderr(program, tmp_path):
    assert ran(program, tmp_path) == ("", "told once\n")


@pytest.mark.slow
def test_a_service_logs_json_with_an_option(tmp_path):
    out, err = ran(WORKER.format(log="json"), tmp_path)
    line = json.loads(err)
    assert (out, line["level"], line["message"]) == ("", "warning", "told once")


def test_the_library_leaves_logging_to_the_program():
    handlers = logging.getLogger("klsa_search").handlers
    assert [type(handler) for handler in handlers] == [logging.NullHandler]
