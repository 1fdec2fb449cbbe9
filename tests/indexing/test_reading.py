"""Reading gives the same for any number of processes, and leaves no files on failure."""

import os
import signal

import numpy as np
import pytest

from klsa_search import build, open_index
from klsa_search.analysis.workers import AnalysisWorkers
from klsa_search.collection import open_collection
from klsa_search.core.config import Settings
from klsa_search.errors import KlsaError
from klsa_search.indexing import reading
from klsa_search.storage.documents import DocumentReader
from tests.support.processes import started_children
from tests.support.worlds import random_documents


def _metadata(number):
    """Fields of each type, one of them with lists and one not everywhere."""
    known = {"year": number, "of": [f"a{number % 7}", f"b{number % 3}"]}
    return known | ({"day": f"2024-03-{number % 28 + 1:02}"} if number % 5 else {})


RECORDS = [
    {"id": str(number), "title": f"{text[:7]} Ärger", "text": text, **_metadata(number)}
    for number, text in enumerate(random_documents(300, 500))
]
TYPES = {"day": "date", "of": "keyword", "year": "number"}
KEPT = {"documents", "fields", "forward"}


@pytest.fixture
def soon(monkeypatch):
    """Have small collections analysed by workers too, in small batches."""
    monkeypatch.setattr(reading, "WORKER_START", 500)
    monkeypatch.setattr(reading, "BATCH", 20)


@pytest.mark.parametrize(
    ("processes", "memory"), [(2, 0), pytest.param(3, 2**30, marks=pytest.mark.slow)]
)
def test_processes_and_memory_change_no_bit(tmp_path, soon, processes, memory):
    def read(name, processes, memory):
        (tmp_path / name).mkdir()
        told = []
        found = reading.read(
            open_collection(RECORDS),
            tmp_path / name,
            Settings(),
            lambda *step: told.append(step),
            memory=memory,
            processes=processes,
        )
        assert ("documents", 300, 300) in told
        kept = {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()}
        return found.counts, found.contents.digest, found.contents.fields, kept

    alone, digest, fields, kept = read("alone", 1, 2**30)
    shared, other, others, same = read("shared", processes, memory)
    assert (digest, fields) == (other, others)
    assert {name: column.type for name, column in fields.columns.items()} == TYPES
    assert {name.partition("_")[0].partition(".")[0] for name in kept} == KEPT
    assert kept == same
    assert alone.vocabulary.terms == shared.vocabulary.terms
    for one, two in ((alone.matrix, shared.matrix), (alone.pairs, shared.pairs)):
        assert one.shape == two.shape
        for part in ("indptr", "indices", "data"):
            assert np.array_equal(getattr(one, part), getattr(two, part))
    stored = DocumentReader.open(tmp_path / "shared")
    assert stored.ids(stored.live_doc_ids()) == [record["id"] for record in RECORDS]
    assert stored.get("7").metadata == _metadata(7)


@pytest.mark.slow
def test_a_worker_that_dies_ends_the_build_and_leaves_the_old_index(tmp_path, soon, monkeypatch):
    build(RECORDS[:50], name="a", home=tmp_path)
    monkeypatch.setattr(reading, "processors", lambda: 2)
    started = []

    class Doomed(AnalysisWorkers):
        def __enter__(self):
            started.extend(started_children("analysis.workers", 2))
            os.kill(started[0], signal.SIGKILL)
            return super().__enter__()

    monkeypatch.setattr(reading, "AnalysisWorkers", Doomed)
    with pytest.raises(KlsaError, match=r"ended early \(signal 9\).*build again"):
        build(RECORDS, name="a", home=tmp_path)
    assert len(open_index(tmp_path / "a")) == 50
    assert {path.name for path in (tmp_path / "a").iterdir()} >= {"000001", "CURRENT"}
    assert not (tmp_path / "a" / "000002").exists()


def test_an_interruption_ends_the_workers(tmp_path, soon, monkeypatch):
    monkeypatch.setattr(reading, "processors", lambda: 2)
    closed = []

    class Watched(AnalysisWorkers):
        def close(self):
            super().close()
            closed.append([worker.poll() for worker in self._workers])

    monkeypatch.setattr(reading, "AnalysisWorkers", Watched)

    def interrupt(phase, done, _):
        if phase == "counts" and done >= 200:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build(RECORDS[:250], name="a", home=tmp_path, progress=interrupt)
    assert closed == [[-signal.SIGKILL] * 2]
    assert not (tmp_path / "a").exists()
