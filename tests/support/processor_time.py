"""Processor time of each test: the slowest are shown, and tests without a marker have a limit.

`KLSA_TEST_SECONDS`, which `make test` sets, is the limit. Only the test itself counts, not its
fixtures. `make test` runs a test above the limit a second time, which is the one that counts: then
everything is imported and cached that the test was the first to use.
"""

import os
from collections.abc import Iterator
from typing import Any

import pytest

_SHOWN = 10
_PROPERTY = "processor_seconds"
_FREE = ("smoke", "slow", "browser", "external")


def _used() -> float:
    """Return the processor seconds of this process and its children that have ended."""
    return sum(os.times()[:4])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[Any]:
    limit = float(os.environ.get("KLSA_TEST_SECONDS", "inf"))  # before a test changes it
    before = _used()
    try:
        done = yield
    finally:
        used = _used() - before
        item.user_properties.append((_PROPERTY, used))
    if used > limit and not any(map(item.get_closest_marker, _FREE)):
        pytest.fail(
            f"took {used:.1f} s of processor time, above {limit:g} s: make it cheaper, or mark it "
            "slow if what it tests needs that",
            pytrace=False,
        )
    return done


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(_Summary())


class _Summary:
    def __init__(self) -> None:
        self._times: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            self._times[report.nodeid] = dict(report.user_properties).get(_PROPERTY, 0.0)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        slowest = sorted(self._times.items(), key=lambda test: -test[1])
        if path := os.environ.get("KLSA_TEST_TIMES"):
            with open(path, "w", encoding="utf-8") as stream:
                stream.writelines(f"{seconds:.3f}\t{name}\n" for name, seconds in slowest)
        terminalreporter.section(f"slowest {_SHOWN} tests, in processor seconds")
        for name, seconds in slowest[:_SHOWN]:
            terminalreporter.write_line(f"{seconds:8.2f}  {name}")
