"""/health/live and /health/ready, for supervisors and load balancers."""

import pytest

from klsa_search.errors import StoreError
from klsa_search.service.admission import Writes
from klsa_search.service.background import Replication
from klsa_search.service.jobs import Jobs
from klsa_search.service.keys import add_key
from klsa_search.service.middleware.auth import Keys
from klsa_search.service.open_indexes import OpenIndexes
from tests.service.conftest import build_tiny
from tests.support.application import app_of_indexes
from tests.support.client import AppClient


@pytest.fixture
def ready(client_of, home):
    client = client_of(home)

    def ask():
        answer = client.get("/health/ready")
        assert client.get("/health/live").json() == {"ok": True}
        return answer.status_code, answer.json()

    return ask


def test_the_service_is_ready_while_all_indexes_are_served(ready):
    assert ready() == (200, {"ok": True, "served": 2, "failing": 0})


def test_an_index_that_cannot_be_opened_makes_it_unready(client_of, home):
    (home / "first" / "CURRENT").write_text("000009\n")
    answer = client_of(home).get("/health/ready")
    assert (answer.status_code, answer.json()["failing"], answer.json()["served"]) == (503, 1, 1)


def test_one_whose_newest_generation_cannot_be_opened_goes_on(ready, home):
    assert ready()[0] == 200
    build_tiny(home, "first")
    (home / "first" / "000002" / "manifest.json").write_text("{}")
    assert ready()[0] == 200


def test_a_service_without_indexes_is_ready_to_create_one(client_of, tmp_path):
    client = client_of(tmp_path)
    answer = client.get("/health/ready")
    assert answer.status_code == 200
    assert answer.json() == {"ok": True, "served": 0, "failing": 0}
    health = client.get("/health")
    assert (health.status_code, health.json()["ok"], health.json()["indexes"]) == (200, True, [])


def test_a_follower_without_indexes_is_not_ready(indexes_of, tmp_path):
    follower = Replication("follow", tmp_path, [])
    client = AppClient(app_of_indexes(indexes_of(tmp_path), replications=[follower]))
    assert client.get("/health").status_code == 503
    assert client.get("/health/ready").status_code == 503
    assert client.get("/health/live").status_code == 200


def test_health_is_degraded_while_writes_fail(home, tmp_path, monkeypatch, caplog):
    key = add_key(tmp_path / "keys.json", "all", ["search", "write"])
    with OpenIndexes(home, interval=0) as open_indexes:
        keys = Keys(tmp_path / "keys.json", ())
        client = AppClient(app_of_indexes(open_indexes, writes=Writes(), keys=keys))
        with_key = {"Authorization": f"Bearer {key}"}

        def health(**headers):
            answer = client.get("/health", headers=headers)
            assert (answer.status_code, answer.json()["ok"]) == (200, True)
            return answer.json()["degraded"], answer.json()["faults"]

        def put(name):
            path = f"/indexes/{name}/documents/new"
            return client.put(path, json={"text": "new"}, headers=with_key).status_code

        def full_disk(*_, **__):
            raise StoreError(f"cannot write `{home}/first` (No space left on device); free space")

        assert health(**with_key) == (False, [])
        monkeypatch.setattr("klsa_search.search.index.Index.write", full_disk)
        assert put("first") == put("first") == 503
        reason = "writes to index `first` fail: cannot write `{}` (No space left"
        degraded, (fault,) = health(**with_key)
        assert degraded
        assert fault.startswith(reason.format("first"))
        assert caplog.text.count(reason.format(f"{home}/first")) == 1
        assert health() == (True, [])  # without a key, neither paths nor names
        monkeypatch.undo()
        assert put("second") == 200
        assert health()[0]
        assert put("first") == 200
        assert health() == health(**with_key) == (False, [])
        assert "writes to index `first` work again" in caplog.text


def test_health_is_degraded_by_a_damaged_index(client_of, home):
    (home / "first" / "CURRENT").write_text("000009\n")
    health = client_of(home).get("/health").json()
    assert (health["ok"], health["degraded"]) == (True, True)


def test_health_without_a_key_has_no_paths(client_of, home, tmp_path):
    add_key(tmp_path / "keys.json", "all", ["search"])
    (home / "catalog.db").write_text("{")
    (home / "first" / "CURRENT").write_text("000009\n")
    with OpenIndexes(home, interval=0) as open_indexes:
        app = app_of_indexes(
            open_indexes,
            keys=Keys(tmp_path / "keys.json", ()),
            jobs=Jobs(open_indexes, (), share=1),
        )
        health = AppClient(app).get("/health")
    assert health.json()["degraded"]
    assert str(home) not in health.text
    assert "first" not in health.text
