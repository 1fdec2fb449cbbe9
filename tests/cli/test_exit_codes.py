"""Exit codes: 2 for wrong usage, 1 for a failure of a valid command."""

import json
import os

import pytest

BUILD = ["klsa-index", "build", "cars.jsonl", "--name", "cars"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["klsa-index", "build", "cars.jsonl", "--name", "../c"],
        [*BUILD, "--language", "klingon"],
        [*BUILD, "--stemmer", "axe"],
        [*BUILD, "--coverage", "1", "--latent", "1"],
        ["klsa-index", "info", "../c"],
        ["klsa-eval", "fetch", "bogus"],
    ],
)
def test_wrong_usage_that_the_engine_finds_is_2(shell, cars, arguments):
    done = shell(*arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1


@pytest.mark.parametrize("name", ["alpha", "k1", "gamma"])
def test_a_number_that_is_none_is_named(shell, cars, name):
    done = shell(*BUILD, f"--{name}", "nan")
    assert done.err == f"error: {name} = nan: must be a finite number\n"


def test_a_url_is_to_be_downloaded(built):
    for command in (["build", "--name", "it"], ["add", "cars"], ["plan"]):
        done = built("klsa-index", *command, "https://example.org/a.csv")
        assert (done.code, done.out) == (1, "")
        assert "download the file, as with `curl -LO https://example.org/a.csv`" in done.err


def test_missing_and_damaged_indexes_exit_with_1(shell, built, tmp_path):
    assert shell("klsa-index", "build", "nowhere", "--name", "it").code == 1
    assert shell("klsa-index", "info", "none").code == 1
    assert shell("klsa-search", "none", "coolant").code == 1
    (path,) = (tmp_path / "index" / "cars").glob("0*/manifest.json")
    manifest = json.loads(path.read_text())
    manifest["settings"]["b"] = 7
    path.write_text(json.dumps(manifest))
    done = shell("klsa-search", "cars", "coolant")
    assert done.code == 1
    assert "klsa-index repair cars" in done.err


def test_an_unreadable_directory_is_not_wrong_usage(shell, tmp_path, monkeypatch):
    (tmp_path / "index").mkdir()
    # Tests may run as root, whom no mode keeps out.
    monkeypatch.setattr(os, "access", lambda *_, **__: False)

    def refused(_):
        raise PermissionError(13, "Permission denied", "index")

    monkeypatch.setattr("pathlib.Path.iterdir", refused)
    done = shell("klsa-index", "list")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: index: Permission denied")
