"""The notebooks run, and their stored outputs are of the kind that the cells produce."""

import contextlib
import io
import json

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.slow

FOLDER = ROOT / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


@pytest.fixture
def plots(tmp_path, monkeypatch):
    """Make a folder next to what the notebooks read, as theirs is; no window opens."""
    for name in ("docs", "studies"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "notebooks").mkdir()
    monkeypatch.chdir(tmp_path / "notebooks")
    plt = pytest.importorskip("matplotlib.pyplot")
    before = plt.get_backend()
    plt.switch_backend("agg")
    yield plt
    plt.close("all")
    plt.switch_backend(before)


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in NOTEBOOKS])
def test_every_cell_runs_and_shows_its_kind(path, plots):
    names = {}
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] != "code":
            continue
        drawn = len(plots.get_fignums())
        with contextlib.redirect_stdout(io.StringIO()) as said:
            exec("".join(cell["source"]), names)
        kinds = {output["output_type"] for output in cell["outputs"]}
        assert ("stream" in kinds) == bool(said.getvalue())
        assert ("display_data" in kinds) == (len(plots.get_fignums()) > drawn)


def test_there_are_notebooks():
    assert len(NOTEBOOKS) == 3


def numbers(cells):
    return [float(cell.replace("−", "-")) for cell in cells]


def test_the_page_on_ranking_has_the_figures_of_the_notebook():
    page = (ROOT / "docs" / "explanations" / "how-it-ranks.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.count("|") == 11]
    notebook = json.loads((FOLDER / "latent-semantics-by-hand.ipynb").read_text(encoding="utf-8"))
    printed = [
        line.split()
        for cell in notebook["cells"]
        for output in cell.get("outputs", ())
        for line in output.get("text", ())
    ]
    kernel = [row for row in rows if row[0][0] in "cm" and row[1] != "c2"]
    in_notebook = [row for row in printed if len(row) == 10 and row[-1][0].isdigit()]
    assert [numbers(row[1:]) for row in kernel] == [numbers(row[1:]) for row in in_notebook]
    heading = next(row for row in rows if row[:2] == ["c1", "c2"])
    ranked = [row for row in printed if row[:1] and row[0] in heading and row[3].isalpha()]
    by_id = {row[0]: tuple(numbers(row[1:3])) for row in ranked}
    bm25, score = (numbers(row[1:]) for row in rows if row[0] in ("BM25", "score"))
    assert dict(zip(heading, zip(bm25, score, strict=True), strict=True)) == by_id
