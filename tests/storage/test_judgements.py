"""Judgements outlive generations, concurrent writers and kills."""

import signal
import sqlite3
import subprocess
import sys
import threading

import pytest

from klsa_search.collection import read_qrels, read_queries
from klsa_search.collection.qrels import qrels_text
from klsa_search.errors import (
    BadDocument,
    IndexBusy,
    IndexDamaged,
    QueryError,
    StoreError,
)
from klsa_search.storage import judgements as module
from klsa_search.storage.judgements import Judgements
from tests.support.waiting import PATIENCE


def told(folder, query=None):
    return [
        (each.number, each.text, dict(each.grades)) for each in Judgements(folder).queries(query)
    ]


def test_the_last_word_counts_and_can_be_taken_back(tmp_path):
    judgements = Judgements(tmp_path)
    assert told(tmp_path) == []
    assert judgements.remove("wing", "1") == 0
    assert list(tmp_path.iterdir()) == []  # who only looks makes nothing
    judgements.put("wing", "2", 1)
    judgements.put("heat", "1", 0)
    judgements.put("wing", "1", -1)
    judgements.put("wing", "2", 3)
    assert told(tmp_path) == [(1, "wing", {"1": -1, "2": 3}), (2, "heat", {"1": 0})]
    assert told(tmp_path, "heat") == [(2, "heat", {"1": 0})]
    assert judgements.remove("wing", "1") == 1
    assert judgements.remove("wing", "nobody") == 0
    assert judgements.remove("wing") == 1
    assert told(tmp_path) == [(2, "heat", {"1": 0})]
    judgements.put("wing", "2", 1)  # its number is its own for ever
    assert told(tmp_path)[0] == (1, "wing", {"2": 1})
    assert [each.name for each in tmp_path.iterdir()] == ["JUDGEMENTS"]


def test_white_space_makes_no_other_query(tmp_path):
    Judgements(tmp_path).put("  hot\n wings\t", "1", 1)
    assert told(tmp_path, "hot wings") == [(1, "hot wings", {"1": 1})]


@pytest.mark.parametrize(
    ("query", "document", "grade", "kind", "said"),
    [
        (" ", "1", 1, QueryError, "0 characters"),
        ("x" * 10_001, "1", 1, QueryError, "10,001 characters"),
        ("\ud800", "1", 1, QueryError, "Unicode|UTF-8|surrogate|U\\+D800"),
        ("a\0", "1", 1, QueryError, "NUL"),
        (None, "1", 1, QueryError, "is not a text"),
        ("wing", "x" * 600, 1, BadDocument, "600 bytes"),
        ("wing", "1", 101, QueryError, "from -100 to 100"),
        ("wing", "1", 1.0, QueryError, "whole number"),
        ("wing", "1", True, QueryError, "whole number"),
    ],
)
def test_invalid_judgements_are_refused(tmp_path, query, document, grade, kind, said):
    with pytest.raises(kind, match=said):
        Judgements(tmp_path).put(query, document, grade)
    assert told(tmp_path) == []


def test_several_write_at_once_and_nothing_is_lost(tmp_path):
    def work(number):
        for n in range(20):
            Judgements(tmp_path).put(f"query {n % 3}", f"{number}/{n}", n % 2)

    threads = [threading.Thread(target=work, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert sum(len(grades) for _, _, grades in told(tmp_path)) == 80
    assert sorted(number for number, _, _ in told(tmp_path)) == [1, 2, 3]


KILLED = """
import os, signal, sys
from pathlib import Path
from klsa_search.storage.judgements import Judgements
judgements = Judgements(Path(sys.argv[1]))
judgements.put("wing", "1", 1)
with judgements._connected(writes=True) as connection:
    connection.execute("delete from judgements")
    connection.execute("pragma cache_spill = 1")  # so that it is written before it is decided
    for n in range(1000):
        connection.execute("insert into queries (text) values (?)", [f"{n}" * 200])
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_acknowledged_judgements_survive_a_killed_writer(tmp_path):
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path)], check=False, timeout=PATIENCE
    )
    assert killed.returncode == -signal.SIGKILL
    assert (tmp_path / "JUDGEMENTS-journal").stat().st_size > 0
    assert told(tmp_path) == [(1, "wing", {"1": 1})]  # who reads takes back what was begun
    Judgements(tmp_path).put("wing", "2", 0)
    assert told(tmp_path) == [(1, "wing", {"1": 1, "2": 0})]


def test_a_file_of_nothing_is_none_and_any_other_is_refused(tmp_path):
    path = tmp_path / "JUDGEMENTS"
    path.touch()  # who died before his first judgement
    assert told(tmp_path) == []
    Judgements(tmp_path).put("wing", "1", 1)
    assert told(tmp_path) == [(1, "wing", {"1": 1})]
    content = path.read_bytes()
    for other in (b"no database at all, but long enough to be one" * 30, content[:5000]):
        path.write_bytes(other)
        with pytest.raises(IndexDamaged, match="from a backup"):
            told(tmp_path)
    path.unlink()
    sqlite3.connect(path).executescript("create table mine (x)").close()
    with pytest.raises(IndexDamaged, match="another kind of file"):
        Judgements(tmp_path).put("wing", "1", 1)


@pytest.mark.parametrize(
    "change",
    [
        "update judgements set grade = 'x'",
        "update judgements set document = x'ff'",
        "update judgements set document = cast(x'ff' as text)",
    ],
)
def test_invalid_stored_judgements_are_damage(tmp_path, change):
    Judgements(tmp_path).put("wing", "1", 1)
    with sqlite3.connect(tmp_path / "JUDGEMENTS") as other:
        other.execute(change)
    other.close()
    with pytest.raises(IndexDamaged, match="from a backup"):
        told(tmp_path)


def test_a_write_during_a_long_one_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "WRITE_TIMEOUT", 0.05)
    Judgements(tmp_path).put("wing", "1", 1)
    other = sqlite3.connect(tmp_path / "JUDGEMENTS", isolation_level=None)
    other.execute("begin exclusive")
    with pytest.raises(IndexBusy, match="by another"):
        Judgements(tmp_path).put("wing", "1", 0)
    other.close()
    assert told(tmp_path) == [(1, "wing", {"1": 1})]


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(StoreError, match="cannot write"):
        Judgements(tmp_path / "gone").put("wing", "1", 1)
    assert told(tmp_path / "gone") == []


def test_files_of_them_are_read_back(tmp_path):
    judgements = Judgements(tmp_path)
    judgements.put("heat of  wings", "a/b", 2)
    judgements.put("\tcold", "c", 0)
    found = judgements.queries()
    (tmp_path / "own.qrels").write_text(
        qrels_text(one for each in found for one in each.judgements())[0]
    )
    (tmp_path / "own.tsv").write_text("".join(each.as_line() for each in found))
    assert (tmp_path / "own.qrels").read_text() == "1 0 a/b 2\n2 0 c 0\n"
    assert read_qrels(tmp_path / "own.qrels") == [
        one for each in found for one in each.judgements()
    ]
    assert [(each.id, each.text) for each in read_queries(tmp_path / "own.tsv")] == [
        ("1", "heat of wings"),
        ("2", "cold"),
    ]
    judgements.put("cold", "a b", 1)
    judgements.put("cold", "tab\there", 2)
    text, left_out = qrels_text(one for each in judgements.queries() for one in each.judgements())
    assert text == (tmp_path / "own.qrels").read_text()
    assert [(each.document_id, each.grade) for each in left_out] == [("a b", 1), ("tab\there", 2)]
