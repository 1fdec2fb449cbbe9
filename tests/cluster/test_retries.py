"""Steps are retried a bounded number of times if their process ends, with any engine."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from klsa_search.cluster import ray as engine
from klsa_search.cluster.work import Work
from klsa_search.errors import ClusterFailed


class RayError(Exception):
    """Base of what the engine raises."""


class OutOfMemoryError(RayError):
    """The memory monitor killed the process."""


class FakeRay:
    """Runs tasks when they are waited for; what they raise is raised when they are asked for.

    deaths  of the first attempts, in their order
    """

    exceptions = SimpleNamespace(
        RayError=RayError,
        RayTaskError=type("RayTaskError", (RayError,), {}),
        OutOfMemoryError=OutOfMemoryError,
        WorkerCrashedError=type("WorkerCrashedError", (RayError,), {}),
        NodeDiedError=type("NodeDiedError", (RayError,), {}),
        LocalRayletDiedError=type("LocalRayletDiedError", (RayError,), {}),
    )

    def __init__(self, deaths):
        self.deaths, self.attempts = deaths, 0

    def cluster_resources(self):
        return {"CPU": 2}

    def remote(self, **options):
        assert options["max_retries"] == 0  # or it would retry beyond what is counted
        self.tasks = []

        def decorate(function):
            def submit(*call):
                self.tasks.append((function, call))
                return len(self.tasks) - 1

            return SimpleNamespace(remote=submit)

        return decorate

    def wait(self, references, num_returns):
        return references[:num_returns], references[num_returns:]

    def get(self, reference):
        self.attempts += 1
        if self.attempts <= len(self.deaths) and self.deaths[self.attempts - 1] is not None:
            raise self.deaths[self.attempts - 1]
        function, call = self.tasks[reference]
        function(*call)


@pytest.fixture
def work(monkeypatch, tmp_path):
    def made(*deaths):
        fake = FakeRay(deaths)
        monkeypatch.setattr(engine, "connect", lambda *_: fake)
        return Work(tmp_path / "work", engine.RayWorkers("local")), fake

    return made


def _note(out, number):
    (out / "number").write_text(str(number))


def test_a_step_is_retried_when_its_process_dies(work):
    dead = FakeRay.exceptions
    work, ray = work(
        OutOfMemoryError("killed"), dead.WorkerCrashedError(), None, dead.NodeDiedError()
    )
    made = work.make(_note, *({"number": number} for number in range(20)))
    assert [(each.path / "number").read_text() for each in made] == [str(n) for n in range(20)]
    assert ray.attempts == 23


def test_a_step_that_always_runs_out_of_memory_ends_with_its_name_and_the_setting(work):
    work, ray = work(*[OutOfMemoryError("Task was killed due to the node running low")] * 100)
    with pytest.raises(ClusterFailed, match=r"step `note` .*died 6 times .*`memory=`"):
        work.make(_note, {"number": 1})
    assert ray.attempts == engine.MAX_RETRIES + 1


def test_what_no_retry_helps_is_raised_at_once(work):
    work, ray = work(RayError("no"))
    with pytest.raises(ClusterFailed, match="failed"):
        work.make(_note, {"number": 1})
    assert ray.attempts == 1
