"""The application that any ASGI server runs, and that can be mounted into another."""

from contextlib import asynccontextmanager, closing

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

import klsa_search as klsa
import klsa_search.service
from klsa_search.errors import SettingsError
from klsa_search.service import ServiceSettings, create_app
from klsa_search.service.keys import add_key

DOCUMENTS = [
    {"id": "leak", "title": "Leaking coolant", "text": "The hose leaks coolant."},
    {"id": "tyre", "title": "Bald tyres", "text": "Tyres without grip on wet roads."},
]
HERE = "http://localhost"


@pytest.fixture
def home(tmp_path):
    with closing(klsa.build(DOCUMENTS, name="reports", home=tmp_path)):
        pass
    return tmp_path


def ids(answer):
    assert answer.status_code == 200, answer.text
    return [hit["id"] for hit in answer.json()["hits"]]


def test_an_application_searches_and_writes(home):
    settings = ServiceSettings(home=home, allow_no_keys=True, writable=True)
    with TestClient(create_app(settings), base_url=HERE) as client:
        assert ids(client.get("/search", params={"q": "coolant"})) == ["leak"]
        new = {"title": "Radiator", "text": "Coolant of the radiator."}
        assert client.put("/indexes/reports/documents/radiator", json=new).status_code < 300
        assert set(ids(client.get("/search", params={"q": "coolant"}))) == {"leak", "radiator"}


def test_without_keys_it_must_be_allowed_to_be_open(home):
    with pytest.raises(SettingsError, match="without API keys"):
        create_app(ServiceSettings(home=home))


def test_the_application_of_the_module_has_the_settings_of_the_environment(home, monkeypatch):
    monkeypatch.setenv("KLSA_HOME", str(home))
    monkeypatch.setenv("KLSA_ALLOW_NO_KEYS", "true")
    with TestClient(klsa_search.service.app, base_url=HERE) as client:
        assert ids(client.get("/search", params={"q": "tyres"})) == ["tyre"]
    with pytest.raises(AttributeError, match="no attribute 'application_'"):
        klsa_search.service.application_  # noqa: B018


def test_an_application_is_mounted_into_another(home):
    mounted = create_app(ServiceSettings(home=home, allow_no_keys=True, writable=True))

    @asynccontextmanager
    async def lifespan(_):
        async with mounted.router.lifespan_context(mounted):
            yield

    outer = FastAPI(lifespan=lifespan)
    outer.mount("/find", mounted)
    with TestClient(outer, base_url=HERE) as client:
        assert ids(client.get("/find/search", params={"q": "coolant"})) == ["leak"]
        page = client.get("/find/", headers={"accept": "text/html"})
        assert "<title>" in page.text
        for file in ("/static-offline-docs/swagger-ui.css", "/page/main.js"):
            assert client.get(f"/find{file}").status_code == 200
        assert client.get("/find/health").json()["ok"]
        large = [{"id": "long", "text": "word " * 250_000}]
        assert client.post("/find/indexes/reports/documents", json=large).status_code == 200
        assert client.get("/find/openapi.json").json()["servers"] == [{"url": "/find"}]


@pytest.mark.parametrize("removed", [True, False], ids=["removed", "kept"])
def test_a_server_serves_it_under_a_prefix(home, removed):
    settings = ServiceSettings(home=home, allow_no_keys=True)
    prefix = "" if removed else "/find"
    with TestClient(create_app(settings), base_url=HERE, root_path="/find") as client:
        assert ids(client.get(f"{prefix}/search", params={"q": "coolant"})) == ["leak"]
        page = client.get(f"{prefix}/", headers={"accept": "text/html"})
        assert "<title>" in page.text
        assert "'/find/openapi.json'" in client.get(f"{prefix}/docs").text


def test_keys_are_needed_under_a_prefix_too(home):
    key = add_key(home / ".keys.json", "reader", ["search"])
    app = create_app(ServiceSettings(home=home))
    with TestClient(app, base_url=HERE, root_path="/find") as client:
        assert client.get("/find/health").status_code == 200
        assert client.get("/find/search", params={"q": "coolant"}).status_code == 401
        assert client.get("/find/indexes").status_code == 401
        bearer = {"Authorization": f"Bearer {key}"}
        assert ids(client.get("/find/search", params={"q": "coolant"}, headers=bearer)) == ["leak"]


@pytest.mark.parametrize(
    ("proxy", "prefix", "client"),
    [
        ("10.1.2.3", "/find", "192.0.2.7"),
        ("192.0.2.1", "", "192.0.2.1"),  # not a trusted one
    ],
)
def test_trusted_proxies_say_prefix_and_client(home, proxy, prefix, client, caplog):
    settings = ServiceSettings(home=home, allow_no_keys=True, trusted_proxies=("10.0.0.0/8",))
    headers = {"X-Forwarded-Prefix": "/find/", "X-Forwarded-For": "192.0.2.7"}
    caplog.set_level("INFO", "klsa_search.requests")
    with TestClient(create_app(settings), base_url=HERE, client=(proxy, 1)) as asking:
        assert f"'{prefix}/openapi.json'" in asking.get("/docs", headers=headers).text
        for file in ("/static-offline-docs/swagger-ui.css", "/page/main.js"):
            assert asking.get(file, headers=headers).status_code == 200
        assert ids(asking.get("/search", params={"q": "coolant"}, headers=headers)) == ["leak"]
        for odd in ("//evil.example", "/a b", "find", "/find?x", "/a';alert(1);'", '/a"><b>'):
            docs = asking.get("/docs", headers={"X-Forwarded-Prefix": odd}).text
            assert "'/openapi.json'" in docs
    assert {record.fields["client"] for record in caplog.records[:2]} == {client}
