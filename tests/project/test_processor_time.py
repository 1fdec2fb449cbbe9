"""The processor time that is shown of each test."""

PLUGINS = ("-p", "no:randomly", "-p", "no:cacheprovider")


def test_the_slowest_are_shown_first_by_processor_time(pytester, monkeypatch):
    monkeypatch.setenv("KLSA_TEST_TIMES", "times.txt")
    pytester.makeconftest("pytest_plugins = ['tests.support.processor_time']")
    pytester.makepyfile(
        """
import time

def test_waits(): time.sleep(0.2)

def test_works():
    end = time.process_time() + 0.1
    while time.process_time() < end:
        pass
"""
    )
    done = pytester.runpytest_inprocess(*PLUGINS)
    done.assert_outcomes(passed=2)
    done.stdout.fnmatch_lines(["*slowest 10 tests*", "*0.*test_works*", "*0.0*test_waits*"])
    lines = (pytester.path / "times.txt").read_text().splitlines()
    assert [line.split("::")[-1] for line in lines] == ["test_works", "test_waits"]
