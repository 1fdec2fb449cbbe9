import json
import sys

import numpy as np
import pytest

from studies.reproduce.__main__ import reproduce
from tests.cli.conftest import Done, run

pytestmark = pytest.mark.slow


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    """A function that runs the command in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KLSA_COLLECTIONS", raising=False)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)

    def call(*arguments):
        with pytest.raises(SystemExit) as left:
            run(reproduce, [str(argument) for argument in arguments])
        return Done(left.value.code, *capsys.readouterr())

    return call


@pytest.fixture
def ionosphere(tmp_path):
    """A folder with a file like Ionosphere: one number tells the class."""
    generator = np.random.default_rng(2)
    values = generator.normal(size=(24, 34)) * 0.1
    values[:, 0] += np.where(np.arange(24) % 2, 2, -2)
    lines = [",".join(map(str, row)) + f",{'bg'[i % 2]}" for i, row in enumerate(values)]
    folder = tmp_path / "data" / "ionosphere"
    folder.mkdir(parents=True)
    (folder / "ionosphere.csv").write_text("header\n" + "\n".join(lines) + "\n")
    return folder.parent


def test_table_chart_and_figures(call, ionosphere, tmp_path):
    out = tmp_path / "new" / "out"
    done = call("ionosphere", "--splits", "1", "--data", ionosphere, "--out", out)
    assert (done.code, done.err) == (0, "")
    first, _, header, *_ = done.out.splitlines()
    assert first == ("ionosphere: LSK, table 1 and figure 1; mean (standard deviation), splits: 1")
    assert header.split() == ["task", "kernel", "measure", "published", "measured"]
    assert "0.049 (0.036)" in done.out
    assert "- Kernel: (k + 1)^degree" in done.out
    value = json.loads((out / "ionosphere.json").read_text())
    assert value["splits"] == 1
    assert (out / "ionosphere.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", ["medline", "diffusion"])
def test_a_missing_collection_says_how_to_get_it(call, name, tmp_path):
    done = call(name, "--data", tmp_path)
    assert done.code == 1
    assert "klsa-eval fetch med" in done.err


def test_wrong_usage(call):
    assert call("iris").code == 2
    assert call("ionosphere", "--splits", "0").code == 2
    for option in (["--min-df", "5"], ["--stratified"]):
        done = call("medline", *option)
        assert done.code == 2
        assert "options of diffusion" in done.err


def test_without_scikit_learn_the_extra_is_named(call, ionosphere, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    done = call("ionosphere", "--data", ionosphere)
    assert done.code == 1
    assert "klsa-search[estimators]" in done.err
