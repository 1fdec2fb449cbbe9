"""When the long tests last passed: `python -m tools.long_tests [record TARGET | check]`.

Each of the targets records the commit at which it passed; `make test` prints how old the records
are; `check` fails if one is more than 150 commits old. Without a record, or without its commit (as
in a shallow clone), it only prints that.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
FILE = ROOT / "tests" / "long-passed.txt"
TARGETS = ("test-long", "test-connect", "test-cluster")
LIMIT = 150  # commits


def git(*arguments: str) -> str:
    """Return what git prints."""
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def read() -> dict[str, tuple[str, str]]:
    """Return commit and date of the last pass of each target that has passed."""
    rows = [line.split() for line in FILE.read_text(encoding="utf-8").splitlines()]
    return {target: (commit, date) for target, commit, date in rows}


def record(target: str) -> None:
    """Record that a target passed at the commit that is checked out."""
    commit, date = git("log", "-1", "--format=%H %cs").split()
    passed = read() | {target: (commit, date)}
    rows = [" ".join((name, *passed[name])) for name in TARGETS if name in passed]
    FILE.write_text("\n".join(rows) + "\n", encoding="utf-8")


def age(target: str) -> tuple[str, bool]:
    """Return how long ago a target passed, and whether that is too long ago."""
    if target not in (passed := read()):
        text = f"make {target} has never passed as a whole"
        return f"{text}: run it and commit tests/{FILE.name}", False
    commit, date = passed[target]
    try:
        behind = int(git("rev-list", "--count", f"{commit}..HEAD"))
    except (OSError, subprocess.CalledProcessError):
        return f"make {target} passed on {date} at {commit}, which this repository lacks", False
    text = f"make {target} passed on {date}, {behind} commits ago"
    if behind > LIMIT:
        return f"{text}, more than {LIMIT}: run it and commit tests/{FILE.name}", True
    return text, False


def main() -> None:
    """Record a pass if that is asked, print all ages, and exit with 1 if a check fails."""
    if sys.argv[1:2] == ["record"]:
        record(sys.argv[2])
    ages = [age(target) for target in TARGETS]
    print("\n".join(text for text, _ in ages))
    if sys.argv[1:] == ["check"] and any(is_old for _, is_old in ages):
        sys.exit(1)


if __name__ == "__main__":
    main()
