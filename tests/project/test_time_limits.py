"""No test judges time, and every wait has a limit."""

from __future__ import annotations

import ast

import pytest
from hypothesis import HealthCheck, settings

from tests.support.sources import nodes
from tests.support.waiting import PATIENCE, wait_until

CLOCKS = {"perf_counter", "monotonic", "process_time", "thread_time"}


def test_examples_take_the_time_they_need():
    assert settings().deadline is None
    assert HealthCheck.too_slow in settings().suppress_health_check


def test_profiles_alone_say_how_many_examples_there_are():
    own = {
        path.name
        for path, node in nodes("tests", ast.keyword)
        if node.arg == "max_examples" and isinstance(node.value, ast.Constant)
    }
    assert own == {"conftest.py"}


def test_whoever_waits_has_patience():
    impatient = [
        f"{path}:{node.value.lineno}"
        for path, node in nodes("tests", ast.keyword)
        if node.arg in ("timeout", "deadline")
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, int | float)
        and node.value.value < 30
    ]
    assert not impatient


def test_only_who_waits_reads_a_clock():
    read = {path.name for path, node in nodes("tests", ast.Attribute) if node.attr in CLOCKS}
    assert read <= {"forked.py", "test_loop_budget.py", "waiting.py"}  # one computes for so long


def test_only_who_waits_sleeps():
    sleepers = {
        path.name
        for path, node in nodes("tests", ast.Call)
        if ast.unparse(node.func) == "time.sleep"
    }
    assert sleepers <= {"forked.py", "waiting.py", "openapi_examples.py"}  # one is slow to be late


COMMANDS = {"subprocess.run", "subprocess.check_output", "subprocess.check_call", "subprocess.call"}


@pytest.mark.parametrize("folder", ["tests", "tools", "benchmarks", "studies"])
def test_everything_that_waits_has_a_limit(folder):
    """Processes, threads, events and barriers; an event loop's own events end with it."""
    unlimited = [
        f"{path}:{node.lineno}"
        for path, node in nodes(folder, ast.Call)
        if not any(keyword.arg == "timeout" for keyword in node.keywords)
        and (
            ast.unparse(node.func) in COMMANDS
            or (
                isinstance(node.func, ast.Attribute)
                and node.func.attr in ("wait", "communicate", "join")
                and not node.args
                and not node.keywords
                and not ast.unparse(node.func).startswith(("asyncio.", "ChecksumCheck("))
            )
        )
    ]
    assert not unlimited


def test_loops_that_only_wait_have_a_limit():
    """Those that do nothing but wait belong to `wait_until`."""
    polling = [
        f"{path}:{node.lineno}"
        for path, node in nodes("tests", ast.While)
        if isinstance(node.test, ast.UnaryOp | ast.Compare)
        and len(node.body) == 1
        and isinstance(node.body[0], ast.Pass | ast.Expr)
        and path.name not in ("waiting.py", "test_loop_budget.py")
    ]
    assert not polling


def test_waiting_ends_with_the_event_or_says_that_it_never_came(monkeypatch):
    answers = iter([False, False, True])
    wait_until(lambda: next(answers))
    monkeypatch.setattr("tests.support.waiting.PATIENCE", 0.0)
    with pytest.raises(AssertionError, match="has not come"):
        wait_until(lambda: False)
    assert PATIENCE >= 30
