"""Every table of measured figures in the documentation has a file with the command that made it."""

import json
import re

from tests.conftest import ROOT
from tools.tables import PAGES, RESULTS, SHOWN, rendered, updated

NO_FIGURES_MEASURED = {
    "docs/explanations/how-it-ranks.md",  # worked out by hand, and in a notebook that runs
    "docs/guides/capacity-planning.md",  # rounded from the tables of performance.md
    "docs/reference/limits.md",
    "docs/reference/query-syntax.md",  # costs of typing errors, which are constants
}
"""Pages whose tables of numbers describe an example, an estimate or limits."""
NUMBER = re.compile(r"\s*[*+−±~-]*\.?\d")
TABLE = re.compile(r"^(?:\|.*\|\n)+", re.MULTILINE)


def test_tables_are_as_generated():
    texts = {page: page.read_text(encoding="utf-8") for page in PAGES}
    stale = [page for page, text in texts.items() if updated(text) != text]
    assert stale == [], "run: python -m tools.tables"


def has_figures(table):
    """Whether more than half of the cells that are not labels begin with a number."""
    rows = [line.strip("|\n").split("|")[1:] for line in table.splitlines()[2:]]
    cells = [cell for row in rows for cell in row if cell.strip()]
    return len(rows) > 1 and 2 * sum(bool(NUMBER.match(cell)) for cell in cells) > len(cells)


def test_no_table_of_figures_lacks_its_file():
    for page in PAGES:
        name = page.relative_to(ROOT).as_posix()
        if name not in NO_FIGURES_MEASURED:
            left = SHOWN.sub("", page.read_text(encoding="utf-8"))
            found = [table for table in TABLE.findall(left) if has_figures(table)]
            assert not found, f"{name}: put these figures into results/:\n{found[0]}"


def test_every_file_is_shown_and_says_how_it_was_made():
    shown = {found["name"] for page in PAGES for found in SHOWN.finditer(page.read_text())}
    assert {path.stem for path in RESULTS.glob("*.json")} == shown
    for name in shown:
        result = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
        assert list(result) == ["command", "commit", "date", "machine", "columns", "rows"], name
        assert result["command"], name
        assert result["machine"], name
        assert re.fullmatch(r"[0-9a-f]{7,40}", result["commit"]), name
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", result["date"]), name
        assert {len(row) for row in result["rows"]} == {len(result["columns"])}, name
        assert rendered(name).count("\n") == len(result["rows"]) + 2, name
