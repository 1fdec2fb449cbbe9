"""When all tests last passed, long ones included: `python -m tools.long_tests [record | check]`.

`make test-long` records the commit; `make test` prints how old that is; `check` fails if it is more
than 150 commits ago.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
FILE = ROOT / "tests" / "long-passed.txt"
LIMIT = 150  # commits
_NEVER = "never"


def git(*arguments: str) -> str:
    """Return what git prints."""
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def age(recorded: str) -> tuple[str, bool]:
    """Return how long ago the recorded pass is, and whether that is acceptable."""
    commit, _, date = recorded.strip().partition(" ")
    if commit == _NEVER:
        return "all tests together have not passed yet: make test-long", True
    try:
        behind = int(git("rev-list", "--count", f"{commit}..HEAD"))
    except (OSError, subprocess.CalledProcessError):
        return f"all tests passed on {date}, at {commit}, which is not in this repository", False
    said = f"all tests passed on {date}, {behind} commits ago"
    if behind > LIMIT:
        return f"{said}, more than {LIMIT}: make test-long, and commit {FILE.name}", False
    return said, True


def main() -> None:
    """Print the age, after recording a pass if that is asked; exit with 1 if a check fails."""
    if sys.argv[1:] == ["record"]:
        FILE.write_text(git("log", "-1", "--format=%H %cs") + "\n", encoding="utf-8")
    said, recent = age(FILE.read_text(encoding="utf-8"))
    print(said)
    if sys.argv[1:] == ["check"] and not recent:
        sys.exit(1)


if __name__ == "__main__":
    main()
