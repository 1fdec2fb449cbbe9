"""Maintenance over HTTP: spectrum and refits."""

import pytest

from klsa_search import open_index
from klsa_search.core.child_processes import command_of
from klsa_search.service.admission import Writes
from klsa_search.service.application import CHILD
from klsa_search.service.jobs import Jobs
from klsa_search.service.keys import add_key
from klsa_search.service.middleware.auth import Keys
from tests.support.application import app_of_indexes
from tests.support.client import AppClient
from tests.support.waiting import wait_until

from .conftest import DOCUMENTS, build_tiny, copy_home, failure_of

REFIT = "/indexes/tiny/refit"
WAITS = ["sh", "-c", "echo documents 2 5; echo no such line; exec cat > /dev/null"]
FAILS = ["sh", "-c", "echo error: no room >&2; exit 1"]


@pytest.fixture
def home(tiny_home, tmp_path):
    return copy_home(tiny_home, tmp_path)


@pytest.fixture
def service(indexes_of, home):
    """A function of a command: a client of a service that refits by it, and its refits."""
    opened = []

    def made(command, **options):
        open_indexes = indexes_of(home)
        refits = Jobs(open_indexes, command, share=None)
        opened.append(refits)
        app = app_of_indexes(open_indexes, writes=Writes(), jobs=refits, **options)
        return AppClient(app, raise_server_exceptions=False), refits

    yield made
    for each in opened:
        each.close()


def settled(client, wanted):
    """The status once that holds of it."""
    found = []

    def holds():
        found.append(client.get("/jobs/1").json())
        return wanted(found[-1])

    wait_until(holds)
    return found[-1]


def test_the_spectrum_is_that_of_the_build(client_of, home):
    answer = client_of(home).get("/indexes/tiny/spectrum").json()
    index = open_index(home / "tiny")
    spectrum = index.manifest.spectra["bm25"]
    assert answer["eigenvalues"] == index.arrays.eigenvalues.tolist()
    assert answer["eigenvalues"][0] == pytest.approx(spectrum.largest)
    assert answer["explained"][-1] == pytest.approx(spectrum.captured)
    assert answer["explained"] == sorted(answer["explained"])
    index.close()


@pytest.mark.slow
def test_settings_are_changed_by_a_refit(service, home):
    client, refits = service(command_of(CHILD, "refit", "--home", str(home)))
    assert client.get("/jobs").json() == {"jobs": []}
    client.put("/indexes/tiny/documents/new", json={"text": "A zeppelin."})
    assert not refits.run_due()  # by itself it does nothing
    wished = {"settings": {"alpha": 0.25, "z": 3, "exact": True, "ranker": "bm25", "k1": 1.0}}
    answer = client.patch("/indexes/tiny", json=wished)
    assert answer.status_code == 202
    job = answer.json()["job"]
    assert job == {
        "id": 1, "kind": "refit", "index": "tiny", "state": "waiting", "generation": "000001",
        "settings": wished["settings"], "started": job["started"], "phase": None, "done": 0,
        "total": None, "seconds": None, "error": None, "built": None,
    }  # fmt: skip
    assert client.get("/indexes/tiny").json()["job"] == 1
    assert client.post(REFIT, json={}).json() == job  # it waits already
    assert refits.run_due()
    status = client.get("/jobs/1").json()
    assert (status["state"], status["error"], status["built"]) == ("done", None, "000002")
    assert client.get("/jobs").json() == {"jobs": [status]}
    assert status["seconds"] > 0
    details = client.get("/indexes/tiny").json()
    assert (details["generation"], details["documents"]) == ("000002", len(DOCUMENTS) + 1)
    assert details["job"] is None
    assert details["drift"]["added"] == 0
    settings = details["settings"]
    assert [settings[name] for name in wished["settings"]] == [0.25, 3, True, "bm25", 1.0]
    assert not refits.run_due()


def test_the_progress_of_a_job_is_returned(service):
    client, refits = service(WAITS)
    with refits:
        client.post(REFIT, json={})
        status = settled(client, lambda status: status["phase"] is not None)
        assert (status["phase"], status["done"], status["total"]) == ("documents", 2, 5)
        error = failure_of(client.patch("/indexes/tiny", json={"settings": {"k1": 1.0}}), 503)
        assert (error["code"], "already" in error["message"]) == ("index_busy", True)
        assert client.post(REFIT, json={}).status_code == 202
        assert client.get("/health").json()["refits"]["tiny"]["phase"] == "documents"
        assert client.delete("/jobs/1").json()["state"] == "running"
        settled(client, lambda status: status["state"] == "cancelled")
    assert client.get("/indexes/tiny").json()["generation"] == "000001"


def test_failed_jobs_are_listed_and_can_be_repeated(service):
    client, refits = service(FAILS)
    for id_ in (1, 2):
        assert client.post(REFIT, json={}).json()["id"] == id_
        assert refits.run_due()
        job = client.get(f"/jobs/{id_}").json()
        assert (job["state"], job["error"]) == ("failed", "no room")
    assert [job["id"] for job in client.get("/jobs?index=tiny").json()["jobs"]] == [2, 1]
    assert client.get("/jobs?index=other").json() == {"jobs": []}
    assert failure_of(client.get("/jobs/3"), 404)["code"] == "job_not_found"


def test_settings_that_do_not_hold_begin_nothing(service):
    client, refits = service(FAILS)
    for body, status, said in (
        ({"settings": {"alpha": 2}}, 422, "alpha"),
        ({"settings": {"alhpa": 0.5}}, 422, "alhpa"),
        ({"settings": {"self": 1}}, 422, "setting 'self'"),
        ({"settings": {"latent": 0.9, "coverage": 0.9}}, 422, "more than 1"),
        ({"settings": {"alpha": [1]}}, 422, "settings"),
        ({"settings": {}}, 422, "settings"),
        ({"set": {}}, 422, "settings"),
    ):
        assert said in failure_of(client.patch("/indexes/tiny", json=body), status)["message"]
        assert failure_of(client.post(REFIT, json=body), 422)["code"] == "bad_query"
    assert not refits.run_due()


def test_a_form_of_another_site_begins_nothing(service):
    client, refits = service(FAILS)
    for headers in ({}, {"Content-Type": "text/plain"}):
        assert client.post(REFIT, content=b"{}", headers=headers).status_code in (415, 422)
    assert not refits.run_due()


def test_a_read_only_service_has_no_jobs(client_of, home):
    assert "read-only" in failure_of(client_of(home).get("/jobs"), 403)["message"]


def test_a_key_of_one_index_sees_and_cancels_only_its_jobs(service, home, tmp_path):
    build_tiny(home, "other")
    file = tmp_path / ".keys.json"
    key = add_key(file, "one", ["search", "write"], ["other"])
    client, refits = service(FAILS, keys=Keys(file, set()))
    client.headers["Authorization"] = f"Bearer {key}"
    tiny = refits.request("tiny", "000001", {}).id
    other = client.post("/indexes/other/refit", json={}).json()
    assert client.get("/jobs").json() == {"jobs": [other]}
    assert client.get(f"/jobs/{other['id']}").json() == other
    for method in ("GET", "DELETE"):
        answer = client.request(method, f"/jobs/{tiny}")
        assert failure_of(answer, 404)["code"] == "job_not_found"
    assert refits.history().find(tiny).state == "waiting"
    assert failure_of(client.get("/jobs?index=tiny"), 403)["code"] == "insufficient_scope"
    assert client.delete(f"/jobs/{other['id']}").json()["state"] == "cancelled"
