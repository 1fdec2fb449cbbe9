"""klsa-index warm leaves nothing to compile for whoever comes after."""

from __future__ import annotations

import re
import subprocess
import sys


def warmed():
    command = [sys.executable, "-c", "from klsa_search.cli.index import main; main()", "warm"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(re.search(r"^(\d+) functions compiled", done.stdout, re.MULTILINE)[1])


def test_what_was_compiled_is_not_compiled_again():
    warmed()
    assert warmed() == 0
