import shutil
from types import SimpleNamespace

import pytest

from klsa_search.indexing.build import build
from klsa_search.service import application
from klsa_search.service.admission import Writes
from klsa_search.service.middleware import auth
from klsa_search.service.open_indexes import OpenIndexes
from klsa_search.storage.checksums import note_checked
from klsa_search.storage.manifest import read_manifest
from tests.support.application import app_of_indexes
from tests.support.client import AppClient

DOCUMENTS = [
    {"id": "1", "title": "Wings", "text": "A wing lifts the aircraft in a slipstream."},
    {
        "id": "a/b c?%",
        "title": "Heat",
        "text": "Heat in the boundary layer of a wing.",
        "year": 1950,
    },
    {"id": "3", "title": "Odd", "text": "A layer of <b>ice</b> & snow.", "odd": None},
    {"id": "/4/", "title": "Zürich", "text": "Die Größe der Wolke über dem See; 雪が降る."},
    {"id": "5", "title": "", "text": ""},
]


def build_tiny(home, name="tiny", documents=DOCUMENTS):
    build(documents, name=name, home=home, dimensions=3, replace=True).close()


def copy_home(home, path):
    """Copy indexes as they were checked: else each service compares their checksums once more."""
    shutil.copytree(home, path, dirs_exist_ok=True)
    for generation in path.glob("*/000001"):
        note_checked(generation, read_manifest(generation))
    return path


def failure_of(response, status):
    """The error of an answer, after a look at its shape."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    assert list(response.json()) == ["error"]
    error = response.json()["error"]
    assert list(error)[:3] == ["code", "message", "field"]
    assert error["code"]
    assert error["message"]
    return error


def bearing(key):
    return {"Authorization": f"Bearer {key}"}


@pytest.fixture(scope="session", autouse=True)
def _patience(patient_service):
    """Services wait as long as it takes."""


@pytest.fixture(scope="session", autouse=True)
def _changed_keys_count_at_once():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(auth, "CHECK_SECONDS", 0.0)
        yield


@pytest.fixture(scope="session", autouse=True)
def _garbage_stays():
    """Services that start collect the garbage of all tests before them, which takes 0.3 s."""
    collector = SimpleNamespace(collect=int, freeze=int, set_threshold=lambda _: None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(application, "gc", collector)
        yield


@pytest.fixture(scope="session")
def tiny_home(tmp_path_factory):
    """A home with one index; read it, and leave it as it is."""
    home = tmp_path_factory.mktemp("home")
    build_tiny(home)
    return home


@pytest.fixture(scope="session")
def two_home(tmp_path_factory):
    """A home with two indexes, which tests copy."""
    home = tmp_path_factory.mktemp("two")
    build_tiny(home, "first")
    build_tiny(home, "second", DOCUMENTS[:2])
    return home


@pytest.fixture
def home(two_home, tmp_path):
    """A home of the test's own, with two indexes."""
    return copy_home(two_home, tmp_path)


@pytest.fixture(scope="module")
def shared_catalog(two_home, tmp_path_factory):
    """Two open indexes for tests whose subject is not what the indexes contain."""
    home = copy_home(two_home, tmp_path_factory.mktemp("shared"))
    with OpenIndexes(home, interval=0) as open_indexes:
        yield open_indexes


@pytest.fixture
def indexes_of():
    """Open a home for the test; every look at it is a fresh one."""
    opened = []

    def open_home(home):
        opened.append(OpenIndexes(home, interval=0))
        return opened[-1]

    yield open_home
    for open_indexes in opened:
        open_indexes.close()


@pytest.fixture
def client_of(indexes_of):
    """A client of the service over a home; an internal error is an answer, not an exception."""

    def client(home, **options):
        return AppClient(app_of_indexes(indexes_of(home), **options), raise_server_exceptions=False)

    return client


@pytest.fixture
def file(tmp_path):
    """Where keys are kept."""
    return tmp_path / ".keys.json"


@pytest.fixture
def writer(client_of, home):
    """A client of a service that takes writes, over that home."""
    return client_of(home, writes=Writes())


@pytest.fixture(scope="session")
def tiny_client(tiny_home):
    """A client of a service over that home."""
    with OpenIndexes(tiny_home, interval=0) as open_indexes:
        yield AppClient(app_of_indexes(open_indexes), raise_server_exceptions=False)


@pytest.fixture(scope="session")
def client(tiny_client):
    """The same, where a module has no other."""
    return tiny_client


@pytest.fixture(scope="session")
def schema(tiny_client):
    """The OpenAPI schema, which takes half a second for each application."""
    return tiny_client.get("/openapi.json").json()
