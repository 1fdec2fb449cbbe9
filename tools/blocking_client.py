"""Write the blocking client, from the asynchronous one: python -m tools.blocking_client.

`unasync` leaves strings as they are, and so the examples of docstrings.
"""

import re
import subprocess
import sys

from tests.conftest import ROOT

CLIENT = ROOT / "klsa_search" / "client"
ASYNCHRONOUS, BLOCKING = CLIENT / "asynchronous.py", CLIENT / "blocking.py"
RULES = {
    "The asynchronous client": "The blocking client",
    "makes the blocking client of it": "makes it of the asynchronous client",
    "for the coroutines of one event loop": "usable by several threads",
    r" +>>> import asyncio\n": "",
    r"asyncio\.run\((\w+\(.*?\))\)": r"\1",
    r"await asyncio\.to_thread\(([\w.]+), (\w+)\)": r"\1(\2)",
    "asyncio": "time",
    r"Coroutine\[Any, Any, T\]": "T",
    "stream_records": "records_of",
    r" \| AsyncIterable\[Record\]": "",
    r"async for (\w+) in (.*):\n +yield \1\n": r"yield from \2\n",
    r"\b(async|await) ": "",
    r"\bAsync(?=[A-Z])": "",
    r"\b__a(enter|exit)__": r"__\1__",
    r"\.a(close|read|iter_bytes)\b": r".\1",
}
"""Replaced patterns, in this order."""


def text():
    """Return the blocking client: unused names and line breaks are as the linter wants them."""
    written = ASYNCHRONOUS.read_text(encoding="utf-8")
    for pattern, replacement in RULES.items():
        written = re.sub(pattern, replacement, written)
    ruff = [sys.executable, "-m", "ruff"]
    for command in (["check", "--fix-only"], ["format"]):
        arguments = [*ruff, *command, "--quiet", "--stdin-filename", BLOCKING, "-"]
        done = subprocess.run(arguments, input=written, capture_output=True, text=True, check=True)
        written = done.stdout
    return written


if __name__ == "__main__":
    BLOCKING.write_text(text(), encoding="utf-8")
