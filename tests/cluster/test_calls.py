"""Calls to all partitions: slow replicas are bypassed, failures are reported, nothing hangs."""

import pickle
import threading

import pytest

from klsa_search.cluster import calls
from klsa_search.cluster.calls import call_all
from klsa_search.core.deadlines import deadline_check
from klsa_search.errors import RequestTimedOut
from tests.cluster.local_workers import Threads


class Echo:
    def packed_answer(self, call):
        return pickle.dumps(pickle.loads(call)[1])


def replicas(partitions=3, count=1, trouble=None):
    return Threads([[Echo()] * count] * partitions, count, trouble)


def words(partitions=3):
    return [("say", f"word {partition}") for partition in range(partitions)]


def test_each_partition_answers_for_itself():
    answers = call_all(replicas(), words())
    assert answers.values == {partition: f"word {partition}" for partition in range(3)}
    assert answers.failed == {}


def test_a_partition_that_is_not_called_is_not_missing():
    answers = call_all(replicas(), [("say", "word 0"), None, ("say", "word 2")])
    assert (sorted(answers.values), answers.failed) == ([0, 2], {})


def test_another_replica_answers_for_one_that_fails(monkeypatch):
    monkeypatch.setattr(calls, "HEDGE_DELAY", 60)
    asked = replicas(count=2, trouble=lambda partition, replica, _: 1 / 0 if replica == 0 else None)
    answers = call_all(asked, words())
    assert (len(answers.values), answers.failed) == (3, {})
    assert len(asked.calls) == 6


def test_another_replica_answers_for_one_that_is_slow(monkeypatch):
    monkeypatch.setattr(calls, "HEDGE_DELAY", 0.01)
    released = threading.Event()

    def trouble(partition, replica, _):
        if (partition, replica) == (1, 0):
            released.wait(60)

    asked = replicas(count=2, trouble=trouble)
    answers = call_all(asked, words())
    released.set()
    assert answers.values == {partition: f"word {partition}" for partition in range(3)}


def test_the_first_replica_takes_turns(monkeypatch):
    monkeypatch.setattr(calls, "HEDGE_DELAY", 60)
    asked = replicas(count=2)
    call_all(asked, words(), first=1)
    assert {replica for _, replica, _ in asked.calls} == {1}


def test_a_partition_that_never_answers_is_missing():
    released = threading.Event()
    asked = replicas(
        trouble=lambda partition, *_: released.wait(timeout=60) and None if partition == 2 else None
    )
    limit = 0.2
    answers = call_all(asked, words(), timeout=limit)
    released.set()
    assert (sorted(answers.values), answers.failed) == ([0, 1], {2: "no answer within 0.2 s"})


def test_no_partition_is_waited_for_beyond_the_deadline():
    released = threading.Event()
    looks = iter([None, None])

    def late():
        if next(looks, "late") == "late":
            raise RequestTimedOut("too late")

    asked = replicas(trouble=lambda *_: released.wait(60) and None)
    with pytest.raises(RequestTimedOut), deadline_check(late):
        call_all(asked, words())
    released.set()
