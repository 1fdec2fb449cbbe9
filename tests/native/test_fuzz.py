"""The fuzzer of the extension module calls all of it; `make fuzz` runs it for long."""

import sys
from pathlib import Path

import pytest

from tests.support.processes import run

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_damaged_arguments_answer_or_raise(tmp_path):
    command = [sys.executable, "-m", "tools.fuzz_native", "--inputs", "10000", "--workers", "1"]
    done = run(*command, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "10,000 inputs without a crash" in done.stdout
    assert "never answered" not in done.stdout
