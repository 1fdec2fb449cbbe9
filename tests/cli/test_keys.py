import json
import re

import pytest

from klsa_search.cli.keys import klsa_keys
from klsa_search.cli.main import run
from klsa_search.service.keys import read_keys


@pytest.fixture(autouse=True)
def _home(tmp_path, monkeypatch):
    monkeypatch.setenv("KLSA_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("sys.excepthook", None)


@pytest.fixture
def keys(capsys):
    """Run klsa-keys: its code, and what it printed."""

    def ask(*arguments):
        with pytest.raises(SystemExit) as left:
            run(klsa_keys, arguments)
        return left.value.code, *capsys.readouterr()

    return ask


def test_a_key_is_made_listed_and_revoked(keys, tmp_path):
    code, token, told = keys("add", "web")
    assert (code, told.count("\n")) == (0, 1)
    assert re.fullmatch(r"klsa_[0-9a-f]{8}_[\w-]{43}\n", token)
    code, _, told = keys(
        "add", "feed", "--scope", "write", "--index", "a", "--index", "b", "--days", "30"
    )
    assert (code, told) == (0, "")
    code, table, _ = keys("list")
    assert re.search(r"web\s+key\s+search\s+all\s.*never", table)
    assert re.search(r"feed\s+key\s+write\s+a, b\s.*\d{4}-\d\d-\d\d \d\d:\d\d UTC", table)
    assert token.strip()[14:] not in table
    listed = json.loads(keys("list", "--json")[1])
    assert [each["name"] for each in listed] == ["web", "feed"]
    assert set(listed[0]) == {"name", "user", "scopes", "indexes", "created", "expires", "used"}
    assert keys("revoke", "web")[:2] == (0, "revoked web\n")
    assert [key.name for key in read_keys(tmp_path / "home" / ".keys.json")] == ["feed"]
    assert keys("revoke", "feed")[0] == 0
    assert "has no keys" in keys("list")[1]


def test_a_user_is_made_and_listed(keys):
    code, password, _ = keys("add", "anna", "--user", "--scope", "write")
    assert (code, len(password.strip())) == (0, 23)
    assert re.search(r"anna\s+user\s+write", keys("list")[1])
    assert keys("revoke", "anna")[:2] == (0, "revoked anna\n")


def test_the_file_may_be_anywhere(keys, tmp_path, monkeypatch):
    monkeypatch.setenv("KLSA_KEYS", str(tmp_path / "elsewhere.json"))
    assert keys("add", "web")[0] == 0
    assert keys("list", "--keys", str(tmp_path / "elsewhere.json"))[0] == 0


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("list",), 1, "no API key is required"),
        (("revoke", "web"), 2, "has no key 'web'"),
        (("add", "a b"), 2, "is not a name of a key"),
        (("add", "web", "--index", "no/index"), 2, "is not an index name"),
        (("add", "web", "--scope", "all"), 2, "'all' is not one of"),
    ],
)
def test_wrong_usage_is_explained(keys, arguments, code, told):
    found = keys(*arguments)
    assert found[:2] == (code, "")
    assert told in found[2]
