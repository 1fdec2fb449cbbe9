"""Functions of the page that need no browser, tested by the runner of Node.js."""

import shutil
import subprocess

import pytest

from tests.conftest import ROOT


def test_functions_of_the_page():
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node.js is not installed")
    done = subprocess.run(
        [node, "--test", "--test-reporter=tap", "tests/service/page/units/"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout
    assert "# fail 0" in done.stdout
