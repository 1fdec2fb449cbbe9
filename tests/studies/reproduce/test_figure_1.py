import sys

import pytest

from studies.reproduce import figure_1
from studies.reproduce.figure_1 import ALPHAS, SEEDS, best_of, draw

LINES = {z: [0.3 + alpha * (0.1 - z / 500) for alpha in ALPHAS] for z in SEEDS}


def test_best_is_the_highest_and_the_first_of_equals():
    assert best_of(LINES) == (1, 1.0, pytest.approx(0.398))
    assert best_of({1: [0.2] * 11, 5: [0.2] * 11}) == (1, 0, 0.2)


def test_the_same_points_are_drawn_as_the_same_bytes(tmp_path):
    for name in ("1.png", "2.png"):
        draw("tiny", 0.3, 0.28, LINES, tmp_path / name)
    first, second = ((tmp_path / name).read_bytes() for name in ("1.png", "2.png"))
    assert first == second
    assert len(first) > 5000


def test_a_flat_figure_can_be_drawn(tmp_path):
    draw("c", 0.0, 0.0, dict.fromkeys(SEEDS, [0.0] * 11), tmp_path / "f.svg")


@pytest.mark.slow
def test_the_figure_of_a_collection(tmp_path, monkeypatch, capsys):
    folder = tmp_path / "med"
    folder.mkdir()
    (folder / "MED.ALL").write_text(".I 1\n.W\nheat\n.I 2\n.W\ncold\n.I 3\n.W\nrain\n")
    (folder / "MED.QRY").write_text(".I 1\n.W\nheat\n")
    (folder / "MED.REL").write_text("1 0 1 1\n")
    out = tmp_path / "figure.svg"
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    with pytest.raises(SystemExit) as left:
        figure_1.main(["med", "--data", str(tmp_path), "--out", str(out)])
    assert left.value.code == 0
    assert "best at z = 1, α = 0: 1.0000; BM25 1.0000" in capsys.readouterr().out
    assert out.read_text().startswith("<?xml")
