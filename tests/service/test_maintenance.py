"""Maintenance over HTTP: spectrum and refits."""

import shutil
import sys

import pytest
from starlette.testclient import TestClient

from klsa_search import open_index
from klsa_search.cli.refit_child import MODULE
from klsa_search.core.child_processes import command_of
from klsa_search.service.app import create_app
from klsa_search.service.background import Writes
from klsa_search.service.keys import add_key
from klsa_search.service.middleware.auth import Keys
from klsa_search.service.refits import Refits
from tests.support.waiting import wait_until

from .conftest import DOCUMENTS, failure_of

REFIT = "/indexes/tiny/refit"
WAITS = """
import sys
print("documents 2 5", flush=True)
print("no such line", flush=True)
sys.stdin.read()
"""
FAILS = "import sys; print('error: no room', file=sys.stderr); sys.exit(1)"


@pytest.fixture
def home(tiny_home, tmp_path):
    return shutil.copytree(tiny_home, tmp_path, dirs_exist_ok=True)


@pytest.fixture
def service(catalog_of, home):
    """A function of a command: a client of a service that refits by it, and its refits."""
    opened = []

    def made(command, **options):
        catalog = catalog_of(home)
        refits = Refits(catalog, command, share=None)
        opened.append(refits)
        app = create_app(catalog, writes=Writes(), refits=refits, **options)
        return TestClient(app, raise_server_exceptions=False), refits

    yield made
    for each in opened:
        each.close()


def settled(client, wanted):
    """The status once that holds of it."""
    found = []

    def holds():
        found.append(client.get(REFIT).json()["refit"])
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


def test_settings_are_changed_by_a_refit(service, home):
    client, refits = service(command_of(MODULE, "--home", str(home)))
    assert client.get(REFIT).json() == {"index": "tiny", "refit": None}
    client.put("/indexes/tiny/documents/new", json={"text": "A zeppelin."})
    assert not refits.run_due()  # by itself it does nothing
    wished = {"settings": {"alpha": 0.25, "z": 3, "exact": True, "ranker": "bm25"}}
    answer = client.patch("/indexes/tiny", json=wished)
    assert answer.status_code == 202
    assert answer.json()["refit"] == {
        "generation": "000001", "begun": answer.json()["refit"]["begun"], "phase": None, "done": 0,
        "total": None, "seconds": None, "error": None,
    }  # fmt: skip
    assert client.post(REFIT, json={}).json() == answer.json()  # it waits already
    assert refits.run_due()
    status = client.get(REFIT).json()["refit"]
    assert (status["error"], status["phase"]) == (None, "files")
    assert status["seconds"] > 0
    details = client.get("/indexes/tiny").json()
    assert (details["generation"], details["documents"]) == ("000002", len(DOCUMENTS) + 1)
    assert details["drift"]["added"] == 0
    settings = details["settings"]
    assert [settings[name] for name in wished["settings"]] == [0.25, 3, True, "bm25"]
    assert not refits.run_due()


def test_it_says_how_far_it_is(service):
    client, refits = service([sys.executable, "-c", WAITS])
    with refits:
        client.post(REFIT, json={})
        status = settled(client, lambda status: status["phase"] is not None)
        assert (status["phase"], status["done"], status["total"]) == ("documents", 2, 5)
        error = failure_of(client.patch("/indexes/tiny", json={"settings": {"z": 3}}), 503)
        assert (error["code"], "already" in error["message"]) == ("index_busy", True)
        assert client.post(REFIT, json={}).status_code == 202
        assert client.get("/health").json()["refits"]["tiny"]["phase"] == "documents"
    assert "signal 15" in settled(client, lambda status: status["error"])["error"]


def test_one_that_fails_can_be_asked_for_again(service):
    client, refits = service([sys.executable, "-c", FAILS])
    for _ in range(2):
        client.post(REFIT, json={})
        assert refits.run_due()
        assert client.get(REFIT).json()["refit"]["error"] == "no room"


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({"settings": {"alpha": 2}}, 422, "alpha"),
        ({"settings": {"alhpa": 0.5}}, 422, "alhpa"),
        ({"settings": {"self": 1}}, 422, "setting 'self'"),
        ({"settings": {"latent": 0.9, "coverage": 0.9}}, 422, "more than 1"),
        ({"settings": {"alpha": [1]}}, 422, "settings"),
        ({"settings": {}}, 422, "settings"),
        ({"set": {}}, 422, "settings"),
    ],
)
def test_settings_that_do_not_hold_begin_nothing(service, body, status, said):
    client, refits = service([sys.executable, "-c", FAILS])
    assert said in failure_of(client.patch("/indexes/tiny", json=body), status)["message"]
    assert failure_of(client.post(REFIT, json=body), 422)["code"] == "bad_query"
    assert not refits.run_due()


def test_a_form_of_another_site_begins_nothing(service):
    client, refits = service([sys.executable, "-c", FAILS])
    for headers in ({}, {"Content-Type": "text/plain"}):
        assert client.post(REFIT, content=b"{}", headers=headers).status_code in (415, 422)
    assert not refits.run_due()


def test_who_may_not_write_is_told_nothing(service, client_of, home, tmp_path):
    file = tmp_path / ".keys.json"
    reader, writer = add_key(file, "reader", ["search"]), add_key(file, "writer", ["write"])
    client, refits = service([sys.executable, "-c", FAILS], keys=Keys(file, set()))
    for token, status in ((None, 401), (reader, 403), (writer, 200)):
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        assert client.get(REFIT, headers=headers).status_code == status
        if status != 200:
            assert client.post(REFIT, json={}, headers=headers).status_code == status
    assert client.get("/indexes/tiny/spectrum").status_code == 401
    assert not refits.run_due()
    error = failure_of(client_of(home).get(REFIT), 403)  # it takes no writes
    assert "klsa-index refit" in error["message"]
