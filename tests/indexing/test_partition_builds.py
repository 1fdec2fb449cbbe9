"""Builds of partitions: in any process, again after a process died, with any number of workers."""

import time

import pytest

from klsa_search import build
from klsa_search.core import child_processes
from klsa_search.errors import CollectionError, KlsaError, SettingsError, StoreError
from klsa_search.indexing import partition_tasks, refit
from tests.indexing.test_repartition import QUERIES
from tests.support.worlds import cyclic_records


class _DiedError(Exception):
    """A process died."""


def content(index):
    """Return what searches find, and the checksums of all files but the manifests."""
    found = [[(hit.id, hit.score) for hit in index.search(query).hits] for query in QUERIES]
    return [found, {name: entry.sha256 for name, entry in index.manifest.files.items()}]


def test_a_step_is_repeated_if_its_process_dies(tmp_path, monkeypatch):
    """Before and after files have been moved to the new generation, and while they are written."""
    write_rows, write_features = partition_tasks.write_rows, partition_tasks.write_features
    died = []

    def dying(name, write):
        def write_once(*arguments):
            if died.count(name) < 2:
                died.append(name)
                raise _DiedError(name)
            write(*arguments)

        return write_once

    def workers(step, tasks):
        for number, task in enumerate(tasks):
            while True:
                try:
                    step(task)
                    break
                except _DiedError:
                    continue
            yield number

    with build(cyclic_records(), name="whole", home=tmp_path, partitions=3, workers=1) as index:
        expected = content(index)
    monkeypatch.setattr(partition_tasks, "write_rows", dying("rows", write_rows))
    monkeypatch.setattr(partition_tasks, "write_features", dying("features", write_features))
    with build(
        cyclic_records(), name="whole2", home=tmp_path, partitions=3, workers=workers
    ) as index:
        assert content(index) == expected
    assert sorted(died) == ["features", "features", "rows", "rows"]
    assert not list((tmp_path / "whole2").glob("*partitions*"))


@pytest.mark.slow
def test_partitions_may_have_no_documents(tmp_path):
    made = [{"id": name, "text": f"turbine {name}"} for name in ("valve", "piston")]
    with build(made, name="few", home=tmp_path, partitions=5, workers=1) as index:
        assert len(index.partitions) > 1
        assert [len(each) for each in index.partitions].count(0) >= 3
        assert [hit.id for hit in index.search("piston").hits][:1] == ["piston"]
        index.add([{"id": f"d{number}", "text": f"turbine gear{number}"} for number in range(30)])
        assert all(map(len, index.partitions))
        assert [hit.id for hit in index.search("gear7", spelling="off").hits][:1] == ["d7"]
        assert index.search("turbine", ranker="bm25").total == 32
        index.delete(index.ids())
    with refit(tmp_path / "few") as index:
        assert not len(index)
        index.add(made)
        assert [hit.id for hit in index.search("piston").hits][:1] == ["piston"]


@pytest.mark.slow  # two processes start
def test_the_number_of_workers_changes_nothing(tmp_path):
    found = []
    for number in (1, 2):
        name = f"by{number}"
        with build(
            cyclic_records(), name=name, home=tmp_path, partitions=3, workers=number
        ) as index:
            found.append(content(index))
    assert found[0] == found[1]


def failing_build(home, monkeypatch, body):
    """Build with two processes that run some code instead of a step."""
    (home / "failing.py").write_text(
        "from klsa_search.indexing import partition_tasks as tasks\n"
        "def read_partition(task):\n" + body + "tasks.read_partition = read_partition\n"
        "serve = tasks.serve\n"
    )
    monkeypatch.syspath_prepend(str(home))
    start = child_processes.start_worker
    monkeypatch.setattr(child_processes, "start_worker", lambda _: start("failing"))
    build(cyclic_records(), name="failing", home=home, partitions=6, workers=2)


@pytest.mark.slow
def test_a_partition_that_fails_ends_the_others_at_once(tmp_path, monkeypatch):
    body = (
        "    open(f'{task.path.parents[1]}/begun-{task.number}', 'w').close()\n"
        "    import time; time.sleep(600 if task.number else 0)\n"
        "    from klsa_search.errors import StoreError; raise StoreError('it failed')\n"
    )
    began = time.monotonic()
    with pytest.raises(StoreError, match="it failed"):
        failing_build(tmp_path, monkeypatch, body)
    assert time.monotonic() - began < 300
    assert len(list(tmp_path.glob("begun-*"))) <= 3
    assert not list((tmp_path / "failing").glob("000001*"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "error", "message"),
    [
        ("    raise OSError(28, 'No space left on device', 'x')\n", StoreError, "No space left"),
        ("    raise MemoryError('of an array')\n", MemoryError, "of an array"),
        ("    [][1]\n", RuntimeError, "IndexError: list index out of range"),
        ("    import os; os._exit(3)\n", KlsaError, r"exit code 3\); see its messages"),
    ],
)
def test_errors_of_workers_are_raised(tmp_path, monkeypatch, body, error, message):
    with pytest.raises(error, match=message):
        failing_build(tmp_path, monkeypatch, body)


@pytest.mark.parametrize(
    ("settings", "field", "message"),
    [
        ({"search": ("title", "text", "notes")}, "search", "no document has a field `notes`"),
        ({"split": {"notes": ";"}}, "split", "no document has a field `notes`"),
        ({"fields": ("notes",)}, "fields", "no document has a field `notes`"),
    ],
)
def test_fields_that_no_document_has_are_refused(tmp_path, settings, field, message):
    """As in a build of one partition."""
    for partitions in (1, 2):
        with pytest.raises(SettingsError, match=message) as refused:
            build(
                cyclic_records(),
                name="a",
                home=tmp_path,
                partitions=partitions,
                workers=1,
                **settings,
            )
        assert refused.value.field == field


@pytest.mark.parametrize("partitions", [None, 1, 2])
def test_less_than_one_worker_is_refused(tmp_path, partitions):
    rows = [{"id": "1", "text": "a pump"}]
    for workers in (0, -1):
        with pytest.raises(SettingsError, match=f"workers = {workers} is not at least 1") as no:
            build(rows, name="a", home=tmp_path, partitions=partitions, workers=workers)
        assert no.value.field == "workers"


def test_texts_in_other_fields_are_refused(tmp_path):
    """And documents without any text are built, whatever the number of partitions."""
    for partitions in (1, 2):
        with pytest.raises(CollectionError, match="texts are in 'note'"):
            rows = [{"id": str(number), "note": "a leaking pump"} for number in range(9)]
            build(rows, name="a", home=tmp_path, partitions=partitions, workers=1)
        blank = [{"id": str(number)} for number in range(9)]
        name = f"blank-{partitions}"
        with build(blank, name=name, home=tmp_path, partitions=partitions, workers=1) as index:
            assert len(index) == 9
