"""Functions of the page that need no browser, tested by the runner of Node.js."""

import json
import re
import shutil

import pytest

from klsa_search.core.progress import PHASES
from tests.conftest import ROOT
from tests.support.processes import run


def test_functions_of_the_page():
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node.js is not installed")
    done = run(node, "--test", "--test-reporter=tap", "tests/service/page/units/", cwd=ROOT)
    assert done.returncode == 0, done.stdout
    assert "# fail 0" in done.stdout


def test_the_page_has_the_phases_of_a_build():
    page = ROOT / "klsa_search" / "service" / "page" / "admin" / "refit.js"
    listed = re.search(r"^const PHASES = (\[.*\]);$", page.read_text(), re.MULTILINE)
    assert tuple(json.loads(listed[1])) == PHASES
