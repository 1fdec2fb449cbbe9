"""/health/live and /health/ready, for supervisors and load balancers."""

import pytest
from starlette.testclient import TestClient

from klsa_search.errors import IndexDamaged
from klsa_search.service.app import create_app
from klsa_search.service.routes import search
from tests.service.conftest import build_tiny


@pytest.fixture
def ready(client_of, home):
    client = client_of(home)

    def ask():
        answer = client.get("/health/ready")
        assert client.get("/health/live").json() == {"ok": True}
        return answer.status_code, answer.json()

    return ask


def test_it_is_ready_while_all_is_served(ready):
    assert ready() == (200, {"ok": True, "served": 2, "failing": 0, "compiling": []})


def test_an_index_that_cannot_be_opened_makes_it_unready(client_of, home):
    (home / "first" / "CURRENT").write_text("000009\n")
    answer = client_of(home).get("/health/ready")
    assert (answer.status_code, answer.json()["failing"], answer.json()["served"]) == (503, 1, 1)


def test_one_whose_newest_generation_cannot_be_opened_goes_on(ready, home):
    assert ready()[0] == 200
    build_tiny(home, "first")
    (home / "first" / "000002" / "manifest.json").write_text("{}")
    assert ready()[0] == 200


def test_one_that_proved_damaged_makes_it_unready(catalog_of, home):
    catalog = catalog_of(home)
    client = TestClient(create_app(catalog))
    assert client.get("/health/ready").status_code == 200
    with pytest.raises(IndexDamaged), catalog.use("first"):
        raise IndexDamaged("a file is cut short: rebuild it")
    assert client.get("/health/ready").json()["failing"] == 1


def test_nothing_to_serve_is_not_ready(client_of, tmp_path):
    answer = client_of(tmp_path).get("/health/ready")
    assert answer.status_code == 503
    assert answer.json() == {"ok": False, "served": 0, "failing": 0, "compiling": []}
    assert client_of(tmp_path).get("/health/live").status_code == 200


def test_compiling_is_told(ready, monkeypatch):
    monkeypatch.setattr(search, "missing_functions", lambda: (["search"], None))
    status, told = ready()
    assert (status, told["ok"], told["compiling"]) == (503, False, ["search"])


def test_what_will_never_be_compiled_keeps_nobody_waiting(ready, monkeypatch):
    monkeypatch.setattr(search, "missing_functions", lambda: ([], "no folder can keep it"))
    assert ready()[0] == 200


@pytest.mark.parametrize("path", ["/health/live", "/health/ready"])
def test_head_is_answered_too(client_of, home, path):
    answer = client_of(home).head(path)
    assert (answer.status_code, answer.content) == (200, b"")
