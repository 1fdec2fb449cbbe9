"""Background work survives exceptions, which are logged and counted."""

import logging
import threading

from klsa_search.errors import StoreError
from klsa_search.service.background import PeriodicTask
from tests.support.application import app_of_indexes
from tests.support.client import AppClient
from tests.support.waiting import PATIENCE


def watched(failures):
    """Raise these one after the other, None for a call that ends well; return the watch."""
    left, done = list(failures), threading.Event()

    def work():
        if not left:
            done.set()
            return
        failure = left.pop(0)
        if failure is not None:
            raise failure

    watch = PeriodicTask("work", work, 0.001)
    watch.start()
    assert done.wait(PATIENCE)
    watch.stop()
    assert watch.join(PATIENCE)
    return watch


def test_any_failure_is_logged_with_its_traceback_and_counted(caplog):
    assert watched([KeyError("slip"), MemoryError()]).failures == 2
    assert [(each.levelno, each.exc_info[0]) for each in caplog.records] == [
        (logging.ERROR, KeyError),
        (logging.ERROR, MemoryError),
    ]


def test_an_expected_failure_is_logged_as_its_message(caplog):
    watched([StoreError("disk is full")])
    (record,) = caplog.records
    assert (record.getMessage(), record.exc_info) == ("work failed: disk is full; will retry", None)


def test_a_failure_that_repeats_is_logged_once_until_the_work_succeeds(caplog):
    assert watched([ValueError(), ValueError(), None, ValueError()]).failures == 3
    assert len(caplog.records) == 2


def test_a_failure_reported_after_the_call_is_logged_once(caplog):
    done = threading.Event()

    def work():
        if watch.failures == 3:
            done.set()
        threading.Thread(target=watch.report, args=[ValueError()]).start()

    watch = PeriodicTask("work", work, 0.001)
    watch.start()
    assert done.wait(PATIENCE)
    watch.stop()
    assert watch.join(PATIENCE)
    assert len(caplog.records) == 1


def test_failures_are_a_metric(indexes_of, tiny_home):
    open_indexes = indexes_of(tiny_home)
    open_indexes.watch.report(ValueError())
    told = AppClient(app_of_indexes(open_indexes)).get("/metrics").text
    assert 'klsa_background_failures_total{work="catalog"} 1.0' in told
