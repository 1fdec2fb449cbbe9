"""Write the blocking client from the asynchronous one: python -m tools.blocking_client."""

import re
import subprocess
import sys

from tests.conftest import ROOT

SOURCE = ROOT / "klsa_search" / "client" / "asynchronous.py"
TARGET = ROOT / "klsa_search" / "client" / "blocking.py"

HEADER = '''"""The blocking client.

Generated from `asynchronous.py` by: python -m tools.blocking_client
"""'''

SUBSTITUTIONS = (
    (r'^"""The asynchronous client."""', HEADER),
    (r"; for the coroutines of one event loop", "; usable by several threads"),
    (r" +>>> import asyncio\n", ""),
    (r"asyncio\.run\(([^()]+\([^()]*\))\)", r"\1"),
    (r"asyncio", "time"),
    (r" \| AsyncIterable\[Record\]", ""),
    (r"stream_records\((\w+)\)", r"\1"),
    (r"__a(enter|exit)__", r"__\1__"),
    (r"\baclose\b", "close"),
    (r"\bAsync(?=[A-Z])", ""),
    (r"\basync ", ""),
    (r"\bawait ", ""),
)
"""Regular expressions and what replaces their matches, in this order."""


def blocking_client():
    """Return the module of the blocking client."""
    code = SOURCE.read_text(encoding="utf-8")
    for pattern, replacement in SUBSTITUTIONS:
        code = re.sub(pattern, replacement, code)
    for command in (["check", "--fix", "--quiet", "--select", "F401,I"], ["format"]):
        code = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--stdin-filename", TARGET, "-"],
            input=code,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    return code


if __name__ == "__main__":
    TARGET.write_text(blocking_client(), encoding="utf-8")
