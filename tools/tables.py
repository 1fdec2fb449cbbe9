"""Tables of figures in the documentation, generated from `results/`.

    python -m tools.tables           write every table again
    python -m tools.tables --check   exit with 1 if a table differs from its file

`results/NAME.json` has the figures as they are printed, and what is needed to measure them again:

    {"command": "python -m benchmarks.growth ...", "commit": "a259922", "date": "2026-11-21",
     "machine": "two cores of an AMD EPYC server, 24 GiB, Python 3.11",
     "columns": ["documents", "build s"], "rows": [["10,000", "2.5"]]}

A page shows it between `<!-- results: NAME -->` and `<!-- end results -->`.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results"
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
NO_ZERO = re.compile(r"(?<![\w.])\.(?=\d)")
SPACED = re.compile(r"(?<=\d) %")
SHOWN = re.compile(r"(<!-- results: (?P<name>\S+) -->\n).*?(<!-- end results -->)", re.DOTALL)


def rendered(name: str) -> str:
    """Return the table of `results/NAME.json` in Markdown: 0.5 for .5, and 7% for 7 %."""
    result = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    lines = [result["columns"], ["---"] * len(result["columns"]), *result["rows"]]
    table = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    return SPACED.sub("%", NO_ZERO.sub("0.", table))


def updated(text: str) -> str:
    """Return a page with each of its tables as rendered."""
    return SHOWN.sub(lambda found: found[1] + rendered(found["name"]) + found[3], text)


def main() -> None:
    """Write all pages, or compare them."""
    pages = {page: page.read_text(encoding="utf-8") for page in PAGES}
    changed = {page: new for page, old in pages.items() if (new := updated(old)) != old}
    if "--check" in sys.argv:
        sys.exit(1 if changed else 0)
    for page, text in changed.items():
        page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
