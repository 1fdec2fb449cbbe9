"""Indexes that are created, changed and deleted over HTTP."""

import pytest

from klsa_search.core.child_processes import command_of
from klsa_search.service.admission import Writes
from klsa_search.service.application import CHILD
from klsa_search.service.jobs import Jobs
from klsa_search.service.keys import add_key
from klsa_search.service.middleware.auth import Keys
from tests.support.application import app_of_indexes
from tests.support.client import AppClient

from .conftest import build_tiny, failure_of

BIKES = [
    {"id": "1", "title": "Red bicycle", "text": "A fast road bicycle.", "price": 300},
    {"id": "2", "title": "Blue bicycle", "text": "A bicycle for children.", "price": 90},
    {"id": "3", "title": "Helmet", "text": "Protects the heads of cyclists.", "price": 40},
]


@pytest.fixture
def service(indexes_of, tmp_path):
    """A client of a service without an index, and its refits."""
    open_indexes = indexes_of(tmp_path)
    with Jobs(
        open_indexes, command_of(CHILD, "refit", "--home", str(tmp_path)), share=0.5
    ) as refits:
        refits.watch.stop()
        yield AppClient(app_of_indexes(open_indexes, writes=Writes(), jobs=refits)), refits


@pytest.mark.slow
def test_an_index_begins_empty_and_learns_from_what_is_added(service):
    client, refits = service
    assert client.get("/indexes").json()["indexes"] == []
    assert client.get("/search", params={"q": "red"}).status_code == 503
    created = client.post("/indexes", json={"name": "shop", "settings": {"fields": ["price"]}})
    assert created.status_code == 201, created.text
    assert created.json()["documents"] == 0
    assert created.json()["settings"]["fields"] == ["price"]
    assert client.get("/search", params={"q": "red"}).json()["total"] == 0
    assert client.post("/indexes/shop/documents", json=BIKES).json()["added"] == 3
    found = client.get("/search", params={"q": "bicycle", "filter": "price < 100"}).json()
    assert [hit["id"] for hit in found["hits"]] == ["2"]
    assert refits.run_due()
    details = client.get("/indexes/shop").json()
    assert (details["generation"], details["counts"]["documents"]) == ("000002", 3)
    assert details["drift"]["changed_share"] == 0


@pytest.mark.slow
def test_query_settings_change_at_once_and_survive_a_refit(service):
    client, refits = service
    client.post("/indexes", json={"name": "shop"})
    client.post("/indexes/shop/documents", json=BIKES)
    changes = {"ranker": "bm25", "page_title": "Bikes"}
    done = client.patch("/indexes/shop", json={"settings": changes})
    assert (done.status_code, done.json()) == (200, {"index": "shop", "job": None})
    assert refits.history().jobs == []
    for _ in range(2):
        (listed,) = client.get("/indexes").json()["indexes"]
        details = client.get("/indexes/shop").json()
        assert (listed["title"], details["settings"]["ranker"]) == ("Bikes", "bm25")
        assert client.get("/search", params={"q": "red"}).json()["ranker"] == "bm25"
        client.post("/indexes/shop/refit", json={})
        assert refits.run_due()
    assert details["generation"] == "000002"


def test_a_refit_and_a_change_of_the_same_setting_exclude_each_other(service):
    client, _ = service
    client.post("/indexes", json={"name": "shop"})
    both = client.patch("/indexes/shop", json={"settings": {"k1": 1.5, "alpha": 0.5}})
    assert (both.status_code, both.json()["job"]["settings"]) == (202, {"k1": 1.5, "alpha": 0.5})
    busy = client.patch("/indexes/shop", json={"settings": {"alpha": 0.6}})
    assert (busy.status_code, busy.json()["error"]["code"]) == (503, "index_busy")
    assert client.patch("/indexes/shop", json={"settings": {"z": 3}}).status_code == 200
    client.put("/aliases/live", json={"index": "shop"})
    done = client.patch("/indexes/live", json={"settings": {"z": 4}})
    assert done.json() == {"index": "shop", "job": None}


def test_a_wrong_setting_is_named_and_nothing_changes(service, tmp_path):
    client, refits = service
    build_tiny(tmp_path)
    for path, settings, field in (
        ("/indexes", {"k1": "high"}, "k1"),
        ("/indexes", {"colour": 1}, "colour"),
        ("/indexes", {"tokenizer": "os:system"}, "tokenizer"),
        ("/indexes", {"spectral": "truncation", "centred": False}, "spectral"),
        ("/indexes", {"language": "klingon"}, "language"),
        ("/indexes/tiny", {"language": "klingon"}, "language"),
        ("/indexes/tiny", {"k1": -1}, "k1"),
        ("/indexes/tiny", {"tokenizer": "os:system"}, "tokenizer"),
        ("/indexes/tiny", {"coverage": 0.9, "latent": 0.9}, "latent"),
    ):
        if path == "/indexes":
            answer = client.post(path, json={"name": "shop", "settings": settings})
        else:
            answer = client.patch(path, json={"settings": settings})
        assert failure_of(answer, 422)["field"] == field
    assert [each["name"] for each in client.get("/indexes").json()["indexes"]] == ["tiny"]
    assert not refits.run_due()


def test_an_index_is_deleted_with_its_documents_only(service, tmp_path):
    client, _ = service
    build_tiny(tmp_path)
    (tmp_path / "tiny" / "notes.txt").write_text("mine")
    client.put("/aliases/small", json={"index": "tiny"})
    assert "alias" in failure_of(client.delete("/indexes/small"), 422)["message"]
    assert client.delete("/indexes/tiny").json() == {"name": "tiny", "files_left": ["notes.txt"]}
    assert client.get("/indexes").json()["indexes"] == []
    assert failure_of(client.delete("/indexes/tiny"), 404)["code"] == "index_not_found"
    assert (tmp_path / "tiny" / "notes.txt").read_text() == "mine"


def test_a_name_in_use_is_refused(service, tmp_path):
    client, _ = service
    build_tiny(tmp_path)
    client.put("/aliases/small", json={"index": "tiny"})
    for name in ("tiny", "small"):
        failure = failure_of(client.post("/indexes", json={"name": name}), 409)
        assert (failure["code"], failure["field"]) == ("index_exists", "name")
    for name in ("", "../up", "a b", ".hidden"):
        assert failure_of(client.post("/indexes", json={"name": name}), 422)["field"] == "name"
    assert client.get("/indexes/tiny").json()["documents"] > 0


def test_keys_create_and_delete_only_their_indexes(indexes_of, tmp_path):
    build_tiny(tmp_path / "home")
    file = tmp_path / "keys.json"
    key = add_key(file, "shop", scopes=["write"], indexes=["shop"])
    reader = add_key(file, "reader", scopes=["search"])
    app = app_of_indexes(indexes_of(tmp_path / "home"), writes=Writes(), keys=Keys(file, ()))
    client = AppClient(app, headers={"Authorization": f"Bearer {key}"})
    for answer in (
        client.post("/indexes", json={"name": "other"}),
        client.delete("/indexes/tiny"),
        client.delete("/indexes/tiny", headers={"Authorization": f"Bearer {reader}"}),
    ):
        assert failure_of(answer, 403)["code"] == "insufficient_scope"
    assert client.post("/indexes", json={"name": "shop"}).status_code == 201
    assert client.delete("/indexes/shop").status_code == 200


def test_a_read_only_service_creates_nothing(indexes_of, tmp_path):
    client = AppClient(app_of_indexes(indexes_of(tmp_path)))
    for answer in (client.post("/indexes", json={"name": "a"}), client.delete("/indexes/a")):
        assert failure_of(answer, 403)["code"] == "writing_refused"


def test_an_unknown_index_is_named_also_if_there_is_none(service):
    client, _ = service
    for answer in (
        client.get("/search", params={"q": "red", "index": "shop"}),
        client.post("/indexes/shop/documents", json=BIKES),
    ):
        assert failure_of(answer, 404)["message"] == "no index `shop`; create it with POST /indexes"
