"""A user ID that has no entry, as containers and systemd assign it, needs no home."""

import pwd

import pytest

from klsa_search import build, open_index
from klsa_search.core.installation import cache_folder

VARIABLES = ("HOME", "XDG_CACHE_HOME", "USER", "LOGNAME", "KLSA_COLLECTIONS")


@pytest.mark.parametrize("home", [None, "/"])
def test_builds_and_searches_need_no_home(tmp_path, monkeypatch, shell, home):
    def unnamed(_):
        raise KeyError("getpwuid(): uid not found: 12345")

    monkeypatch.setattr(pwd, "getpwuid", unnamed)
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    if home:
        monkeypatch.setenv("HOME", home)
    assert (cache_folder() is None) == (home is None)
    build(["the pump leaks", "a valve"], name="parts", home=tmp_path).close()
    with open_index(tmp_path / "parts") as index:
        assert [hit.id for hit in index.search("pump")] == ["1"]
        index.add([{"id": "3", "text": "another pump"}])
    assert "another pump" in shell("klsa-search", "parts", "pump", "--home", tmp_path).out
