"""Jobs: refits of indexes, by drift or on request, and their history."""

import subprocess
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from time import time

import pytest

from klsa_search import build, list_indexes, open_index
from klsa_search.core.child_processes import command_of
from klsa_search.core.service_reports import Job
from klsa_search.errors import IndexBusy, JobNotFound, StoreError
from klsa_search.service.admission import Writes
from klsa_search.service.application import CHILD
from klsa_search.service.job_ledger import change_jobs
from klsa_search.service.jobs import Jobs, retry_time
from klsa_search.storage.current import current_generation
from klsa_search.storage.maintenance import delete_index
from tests.support.application import app_of_indexes
from tests.support.client import AppClient
from tests.support.waiting import PATIENCE, wait_until

from .conftest import DOCUMENTS, build_tiny, copy_home

NOTES = """printf '%s %s\\n' "$3" "$2" >> "$0"\n"""
"""A command that fails, or does nothing, and notes for which index."""
WAITS = "exec cat > /dev/null"  # what ends with the pipe of its standard input


@pytest.fixture
def home(tiny_home, tmp_path):
    return copy_home(tiny_home, tmp_path)


@pytest.fixture
def refits_of(indexes_of):
    opened = []

    def refits(home, command, *, open_indexes=None, **options):
        opened.append(Jobs(open_indexes or indexes_of(home), command, **{"share": 0.2, **options}))
        return opened[-1]

    yield refits
    for each in opened:
        each.close()


def refitting(home):
    return command_of(CHILD, "refit", "--home", str(home))


def noting(home, ending):
    return ["sh", "-c", NOTES + ending, str(home / "notes")]


def noted(home):
    return [line.removesuffix(" {}") for line in (home / "notes").read_text().splitlines()]


def add(home, count, name="tiny"):
    index = open_index(home / name)
    index.add([{"id": f"new {n}", "text": f"A zeppelin {n}."} for n in range(count)])
    index.close()


@pytest.mark.slow
def test_an_index_that_drifted_too_far_is_refitted(refits_of, indexes_of, home):
    open_indexes = indexes_of(home)
    refits = refits_of(home, refitting(home), open_indexes=open_indexes, share=0.3)
    app = app_of_indexes(open_indexes, writes=Writes(), jobs=refits)
    client = AppClient(app)
    add(home, 2)  # 2 of 7
    assert not refits.run_due()
    assert client.get("/health").json()["refits"] == {}
    assert client.delete("/indexes/tiny/documents/1").status_code == 200  # 3 of 7
    assert client.get("/indexes/tiny").json()["drift"]["changed_share"] == pytest.approx(3 / 7)
    assert refits.run_due()
    refit = client.get("/health").json()["refits"]["tiny"]
    assert refit.pop("seconds") > 0
    assert refit.pop("started").endswith("+00:00")
    assert (refit["phase"], refit["done"], refit["total"]) == (None, 0, None)
    assert (refit["generation"], refit["built"], refit["error"]) == ("000001", "000002", None)
    details = client.get("/indexes/tiny").json()
    assert (details["generation"], details["documents"]) == ("000002", len(DOCUMENTS) + 1)
    assert details["drift"]["changed_share"] == 0
    assert not refits.run_due()


@pytest.mark.slow
def test_an_index_with_many_later_documents_is_compacted(refits_of, home, monkeypatch):
    """Its drift stays, and no refit is reported."""
    monkeypatch.setattr("klsa_search.service.jobs.LEAST_COMPACTED", 2)
    refits = refits_of(home, refitting(home), share=0.9)
    add(home, 2)
    assert refits.run_due()
    (job,) = refits.history().jobs[::-1]
    assert (job.kind, job.state, job.built) == ("compaction", "done", "000002")
    assert (refits.history().last("tiny", "refit"), refits.history().ended) == (None, {})
    index = open_index(home / "tiny")
    assert (index.segments, index.drift.added, index.last_write.seq) == (1, 2, 0)
    index.close()
    assert not refits.run_due()


def test_new_prices_start_no_refit_unless_an_index_cannot_be_compacted(
    refits_of, home, monkeypatch
):
    build(DOCUMENTS, name="parts", home=home, partitions=2).close()
    monkeypatch.setattr("klsa_search.service.jobs.LEAST_COMPACTED", 2)
    monkeypatch.setattr("klsa_search.service.jobs.COMPACTED_SHARE", 2)
    for name in ("tiny", "parts"):
        with closing(open_index(home / name)) as index:
            index.patch_many([{"id": id_, "price": 5} for id_ in index.ids()])
            assert index.drift.changed_share(len(index)) == 0
    refits = refits_of(home, noting(home, ""), share=0.1)
    assert refits.run_due()
    assert noted(home) == ["parts"]
    assert not refits.run_due()


def test_a_request_for_a_refit_is_not_answered_by_a_compaction(refits_of, home):
    refits = refits_of(home, noting(home, ""))
    with change_jobs(home) as history:
        history.add("tiny", "000001", {}, "running", "compaction")
    assert refits.history().open_job("tiny") is None
    job = refits.request("tiny", "000001", {})
    assert (job.kind, job.state) == ("refit", "waiting")


def test_a_compaction_is_not_due_soon_after_one_or_before_a_refit(refits_of, home, monkeypatch):
    monkeypatch.setattr("klsa_search.service.jobs.LEAST_COMPACTED", 2)
    add(home, 2)
    both = refits_of(home, noting(home, "echo no space >&2; exit 1"), share=0.2)
    assert both.run_due()
    assert both.run_due()
    assert [job.kind for job in both.history().jobs[::-1]] == [
        "compaction",
        "refit",
    ]  # newest first
    assert not both.run_due()  # both failed just now


def test_a_job_ends_when_its_generation_is_loaded(refits_of, home, monkeypatch):
    monkeypatch.setattr("klsa_search.service.jobs.PAUSE_FACTOR", 0)
    add(home, 5)
    refits = refits_of(home, noting(home, ""))  # which ends well, and the index stays as it is
    assert refits.run_due()
    assert not refits.run_due()
    assert noted(home) == ["tiny"]


def test_an_index_built_in_the_place_of_a_deleted_one_is_refitted(refits_of, home, monkeypatch):
    add(home, 5)
    refits = refits_of(home, noting(home, ""))
    assert refits.run_due()  # it ends well, of this generation
    delete_index(home / "tiny")
    build_tiny(home)
    add(home, 5)
    later = time() + 3600
    monkeypatch.setattr("klsa_search.service.jobs.time", lambda: later)
    assert refits.run_due()


def test_a_waiting_job_is_cancelled_with_its_index(refits_of, indexes_of, home):
    open_indexes = indexes_of(home)
    refits = refits_of(home, noting(home, ""), share=None)
    client = AppClient(app_of_indexes(open_indexes, writes=Writes(), jobs=refits))
    job = refits.request("tiny", "000001", {"z": 3})
    assert client.delete("/indexes/tiny").status_code == 200
    assert refits.history().find(job.id).state == "cancelled"
    assert not refits.run_due()


@pytest.mark.slow
def test_there_is_a_pause_between_refits(refits_of, home, monkeypatch):
    monkeypatch.setattr("klsa_search.service.jobs.PAUSE_FACTOR", 100_000)
    add(home, 5)
    refits = refits_of(home, refitting(home))
    assert refits.run_due()
    index = open_index(home / "tiny")
    index.delete([f"new {n}" for n in range(4)])  # from half of the documents on, it is short
    index.close()
    assert not refits.run_due()


def test_the_pause_is_short_once_half_of_the_documents_changed():
    job = Job(
        id=1,
        index="tiny",
        generation="000001",
        started="2026-01-01T00:00:00+00:00",
        state="done",
        seconds=10.0,
    )
    started = datetime.fromisoformat(job.started).timestamp()
    assert retry_time(job, 0.3) == started + 10 + 90
    assert retry_time(job, 0.7) == started + 10 + 10
    assert retry_time(replace(job, state="failed"), 0.7) == started + 10 + 600


def test_a_clock_that_was_set_back_delays_no_refit(refits_of, home, monkeypatch):
    with monkeypatch.context() as ahead:
        ahead.setattr("klsa_search.service.job_ledger._now", lambda: "2999-01-01T00:00:00+00:00")
        add(home, 5)
        refits = refits_of(home, noting(home, "exit 1"))
        assert refits.run_due()
    assert refits.run_due()
    assert noted(home) == ["tiny", "tiny"]
    assert not refits.run_due()


def test_a_failed_refit_is_reported_and_not_repeated_at_once(refits_of, home, caplog, monkeypatch):
    add(home, 5)
    says = "echo a warning >&2; echo error: the disk is full >&2; exit 1"
    refits = refits_of(home, noting(home, says))
    assert refits.run_due()
    assert refits.history().last("tiny").error == "the disk is full"
    assert "refit of tiny failed: the disk is full" in caplog.text
    assert not refits.run_due()
    assert noted(home) == ["tiny"]
    monkeypatch.setattr("klsa_search.service.jobs.time", lambda: 1e12)
    assert refits.run_due()
    assert noted(home) == ["tiny", "tiny"]


@pytest.mark.parametrize(
    ("ending", "says"),
    [
        ("exit 3", "the refit ended with status 3"),
        ("kill -9 $$", "killed by signal 9; make sure that there is free memory"),
    ],
)
def test_ends_that_say_nothing(refits_of, home, ending, says):
    add(home, 5)
    refits = refits_of(home, noting(home, ending))
    assert refits.run_due()
    assert says in refits.history().last("tiny").error


def test_a_process_that_cannot_be_started(refits_of, home):
    add(home, 5)
    refits = refits_of(home, [str(home / "nothing")])
    assert refits.run_due()
    assert "cannot be started" in refits.history().last("tiny").error


def test_the_furthest_comes_first(refits_of, home):
    build_tiny(home, "other")
    build_tiny(home, "same")
    add(home, 3)
    add(home, 4, "other")
    refits = refits_of(home, noting(home, ""))
    assert [refits.run_due() for _ in range(3)] == [True, True, False]
    assert noted(home) == ["other", "tiny"]


def test_a_refit_that_the_end_of_the_service_ends_waits_again(refits_of, home):
    """A thread looks; the process waits for ever, and says when it is there."""
    waits = f'echo there > "$0.there"; {WAITS}'
    add(home, 5)
    refits = refits_of(home, noting(home, waits))
    with refits:
        wait_until(lambda: (home / "notes.there").exists())
        assert refits.history().last("tiny").state == "running"
    assert refits.watch.join(PATIENCE)
    waiting = refits.history().last("tiny")
    assert (waiting.state, waiting.error) == ("waiting", None)
    refits = refits_of(home, noting(home, ""))
    assert refits.run_due()
    done = refits.history().last("tiny")
    assert (done.id, done.state) == (waiting.id, "done")
    assert noted(home) == ["tiny", "tiny"]


def test_the_process_ends_with_the_service(home):
    """Its standard input closes when the service is no more; the index stays as it is."""
    add(home, 5)
    command = [*refitting(home), "tiny"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdin.close()
        assert process.wait(PATIENCE) == 1
    assert current_generation(home / "tiny").name == "000001"


def both(refits_of, home, ending):
    """Refits of two processes that share what they know."""
    return [refits_of(home, noting(home, ending), share=None) for _ in range(2)]


def test_one_of_several_processes_refits_and_all_report_the_same(refits_of, home):
    one, other = both(refits_of, home, "")
    begun = one.request("tiny", "000001", {"z": 3})
    assert (begun.id, begun.state) == (1, "waiting")
    assert (
        other.request("tiny", "000001", {"z": 3})
        == begun
        == other.history().find(1)
        == other.history().last("tiny")
    )
    with pytest.raises(IndexBusy, match="job 1"):
        other.request("tiny", "000001", {"z": 4})
    assert other.run_due()
    assert not one.run_due()
    assert noted(home) == ['tiny {"z": 3}']
    assert one.history().jobs[::-1] == other.history().jobs[::-1]
    assert (one.history().find(1).settings, one.history().find(1).state) == ({"z": 3}, "done")
    assert one.history().ended == other.history().ended == {("tiny", "done"): 1}


def test_only_one_process_refits_at_a_time(refits_of, home):
    one, other = both(refits_of, home, f"echo documents 1 2; {WAITS}")
    one.request("tiny", "000001", {})
    with one:
        wait_until(lambda: other.history().last("tiny").done == 1)
        assert other.history().last("tiny").state == "running"
        other.request("same", "000001", {})
        assert not other.run_due()
        assert other.history().last("tiny").error is None
    assert one.watch.join(PATIENCE)
    assert [(job.id, job.index, job.state) for job in other.history().jobs[::-1]] == [
        (2, "same", "waiting"), (1, "tiny", "waiting"),  # another process may run it again
    ]  # fmt: skip


def test_a_job_of_a_killed_service_failed_and_waiting_ones_are_kept(refits_of, home, caplog):
    one, other = both(refits_of, home, "")
    one.request("tiny", "000001", {})
    with change_jobs(home) as history:
        history.change(1, state="running")  # as if its process was killed
    assert not other.run_due()
    assert (one.history().find(1).state, one.history().find(1).seconds) == ("failed", None)
    assert "was killed" in one.history().find(1).error
    assert "refit of tiny failed" in caplog.text
    assert one.history().ended == {("tiny", "failed"): 1}
    one.request("tiny", "000001", {})
    [later] = [refits_of(home, noting(home, ""), share=None)]
    assert later.history().find(2).state == "waiting"
    assert later.run_due()
    assert one.history().find(2).state == "done"


def test_a_waiting_job_is_cancelled_at_once(refits_of, home):
    refits, _ = both(refits_of, home, "")
    refits.request("tiny", "000001", {"z": 3})
    assert refits.cancel(1).state == "cancelled"
    assert not refits.run_due()
    assert not (home / "notes").exists()
    assert refits.cancel(1) == refits.history().find(1)  # ended jobs stay as they are
    assert refits.request("tiny", "000001", {"z": 4}).id == 2
    with pytest.raises(JobNotFound):
        refits.cancel(3)


def test_a_running_job_is_cancelled_by_any_process(refits_of, home, monkeypatch):
    monkeypatch.setattr("klsa_search.service.jobs.INTERVAL", 0.01)
    one, other = both(refits_of, home, f"echo documents 1 2; {WAITS}")
    one.request("tiny", "000001", {})
    with one:
        wait_until(lambda: other.history().find(1).done == 1)
        assert other.cancel(1).state == "running"
        second = other.request("tiny", "000001", {})  # after the cancelled one
        wait_until(lambda: other.history().find(1).state == "cancelled")
        assert (other.history().find(1).error, second.id) == (None, 2)
        other.cancel(2)
        wait_until(lambda: other.history().find(2).state == "cancelled")
    assert one.history().ended == {("tiny", "cancelled"): 2}


def test_a_cancelled_refit_does_not_start_again_by_itself_at_once(refits_of, home):
    add(home, 5)
    refits = refits_of(home, noting(home, ""))
    refits.request("tiny", "000001", {})
    refits.cancel(1)
    assert not refits.run_due()


def test_the_oldest_ended_jobs_are_forgotten(refits_of, home, monkeypatch):
    monkeypatch.setattr("klsa_search.service.job_ledger.MAX_JOBS", 3)
    refits, _ = both(refits_of, home, "")
    refits.request("waits", "000001", {})
    for _ in range(4):
        refits.cancel(refits.request("tiny", "000001", {}).id)
    assert [job.id for job in refits.history().jobs[::-1]] == [5, 4, 1]
    refits.request("other", "000001", {})
    assert [job.id for job in refits.history().jobs[::-1]] == [6, 5, 1]


def test_jobs_leave_an_index_directory_as_it_was_to_others(refits_of, home):
    refits, _ = both(refits_of, home, "")
    refits.cancel(refits.request("tiny", "000001", {}).id)
    assert list_indexes(home) == ["tiny"]
    assert list(home.glob(".jobs*")) == []


def test_a_directory_that_cannot_be_written_is_named(refits_of, home):
    refits, _ = both(refits_of, home, "")
    (home / "catalog.db").mkdir()
    with pytest.raises(StoreError, match=r"catalog\.db.*check its owner"):
        refits.request("tiny", "000001", {})


def test_a_directory_that_is_read_only_has_no_jobs_and_is_served(indexes_of, home, monkeypatch):
    monkeypatch.setattr("klsa_search.service.job_ledger.os.access", lambda *_: False)
    open_indexes = indexes_of(home)
    jobs = Jobs(open_indexes, ("false",), share=0.2)
    assert not jobs.run_due()
    assert list(home.glob(".jobs*")) == []
    client = AppClient(app_of_indexes(open_indexes, writes=Writes(), jobs=jobs))
    assert client.get("/jobs").json() == {"jobs": []}
    assert client.get("/health").json()["refits"] == {}


def test_a_damaged_file_is_named(refits_of, home):
    refits, _ = both(refits_of, home, "")
    (home / "catalog.db").write_bytes(b"no database at all, but as long as one" * 99)
    with pytest.raises(StoreError, match=r"catalog\.db.*move this file away"):
        refits.history().jobs[::-1]


def test_a_refit_requested_during_another_is_run(refits_of, indexes_of, home, monkeypatch):
    add(home, 5)
    open_indexes = indexes_of(home)
    refits = refits_of(home, noting(home, ""), open_indexes=open_indexes)
    statuses = open_indexes.statuses

    def asked_for():
        refits.request("tiny", "000001", {"z": 3})
        return statuses()

    monkeypatch.setattr(open_indexes, "statuses", asked_for)
    refits.run_due()
    assert refits.history().last("tiny").state == "waiting"
    assert refits.run_due()
    assert noted(home) == ['tiny {"z": 3}']


def test_an_internal_error_is_reported_and_ends_no_watch(refits_of, home, caplog, monkeypatch):
    monkeypatch.setattr("klsa_search.service.jobs.INTERVAL", 0.01)
    refits = refits_of(home, noting(home, ""), share=None)
    start, slips = subprocess.Popen, [KeyError("slip")]

    def slipping(*command, **options):
        if slips:
            raise slips.pop()
        return start(*command, **options)

    monkeypatch.setattr("klsa_search.service.jobs.subprocess.Popen", slipping)
    refits.request("tiny", "000001", {})
    with refits:
        wait_until(lambda: refits.watch.failures == 1)
        assert "internal error (`KeyError`)" in refits.history().last("tiny").error
        assert refits.history().ended == {("tiny", "failed"): 1}
        refits.request("tiny", "000001", {})
        wait_until(lambda: refits.history().ended == {("tiny", "failed"): 1, ("tiny", "done"): 1})
    assert "KeyError: 'slip'" in caplog.text
