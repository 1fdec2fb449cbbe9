"""klsa-index rollback, info and delete: output and remaining files."""

import re
from pathlib import Path

import pytest


def build(shell, cars, *options):
    assert shell("klsa-index", "build", cars, "--name", "cars", *options).code == 0


def alpha(shell):
    return shell("klsa-index", "info", "cars", "--json").json["settings"]["alpha"]


def test_back_and_forward(shell, cars):
    build(shell, cars, "--alpha", 0.3)
    build(shell, cars, "--alpha", 0.4)
    done = shell("klsa-index", "rollback", "cars")
    assert (done.code, done.err) == (0, "")
    first, second = done.out.splitlines()
    assert "generation 000001" in first
    assert "4 documents of cars.jsonl, built 2" in first
    command = re.search("klsa-index rollback cars --home index --to 000002", second)
    assert alpha(shell) == 0.3
    assert shell(*command[0].split()).code == 0
    assert alpha(shell) == 0.4


def test_a_damaged_current_names_the_command_that_restores_it(shell, built, tmp_path):
    (tmp_path / "index" / "cars" / "CURRENT").write_text("")
    done = shell("klsa-index", "info", "cars")
    assert done.code == 1
    assert "klsa-index repair cars --home index" in done.err
    done = shell("klsa-index", "rollback", "cars")
    assert (done.code, done.out.count("\n")) == (0, 1)
    assert shell("klsa-index", "verify", "cars").code == 0


def test_info_names_the_generations_that_are_kept(shell, cars, tmp_path):
    build(shell, cars)
    build(shell, cars)
    lines = shell("klsa-index", "info", "cars").out.splitlines()
    assert any(line.split() == ["generation", "000002"] for line in lines)
    assert any(line.startswith("kept 000001  ") and "4 documents" in line for line in lines)
    facts = shell("klsa-index", "info", "cars", "--json").json
    (kept,) = facts["kept"]
    assert facts["generation"] == "000002"
    assert (kept["generation"], kept["documents"], kept["source"]) == ("000001", 4, "cars.jsonl")
    (tmp_path / "index" / "cars" / "000001" / "manifest.json").write_text("{}")
    assert "kept 000001" in shell("klsa-index", "info", "cars").out
    (kept,) = shell("klsa-index", "info", "cars", "--json").json["kept"]
    assert "manifest.json" in kept["error"]


def test_delete_names_what_stays(shell, built, tmp_path):
    (tmp_path / "index" / "cars" / "mine.txt").write_text("mine")
    done = shell("klsa-index", "delete-index", "cars", "--yes")
    assert (done.code, done.out) == (0, "deleted index/cars\n")
    assert done.err.endswith(": index/cars/mine.txt\n")
    assert shell("klsa-index", "delete-index", "cars", "--yes").code == 1
    assert (tmp_path / "index" / "cars" / "mine.txt").read_text() == "mine"


def test_delete_asks_whatever_is_damaged_and_finishes_what_was_begun(
    shell, built, tmp_path, monkeypatch
):
    path = tmp_path / "index" / "cars"
    (path / "CURRENT").rename(path / ".CURRENT.klsa-deleted")
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda _: "n")
    assert shell("klsa-index", "delete-index", "cars").code == 1
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda _: "y")
    assert shell("klsa-index", "delete-index", "cars").code == 0
    assert not path.exists()


def test_a_damaged_index_is_found_deeply_and_repaired(shell, built):
    done = shell("klsa-index", "verify", "cars", "--deep")
    assert done.code == 0
    assert "all checksums match" in done.out
    done = shell("klsa-index", "repair", "cars")
    assert (done.code, "no damage found" in done.out) == (0, True)
    Path("index/cars/000001/lengths.npy").unlink()
    done = shell("klsa-index", "repair", "cars")
    assert done.code == 0
    found, said = done.out.splitlines()
    assert found.startswith("damage found: ")
    assert "lengths.npy` is missing" in found
    assert said == "cars: repaired, 4 documents, generation 000002"
    assert shell("klsa-index", "verify", "cars").code == 0


@pytest.mark.parametrize("left", [(), ("LOCK", "WRITING")])
def test_a_name_without_any_file_is_listed_and_deleted(shell, left):
    folder = Path("index/half")
    folder.mkdir(parents=True)
    for name in left:
        (folder / name).touch()
    assert "half is unfinished" in shell("klsa-index", "list").out.replace("\n", " ")
    done = shell("klsa-index", "delete-index", "half", "--yes")
    assert (done.code, done.out) == (0, "deleted index/half\n")
    assert not folder.exists()
