"""klsa-index alias: output, and searches through an alias."""

import shutil

import pytest


@pytest.fixture
def shell(built):
    """Return the shell in a folder with two indexes."""
    shutil.copytree("index/cars", "index/other")
    return built


def test_an_alias_is_made_searched_moved_listed_and_removed(shell):
    assert shell("klsa-index", "alias", "live", "cars").out == "live -> cars\n"
    assert shell("klsa-search", "live", "tyre", "--json").json["index"] == "cars"
    assert shell("klsa-index", "alias", "live", "other").code == 0
    assert shell("klsa-search", "live", "tyre", "--json").json["index"] == "other"
    assert shell("klsa-index", "alias", "--json").json == [{"name": "live", "index": "other"}]
    assert "live" in shell("klsa-index", "alias").out
    assert shell("klsa-index", "alias", "live", "--delete").out == "deleted alias live\n"
    assert "no aliases" in shell("klsa-index", "alias").out
    assert shell("klsa-search", "live", "tyre").code == 1


def test_invalid_aliases_are_refused(shell, cars):
    assert shell("klsa-index", "alias", "live", "cars").code == 0
    for command in (
        ("build", cars, "--name", "live"),
        ("info", "live"),
        ("delete-index", "live", "--yes"),
        ("alias", "cars", "other"),
        ("alias", "more", "live"),
        ("alias", "more", "nothing"),
        ("alias", "nothing", "--delete"),
    ):
        done = shell("klsa-index", *command)
        assert done.code in (1, 2), done
        assert "alias" in done.err or "nothing" in done.err
    for command in (("live",), ("live", "cars", "--delete"), ("--delete",)):
        assert shell("klsa-index", "alias", *command).code == 2
