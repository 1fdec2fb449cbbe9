"""`make run`, as the README shows it, in a copy of the repository that is installed already."""

import json
import os
import shutil
import signal
import sys
from urllib.request import urlopen

import pytest

from tests.conftest import ROOT
from tests.support.services import served_by
from tests.support.waiting import PATIENCE

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("make") is None, reason="needs a shell with make"),
]


def test_make_run_builds_and_serves_the_docstrings_of_python(tmp_path):
    shutil.copy(ROOT / "Makefile", tmp_path)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    command = ["make", f"VENV={sys.prefix}", "-o", f"{sys.prefix}/.installed", "run"]
    with served_by(command, tmp_path) as service:
        with urlopen(f"{service.address}/search?q=read+lines+of+a+file", timeout=PATIENCE) as found:
            answer = json.load(found)
        assert answer["index"] == "python-docs"
        assert answer["hits"]
        os.killpg(service.process.pid, signal.SIGINT)  # Ctrl-C
        printed, _ = service.process.communicate(timeout=PATIENCE)
        assert "Traceback" not in printed
    assert (tmp_path / "index" / "python-docs" / "CURRENT").exists()
