"""The notebooks run, and have been run: what a cell prints or draws stands below it."""

import contextlib
import io
import json

import matplotlib.pyplot as plt
import pytest

from tests.conftest import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


@pytest.fixture
def beside(tmp_path, monkeypatch):
    """A folder that lies beside what the notebooks read, as theirs does; no window opens."""
    for name in ("docs", "studies"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "notebooks").mkdir()
    monkeypatch.chdir(tmp_path / "notebooks")
    before = plt.get_backend()
    plt.switch_backend("agg")
    yield
    plt.close("all")
    plt.switch_backend(before)


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in NOTEBOOKS])
def test_every_cell_runs_and_shows_its_kind(path, beside):
    names = {}
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] != "code":
            continue
        drawn = len(plt.get_fignums())
        with contextlib.redirect_stdout(io.StringIO()) as said:
            exec("".join(cell["source"]), names)
        kinds = {output["output_type"] for output in cell["outputs"]}
        assert ("stream" in kinds) == bool(said.getvalue())
        assert ("display_data" in kinds) == (len(plt.get_fignums()) > drawn)


def test_there_are_notebooks():
    assert len(NOTEBOOKS) == 2
