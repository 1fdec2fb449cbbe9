"""Processor time of each test: the slowest are shown; none fails for its time.

Only the test itself counts, not its fixtures. `KLSA_TEST_TIMES` names a file for the times of all.
"""

import os
from collections.abc import Iterator
from typing import Any

import pytest

_SHOWN = 10
_PROPERTY = "processor_seconds"


def _used() -> float:
    """Return the processor seconds of this process and its children that have ended."""
    return sum(os.times()[:4])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[Any]:
    before = _used()
    try:
        return (yield)
    finally:
        item.user_properties.append((_PROPERTY, _used() - before))


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
