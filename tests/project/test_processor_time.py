"""The limit of the processor time of a test."""

import pytest

PLUGINS = ("-p", "no:randomly", "-p", "no:cacheprovider")
WORK = """
import time
import pytest

def work():
    end = time.process_time() + 0.1
    while time.process_time() < end:
        pass
"""


@pytest.mark.parametrize(("limit", "failed"), [("0.05", 1), (None, 0)])
def test_a_test_that_takes_too_long_fails_unless_it_says_so(pytester, monkeypatch, limit, failed):
    if limit is None:
        monkeypatch.delenv("KLSA_TEST_SECONDS", raising=False)
    else:
        monkeypatch.setenv("KLSA_TEST_SECONDS", limit)
    pytester.makeini("[pytest]\nmarkers = smoke\n    slow\n    browser\n    external")
    pytester.makeconftest("pytest_plugins = ['tests.support.processor_time']")
    pytester.makepyfile(
        WORK
        + """
def test_slow(): work()

@pytest.mark.slow
def test_a_test_marked_slow_may_be_slow(): work()

def test_waits(): time.sleep(0.2)
"""
    )
    done = pytester.runpytest_inprocess(*PLUGINS)
    done.assert_outcomes(failed=failed, passed=3 - failed)
    done.stdout.fnmatch_lines(["*slowest 10 tests*", "*0.*test_slow*"])
    if failed:
        done.stdout.fnmatch_lines(["*took 0.1 s of processor time, above 0.05 s: make it cheaper*"])
