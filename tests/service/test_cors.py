"""Pages of other sites: CORS."""

import pytest

from klsa_search.service.admission import Admission
from klsa_search.service.keys import add_key
from klsa_search.service.middleware.auth import Keys
from klsa_search.service.open_indexes import OpenIndexes
from tests.service.conftest import failure_of
from tests.support.application import app_of_indexes
from tests.support.client import AppClient

OURS, ANOTHER = "https://one.example", "https://evil.example"


@pytest.fixture
def client(tiny_home, tmp_path):
    add_key(tmp_path / "keys.json", "web", ["search"])
    with OpenIndexes(tiny_home, interval=0) as open_indexes:
        keys = Keys(tmp_path / "keys.json", ())
        yield AppClient(app_of_indexes(open_indexes, origins=[OURS], keys=keys))


def asking_first(client, origin, method="GET", headers="authorization,content-type"):
    return client.options(
        "/search",
        headers={
            "Origin": origin,
            "Access-Control-Request-Method": method,
            "Access-Control-Request-Headers": headers,
        },
    )


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
def test_a_page_of_an_origin_that_is_allowed_may_ask(client, method):
    """A browser asks first, and without the key."""
    answer = asking_first(client, OURS, method)
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == OURS
    assert method in answer.headers["access-control-allow-methods"]
    assert "authorization" in answer.headers["access-control-allow-headers"].lower()
    assert "access-control-allow-credentials" not in answer.headers


def test_an_allowed_site_may_read_failures(client):
    answer = client.get("/search?q=wing", headers={"Origin": OURS})
    assert failure_of(answer, 401)
    assert answer.headers["access-control-allow-origin"] == OURS
    assert answer.headers["vary"] == "Origin"


def test_pages_can_read_refusals_of_a_busy_service(indexes_of, tiny_home):
    full = Admission(running=1, waiting=-1)
    app = app_of_indexes(
        indexes_of(tiny_home), admission=full, origins=[OURS], allowed_hosts=["ours"]
    )
    client = AppClient(app, base_url="http://ours")
    refused = client.get("/search?q=wing", headers={"Origin": OURS})
    failure_of(refused, 503)
    assert refused.headers["access-control-allow-origin"] == OURS
    assert "Retry-After" in refused.headers["access-control-expose-headers"]
    assert asking_first(client, OURS).status_code == 200
    unknown = client.get("/health", headers={"Origin": OURS, "Host": "other"})
    failure_of(unknown, 421)
    assert unknown.headers["access-control-allow-origin"] == OURS


def test_an_allowed_site_may_load_the_client(client):
    answer = client.get("/page/klsa.js", headers={"Origin": OURS})
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == OURS
    answer = client.get("/page/klsa.js", headers={"Origin": ANOTHER})
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize(
    ("origin", "method", "headers"),
    [
        (ANOTHER, "GET", "authorization"),
        (OURS + ".evil.example", "GET", "authorization"),
        ("null", "GET", "authorization"),
        (OURS, "TRACE", "authorization"),
        (OURS, "GET", "x-other"),
    ],
)
def test_other_sites_are_refused(client, origin, method, headers):
    answer = asking_first(client, origin, method, headers)
    assert answer.status_code == 400
    assert answer.headers.get("access-control-allow-origin") in (None, OURS)


def test_another_origin_cannot_read_the_answer(client):
    answer = client.get("/health", headers={"Origin": ANOTHER})
    assert "access-control-allow-origin" not in answer.headers


def test_by_default_no_page_may_ask(client_of, tiny_home):
    client = client_of(tiny_home)
    assert asking_first(client, OURS).status_code == 405
    assert "access-control-allow-origin" not in client.get("/", headers={"Origin": OURS}).headers
