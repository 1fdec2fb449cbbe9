"""The limit of the processor time of a test."""

PLUGINS = ("-p", "no:randomly", "-p", "no:cacheprovider")
WORK = """
import time
import pytest

def work():
    end = time.process_time() + 0.1
    while time.process_time() < end:
        pass
"""


def test_a_test_that_takes_too_long_fails_unless_it_says_so(pytester, monkeypatch):
    monkeypatch.setenv("KLSA_TEST_SECONDS", "0.05")
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
    done.assert_outcomes(failed=1, passed=2)
    done.stdout.fnmatch_lines(["*slowest 10 tests*", "*0.*test_slow*"])
    done.stdout.fnmatch_lines(["*took 0.1 s of processor time, above 0.05 s: make it cheaper*"])
