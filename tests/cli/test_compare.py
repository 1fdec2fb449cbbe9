import gzip
import json
from typing import get_args

import pytest

from klsa_search.cli import compare as command
from klsa_search.core.parameters import RankerName
from klsa_search.evaluation.measures import MEASURES

RANKERS = list(get_args(RankerName))
OTHERS = [*(name for name in RANKERS if name != "bm25"), "paper"]


@pytest.fixture
def rival(tmp_path):
    """A run that answers the second query of the cars, and not the first."""
    path = tmp_path / "rival.run"
    path.write_text("2 Q0 tyre 2 0.5 x\n2 Q0 road 1 0.7 x\n")
    return path


@pytest.fixture
def twin(beir, tmp_path):
    """The cars once more, under another name."""
    folder = tmp_path / "twin"
    for file in sorted(beir.rglob("*.*")):
        copy = folder / file.relative_to(beir)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(file.read_bytes())
    return folder


def test_compare_a_folder(shell, beir, rival, tmp_path):
    file = tmp_path / "deep" / "found.json"
    done = shell("klsa-eval", "compare", beir, "--run", f"rival={rival}", "--json", file)
    assert done.code == 0
    assert "1 of the 2 judged queries of cars" in done.err
    found = json.loads(file.read_text())["cars"]
    assert (found["measure"], found["baseline"], found["target"]) == ("map", "bm25", "cars")
    assert list(found["systems"]) == ["bm25", *OTHERS, "rival"]
    assert found["systems"]["bm25"]["values"] == {"1": 1.0, "2": 0.0}
    rival_found = found["systems"]["rival"]
    assert rival_found["values"] == {"1": 0.0, "2": 1.0}
    contrast = rival_found["contrast"]
    assert (contrast["wins"], contrast["losses"], contrast["ties"]) == (1, 1, 0)
    assert contrast["randomisation_test"] == {"p": 1.0, "holm": 1.0}
    assert contrast["worst"] == [{"query": "1", "baseline": 1.0, "value": 0.0}]

    lines = done.out.splitlines()
    assert lines[0] == "cars: map over 2 judged queries"
    cells, worst = (line.split() for line in lines if line.startswith("rival"))
    assert cells[1:5] == ["0.5000", "+0.0%", "1.0000", "1.0000"]
    assert cells[5:] == ["1", "1", "0", "50.0%"]
    assert worst == ["rival", "worst", "1:1.00→0.00"]
    assert "Ties differ by at most 0.01" in done.out


def test_another_measure_and_baseline(shell, beir, rival, tmp_path):
    file = tmp_path / "found.json"
    choices = ["--measure", "p@10", "--baseline", "rival", "--run", f"rival={rival}"]
    assert shell("klsa-eval", "compare", beir, *choices, "--json", file).code == 0
    found = json.loads(file.read_text())["cars"]
    assert found["measure"] == "p@10"
    assert list(found["systems"]) == ["rival", *RANKERS, "paper"]
    assert found["systems"]["rival"]["contrast"] is None
    assert found["systems"]["rival"]["mean"] == pytest.approx(0.1 / 2)


def test_a_pattern_finds_the_run_of_each_target(shell, beir, twin, rival, tmp_path):
    (tmp_path / "cars.run").write_bytes(rival.read_bytes())
    (tmp_path / "twin.run").write_bytes(gzip.compress(b"1 Q0 heat 1 1 x\n2 Q0 road 1 1 x\n"))
    file = tmp_path / "found.json"
    pattern = f"rival={tmp_path}/{{target}}.run"
    done = shell("klsa-eval", "compare", beir, twin, "--run", pattern, "--json", file)
    assert done.code == 0
    found = json.loads(file.read_text())
    assert list(found) == ["cars", "twin"]
    assert found["cars"]["systems"]["rival"]["mean"] == 0.5
    assert found["twin"]["systems"]["rival"]["mean"] == 1.0


def test_one_file_cannot_serve_two_targets(shell, beir, twin, rival):
    done = shell("klsa-eval", "compare", beir, twin, "--run", f"rival={rival}")
    assert done.code == 2
    assert "{target}" in done.err


@pytest.mark.parametrize("run", ["rival", "=x.run", "rival=", " =x.run"])
def test_a_run_needs_a_name_and_a_file(shell, beir, run):
    done = shell("klsa-eval", "compare", beir, "--run", run)
    assert done.code == 2
    assert "NAME=FILE" in done.err


def test_names_are_given_once(shell, beir, rival):
    twice = ["--run", f"rival={rival}", "--run", f"rival={rival}"]
    assert shell("klsa-eval", "compare", beir, *twice).code == 2
    done = shell("klsa-eval", "compare", beir, "--run", f"bm25={rival}")
    assert done.code == 2
    assert "another name" in done.err


@pytest.mark.parametrize("wrong", [["--measure", "err"], ["--baseline", "bm52"]])
def test_wrong_usage(shell, beir, wrong):
    assert shell("klsa-eval", "compare", beir, *wrong).code == 2


def test_no_target_is_wrong_usage(shell):
    assert shell("klsa-eval", "compare").code == 2


def test_a_broken_run_is_named_before_anything_is_built(shell, beir, rival, monkeypatch):
    monkeypatch.setattr(command, "temporary_indexes", None)
    rival.write_text("1 Q0 heat 1 1 x\n1 Q0 road 1\n")
    done = shell("klsa-eval", "compare", beir, "--run", f"rival={rival}")
    assert done.code == 1
    assert done.err == (
        f"error: {rival}:2: 4 columns; a run has 6: query Q0 document rank score tag\n"
    )


def test_a_run_that_is_not_there(shell, beir):
    done = shell("klsa-eval", "compare", beir, "--run", "rival=nowhere.run")
    assert done.code == 1
    assert "nowhere.run: cannot be read" in done.err


def test_every_measure_can_be_chosen():
    (option,) = [option for option in command.compare.params if option.name == "measure"]
    assert tuple(option.type.choices) == MEASURES


def test_our_own_run_files_give_our_own_figures(shell, beir, tmp_path):
    runs, file = tmp_path / "runs", tmp_path / "found.json"
    assert shell("klsa-eval", "map", beir, "--run-dir", runs).code == 0
    pattern = f"again={runs}/{{target}}.bm25.run"
    assert shell("klsa-eval", "compare", beir, "--run", pattern, "--json", file).code == 0
    systems = json.loads(file.read_text())["cars"]["systems"]
    assert systems["again"]["values"] == systems["bm25"]["values"]
    assert systems["again"]["contrast"]["ties"] == 2
    assert systems["again"]["contrast"]["randomisation_test"]["p"] == 1.0
