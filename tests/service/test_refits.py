"""Automatic refits of indexes that have drifted from their build."""

import shutil
import subprocess
import sys
from dataclasses import replace

import pytest
from starlette.testclient import TestClient

from klsa_search import open_index
from klsa_search.cli.refit_child import MODULE
from klsa_search.core.child_processes import command_of
from klsa_search.errors import IndexBusy, StoreError
from klsa_search.service.app import create_app
from klsa_search.service.background import Writes
from klsa_search.service.refits import RefitLedger, Refits
from klsa_search.storage.current import current_generation
from tests.support.waiting import wait_until

from .conftest import DOCUMENTS, build_tiny

NOTES = """
import sys, pathlib
with open(sys.argv[1], "a") as file:
    _, settings, name = sys.argv[2:]
    file.write(f"{name} {settings}\\n")
"""
"""A command that fails, or does nothing, and notes for which index."""


@pytest.fixture
def home(tiny_home, tmp_path):
    return shutil.copytree(tiny_home, tmp_path, dirs_exist_ok=True)


@pytest.fixture
def refits_of(catalog_of):
    opened = []

    def refits(home, command, **options):
        opened.append(Refits(catalog_of(home), command, **{"share": 0.2, **options}))
        return opened[-1]

    yield refits
    for each in opened:
        each.close()


def refitting(home):
    return command_of(MODULE, "--home", str(home))


def noting(home, ending):
    return [sys.executable, "-c", NOTES + ending, str(home / "notes")]


def noted(home):
    return [line.removesuffix(" {}") for line in (home / "notes").read_text().splitlines()]


def add(home, count, name="tiny"):
    index = open_index(home / name)
    index.add([{"id": f"new {n}", "text": f"A zeppelin {n}."} for n in range(count)])
    index.close()


def test_what_came_too_far_is_refitted(refits_of, home):
    refits = refits_of(home, refitting(home), share=0.3)
    app = create_app(refits._catalog, writes=Writes(), refits=refits)
    client = TestClient(app)
    add(home, 2)  # 2 of 7
    assert not refits.run_due()
    assert client.get("/health").json()["refits"] == {}
    assert client.delete("/indexes/tiny/documents/1").status_code == 200  # 3 of 7
    assert client.get("/indexes/tiny").json()["drift"]["changed_share"] == pytest.approx(3 / 7)
    assert refits.run_due()
    refit = client.get("/health").json()["refits"]["tiny"]
    assert refit.pop("seconds") > 0
    assert refit.pop("begun").endswith("+00:00")
    assert refit.pop("phase") == "files"
    assert (refit["generation"], refit["error"]) == ("000001", None)
    details = client.get("/indexes/tiny").json()
    assert (details["generation"], details["documents"]) == ("000002", len(DOCUMENTS) + 1)
    assert details["drift"]["changed_share"] == 0
    assert not refits.run_due()


def test_what_it_made_is_waited_for(refits_of, home, monkeypatch):
    monkeypatch.setattr("klsa_search.service.refits._PAUSE_FACTOR", 0)
    add(home, 5)
    refits = refits_of(home, noting(home, ""))  # which ends well, and the index stays as it is
    assert refits.run_due()
    assert not refits.run_due()
    assert noted(home) == ["tiny"]


@pytest.mark.long
def test_it_rests_between_refits(refits_of, home):
    add(home, 5)
    refits = refits_of(home, refitting(home))
    assert refits.run_due()
    index = open_index(home / "tiny")
    index.delete([f"new {n}" for n in range(5)])
    index.close()
    assert not refits.run_due()  # for nine times as long as it took
    assert refits.last()["tiny"].retry_at > refits.last()["tiny"].seconds


def test_one_that_fails_is_told_and_not_begun_again_at_once(refits_of, home, caplog, monkeypatch):
    add(home, 5)
    says = "print('a warning\\nerror: the disk is full', file=sys.stderr); sys.exit(1)"
    refits = refits_of(home, noting(home, says))
    assert refits.run_due()
    assert refits.last()["tiny"].error == "the disk is full"
    assert "refit of tiny failed: the disk is full" in caplog.text
    assert not refits.run_due()
    assert noted(home) == ["tiny"]
    monkeypatch.setattr("klsa_search.service.refits.monotonic", lambda: 1e12)
    assert refits.run_due()
    assert noted(home) == ["tiny", "tiny"]


@pytest.mark.parametrize(
    ("ending", "says"),
    [
        ("sys.exit(3)", "the refit ended with status 3"),
        (
            "import os; os.kill(os.getpid(), 9)",
            "killed by signal 9; make sure that there is free memory",
        ),
    ],
)
def test_ends_that_say_nothing(refits_of, home, ending, says):
    add(home, 5)
    refits = refits_of(home, noting(home, ending))
    assert refits.run_due()
    assert says in refits.last()["tiny"].error


def test_a_process_that_cannot_be_started(refits_of, home):
    add(home, 5)
    refits = refits_of(home, [str(home / "nothing")])
    assert refits.run_due()
    assert "cannot be started" in refits.last()["tiny"].error


def test_the_furthest_comes_first(refits_of, home):
    build_tiny(home, "other")
    build_tiny(home, "same")
    add(home, 3)
    add(home, 4, "other")
    refits = refits_of(home, noting(home, ""))
    assert [refits.run_due() for _ in range(3)] == [True, True, False]
    assert noted(home) == ["other", "tiny"]


def test_its_end_ends_what_runs(refits_of, home):
    """A thread looks; the process waits for ever, and says when it is there."""
    waits = "print('there', file=open(sys.argv[1] + '.there', 'w')); sys.stdin.read()"
    add(home, 5)
    refits = refits_of(home, noting(home, waits))
    with refits:
        wait_until(lambda: (home / "notes.there").exists())
        assert refits.last()["tiny"].seconds is None
    assert refits.watch.join(300)
    assert "signal 15" in refits.last()["tiny"].error
    refits = refits_of(home, noting(home, ""))
    refits.close()
    assert refits.run_due()
    assert noted(home) == ["tiny"]


def test_the_process_ends_with_the_service(home):
    """Its standard input closes when the service is no more; the index stays as it is."""
    add(home, 5)
    command = [*refitting(home), "tiny"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdin.close()
        assert process.wait(300) == 1
    assert current_generation(home / "tiny").name == "000001"


def both(refits_of, home, ending):
    """Refits of two processes that share what they know."""
    (home / ".shared").mkdir()
    command = noting(home, ending)
    ledgers = RefitLedger(home / ".shared"), RefitLedger(home / ".shared")
    return [refits_of(home, command, share=None, ledger=ledger) for ledger in ledgers]


def test_of_several_processes_one_refits_and_all_tell_the_same(refits_of, home):
    one, other = both(refits_of, home, "")
    begun = one.request("tiny", "000001", {"z": 3})
    assert other.request("tiny", "000001", {"z": 3}) == begun == other.last()["tiny"]
    with pytest.raises(IndexBusy):
        other.request("tiny", "000001", {"z": 4})
    assert other.run_due()
    assert not one.run_due()
    assert noted(home) == ['tiny {"z": 3}']
    assert one.last() == other.last()
    assert one.last()["tiny"].settings == {"z": 3}
    assert one.ended() == other.ended() == {("tiny", "done"): 1}


def test_while_one_refits_no_other_does(refits_of, home):
    one, other = both(refits_of, home, "print('documents 1 2', flush=True); sys.stdin.read()")
    one.request("tiny", "000001", {})
    with one:
        wait_until(lambda: other.last()["tiny"].done == 1)
        assert not other.last()["tiny"].queued
        other.request("same", "000001", {})
        assert not other.run_due()
        assert other.last()["tiny"].error is None
    assert one.watch.join(300)
    assert "signal 15" in other.last()["tiny"].error
    assert list(other.last()) == ["same", "tiny"]
    assert other.last()["same"].queued


def test_what_a_dead_process_left_is_told_as_failed_and_begun_again(refits_of, home, caplog):
    one, other = both(refits_of, home, "")
    begun = one.request("tiny", "000001", {})
    with one._ledger.change() as known:
        known.last["tiny"] = replace(begun, queued=False)
    assert not other.run_due()
    assert "ended" in one.last()["tiny"].error
    assert "refit of tiny failed" in caplog.text
    assert one.ended() == {("tiny", "failed"): 1}
    one.request("tiny", "000001", {})
    assert other.run_due()
    assert one.last()["tiny"].error is None


def test_a_folder_that_cannot_be_written_is_named(refits_of, home):
    one, _ = both(refits_of, home, "")
    (home / ".shared" / "refits.new").mkdir()
    with pytest.raises(StoreError, match=r"refits\.new.*free space"):
        one.request("tiny", "000001", {})
    assert not one.run_due()


def test_one_that_is_asked_for_meanwhile_is_not_passed_over(refits_of, home, monkeypatch):
    add(home, 5)
    refits = refits_of(home, noting(home, ""))
    statuses = refits._catalog.statuses

    def asked_for():
        refits.request("tiny", "000001", {"z": 3})
        return statuses()

    monkeypatch.setattr(refits._catalog, "statuses", asked_for)
    refits.run_due()
    assert refits.last()["tiny"].queued
    assert refits.run_due()
    assert noted(home) == ['tiny {"z": 3}']


def test_a_failure_that_nobody_foresaw_ends_no_watch_and_is_reported(
    refits_of, home, caplog, monkeypatch
):
    monkeypatch.setattr("klsa_search.service.refits._INTERVAL", 0.01)
    refits = refits_of(home, noting(home, ""), share=None)
    run, slips = refits._run, [KeyError("slip")]

    def slipping(*given):
        if slips:
            raise slips.pop()
        return run(*given)

    monkeypatch.setattr(refits, "_run", slipping)
    refits.request("tiny", "000001", {})
    with refits:
        wait_until(lambda: refits.watch.failures == 1)
        assert "internal error (`KeyError`)" in refits.last()["tiny"].error
        assert refits.ended() == {("tiny", "failed"): 1}
        refits.request("tiny", "000001", {})
        wait_until(lambda: refits.ended() == {("tiny", "failed"): 1, ("tiny", "done"): 1})
    assert "KeyError: 'slip'" in caplog.text
