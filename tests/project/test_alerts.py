"""The alerts fire when they should, and only then, as Prometheus evaluates them."""

import shutil
import subprocess

import pytest

from tests.conftest import ROOT

TESTS = ROOT / "tests" / "project" / "alerts.test.yaml"


@pytest.mark.external
@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_alerts_fire_when_they_should():
    tested = subprocess.run(["promtool", "test", "rules", TESTS], capture_output=True, text=True)
    assert tested.returncode == 0, tested.stdout + tested.stderr
