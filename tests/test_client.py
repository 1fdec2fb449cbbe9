"""The client of a service: the answers and errors of the library, over HTTP."""

import asyncio
import csv

import httpx
import numpy as np
import pytest

from klsa_search import build, open_index
from klsa_search.client import AsyncClient, ClickedDocument, Client
from klsa_search.collection.model import Document
from klsa_search.errors import (
    ArgumentError,
    BadDocument,
    DocumentNotFound,
    IndexExists,
    IndexNotFound,
    InsufficientScope,
    InvalidApiKey,
    JobNotFound,
    KlsaError,
    QueryError,
    ServiceBusy,
    ServiceFailed,
    SettingsError,
)
from klsa_search.search.facet_search import facet_search
from klsa_search.service.admission import Writes
from klsa_search.service.analytics.recorder import Recorder
from klsa_search.service.jobs import Jobs
from klsa_search.service.keys import add_key
from klsa_search.service.middleware.auth import Keys
from klsa_search.service.open_indexes import OpenIndexes
from tests.conftest import ROOT
from tests.service.conftest import copy_home
from tests.service.page.writable_service import writable
from tests.service.sockets import serving
from tests.support.application import app_of_indexes
from tests.support.waiting import PATIENCE
from tools import blocking_client

AT_ONCE = 0.0

BIKES = [
    {"id": "1", "title": "Red bicycle", "text": "A fast road bicycle.", "price": 300},
    {"id": "2", "title": "Blue bicycle", "text": "A bicycle for children.", "price": 90},
    {"id": "a/b c", "title": "Helmet", "text": "Protects the heads of cyclists.", "price": 40},
]


def test_the_blocking_client_is_current():
    """Where this fails, `python -m tools.blocking_client` writes it again."""
    assert blocking_client.BLOCKING.read_text(encoding="utf-8") == blocking_client.text()


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    home = tmp_path_factory.mktemp("shop")
    build(BIKES, name="shop", home=home).close()
    return home


@pytest.fixture
def shop_path(built, tmp_path):
    """The index `shop`, in the index directory of the test."""
    return copy_home(built, tmp_path) / "shop"


@pytest.fixture
def url(tmp_path, patient_service):
    with (
        OpenIndexes(tmp_path, interval=0) as open_indexes,
        serving(open_indexes, writes=Writes()) as service,
    ):
        host, port = service.address
        yield f"http://{host}:{port}"


@pytest.fixture
def client(url):
    with Client(url) as client:
        yield client


def test_results_are_those_of_the_library(shop_path, client, url):
    index, shop = open_index(shop_path), client.index("shop")
    for options in (
        {},
        {"k": 1, "offset": 1, "ranker": "bm25"},
        {"filter": "price < 100", "facets": ["price"], "highlight": True, "quality": True},
        {"filter": {"field": "price", "<": 100}, "sort": ("price:desc",), "explain": True},
    ):
        assert shop.search("bicycle heads", **options) == index.search("bicycle heads", **options)
    assert shop.explain("red", "1", alpha=0.5) == index.explain("red", "1", alpha=0.5)
    rows = {"columns": ["id", "price"], "filter": "price < 100", "limit": 2}
    expected = b"".join(index.export("bicycle", **rows))
    assert b"".join(shop.export("bicycle", **rows)) == expected
    with pytest.raises(QueryError, match="colour"):
        list(shop.export("bicycle", ["colour"]))

    async def pieces():
        async with AsyncClient(url) as service:
            return [piece async for piece in service.index("shop").export("bicycle", **rows)]

    assert b"".join(asyncio.run(pieces())) == expected
    assert shop.suggest("bi") == index.suggest("bi")
    for given in ({}, {"facet_query": "9", "k": 1, "query": "bicycle", "filter": "price < 100"}):
        typed = {"facet_query": "", **given}
        assert shop.facet_search("price", **given) == facet_search(index, "price", **typed)
    found = shop.document("a/b c")
    assert (found.title, found.metadata) == ("Helmet", {"price": 40})
    both = client.multi_search([{"index": "shop", "q": "red", "k": 1}, {"index": "shop"}])
    assert both[0] == index.search("red", 1)
    assert both[1].hits == ()
    index.close()


def test_both_clients_add_files(client, url, tmp_path):
    client.create_index("shop")
    path = tmp_path / "bikes.csv"
    path.write_text("key;name;body\n1;Red bicycle;fast\n2;Helmet\n")
    result = client.index("shop").add_file(path)
    assert (result.format, result.added, result.skipped.count) == ("csv", 1, 1)
    assert result.skipped.reasons[0].startswith("bikes.csv:3: ")

    async def added():
        async with AsyncClient(url) as service:
            columns = {"id": "key", "text": ["name", "body"]}
            return await service.index("shop").add_file(str(path), columns=columns)

    assert asyncio.run(added()).added == 1
    assert client.index("shop").document("1").text == "Red bicycle\n\nfast"
    with pytest.raises(QueryError, match="format = "):
        client.index("shop").add_file(path, format="none")


def test_the_answer_to_a_file_is_waited_for(tmp_path):
    asked = []
    transport = httpx.MockTransport(lambda request: asked.append(request) or httpx.Response(503))
    (tmp_path / "a.pdf").write_bytes(b"%PDF")
    patient = Client("http://service", timeout=7, transport=transport)
    with patient as client, pytest.raises(ServiceFailed):
        client.index("shop").add_file(tmp_path / "a.pdf", sections=True)
    (request,) = asked
    assert request.headers["content-type"] == "application/octet-stream"
    assert str(request.url) == "http://service/indexes/shop/files/a.pdf?sections=true"
    assert request.extensions["timeout"] == {"connect": 7, "read": None, "write": 7, "pool": 7}
    assert request.read() == b"%PDF"


def test_vectors_are_sent_and_returned(client, tmp_path):
    shop = client.create_index("shop")
    one, other = np.array([0.5, 0.1, -0.2], np.float32), np.array([-0.3, 0.8, 0.1], np.float16)
    mapping = {"id": "1", "text": "A fast bicycle.", "_vectors": {"m": one}}
    document = Document(id="2", text="A helmet.", metadata={"_vectors": {"m": [other, one]}})
    assert shop.add([mapping, document]) == 2
    assert shop.patch("1", {"_vectors": {"m": other}}).changed == 1
    with open_index(tmp_path / "shop") as index:
        for id_ in ("1", "2"):
            assert shop.document(id_) == index.document(id_)
        given = {"m": other}
        expected = index.search("lamp", vector=given, explain=True)
        assert expected.hits
        assert shop.search("lamp", vector=given, explain=True) == expected
        assert shop.explain("fast", "2", vector=given) == index.explain("fast", "2", vector=given)
        shop.add([shop.document("2")])
        index.refresh()
        assert shop.document("2") == index.document("2")


def test_a_word_without_hits_gets_a_synonym(shop_path, tmp_path, patient_service):
    with (
        OpenIndexes(tmp_path, interval=0) as open_indexes,
        Recorder(tmp_path, days=90, min_searches=2) as recorder,
        serving(open_indexes, writes=Writes(), recorder=recorder) as service,
        Client(url := "http://{}:{}".format(*service.address)) as client,
    ):
        shop = client.index("shop")
        for _ in range(2):
            in_vain = shop.search("velo", spelling="off")
            found = shop.search("bicycle")
            shop.event("click", found, found[0], in_vain)
        recorder.flush()
        report = shop.analytics(days=1)
        assert (report.totals.searches, report.min_searches) == (4, 2)
        assert {each.query: each.no_results for each in report.queries} == {"bicycle": 0, "velo": 2}
        assert [each.query for each in report.no_results] == ["velo"]
        assert [(each.day, each.clicks) for each in report.days] == [(report.since, 2)]
        assert report.documents == [ClickedDocument(found[0].id, 2, 0)]
        assert shop.analytics_csv("no_results").splitlines()[1].startswith("velo,2,2,")
        (proposal,) = shop.synonym_proposals()
        assert (proposal.word, proposal.candidates[0].synonym) == ("velo", "bicycle")
        assert asyncio.run(_asked(url, "analytics_csv", "documents")).startswith("id,clicks")
        assert asyncio.run(_asked(url, "synonym_proposals")) == [proposal]
        assert asyncio.run(_asked(url, "analytics", 1)) == report
        assert shop.set_synonyms({"velo": ["bicycle"]}) == 1
        assert asyncio.run(_asked(url, "set_synonyms", ["bike => bicycle"])) == 1
        assert shop.add_synonyms({"bike": ["cycle"], "velo": ["bike"]}) == 2
        assert asyncio.run(_asked(url, "add_synonyms", ["velo => bicycle"])) == 2
        assert shop.synonyms() == {"bike": ["bicycle", "cycle"], "velo": ["bike", "bicycle"]}
        assert shop.set_synonyms(["bike => bicycle"]) == 1
        assert shop.synonyms() == asyncio.run(_asked(url, "synonyms")) == {"bike": ["bicycle"]}


async def _asked(url, method, *arguments):
    """What a method of the other client returns."""
    async with AsyncClient(url) as other:
        return await getattr(other.index("shop"), method)(*arguments)


def test_an_index_is_made_filled_changed_and_deleted(client):
    shop = client.create_index("shop", fields=["price:number"], language="english")
    assert shop.info().settings["fields"] == ["price:number"]
    assert shop.add(iter(BIKES)) == 3
    assert shop.add([Document(id="4", text="A lamp.", metadata={"price": 5})]) == 1
    assert shop.patch("4", {"title": "Lamp", "price": None}).changed == 1
    assert (shop.document("4").title, shop.document("4").metadata) == ("Lamp", {})
    assert shop.patch_many([{"id": "4", "price": 6}, {"id": "1", "text": "A bell."}]).changed == 2
    assert (shop.document("4").metadata, shop.document("1").text) == ({"price": 6}, "A bell.")
    with pytest.raises(ArgumentError, match="is a text"):
        shop.delete("123")
    deleted = shop.delete(["4", "never there"])
    assert (deleted, deleted.unknown) == (1, ("never there",))
    synced = shop.sync([*BIKES[1:], {"id": "5", "text": "A bell."}])
    assert (synced.added, synced.deleted, synced.unchanged) == (("5",), ("1",), 2)
    assert shop.sync([], max_delete="100%", dry_run=True).unchanged == 0
    assert [(each.name, each.documents) for each in client.indexes()] == [("shop", 3)]
    client.delete_index("shop")
    assert client.indexes() == []


def test_many_documents_are_sent_in_batches(client, monkeypatch):
    monkeypatch.setattr("klsa_search.client.protocol.BATCH", 7)
    sent = []
    monkeypatch.setattr(client, "send", lambda call, send=client.send: sent.append(1) or send(call))
    shop = client.create_index("shop")
    assert shop.add({"id": n, "text": f"bell {n}"} for n in range(30)) == 30
    assert len(sent) == 1 + 5
    assert shop.info().documents == 30


def test_errors_are_those_of_the_library(client):
    shop = client.create_index("shop")
    for ask, error, field in (
        (lambda: client.index("none").search("x"), IndexNotFound, "index"),
        (lambda: shop.search("x", k=0), QueryError, "k"),
        (lambda: shop.search("x", filter="no = 1"), QueryError, "filter"),
        (lambda: shop.document("none"), DocumentNotFound, "id"),
        (lambda: shop.add([{"id": ""}]), BadDocument, None),
        (lambda: client.create_index("shop"), IndexExists, "name"),
        (lambda: client.create_index("other", k1=-1.0), QueryError, "k1"),
        (lambda: client.delete_index("none"), IndexNotFound, None),
    ):
        with pytest.raises(error) as raised:
            ask()
        assert raised.value.field == field


def test_any_request_of_the_api_can_be_sent(client, url):
    client.create_index("shop")
    synonyms = {"synonyms": ["tv, television"]}
    client.request("PUT", "/indexes/shop/synonyms", body=synonyms)
    found = client.request("GET", "/indexes/shop/synonyms")
    assert found["synonyms"] == {"tv": ["television"], "television": ["tv"]}
    searched = client.request("POST", "/indexes/shop/search", body={"q": "tv"}, idempotent=True)
    assert searched["total"] == 0
    query = {"q": "tv", "k": None}
    assert client.request("GET", "/indexes/shop/suggest", query=query)["suggestions"] == []
    with pytest.raises(IndexNotFound):
        client.request("GET", "/indexes/none")

    async def again():
        async with AsyncClient(url) as other:
            return await other.request("GET", "/indexes/shop/synonyms")

    assert asyncio.run(again()) == found


def test_a_wrong_key_is_refused(shop_path, tmp_path):
    file = tmp_path / "keys.json"
    key = add_key(file, "web", ["search"])
    with (
        OpenIndexes(tmp_path, interval=0) as open_indexes,
        serving(open_indexes, keys=Keys(file, ())) as service,
    ):
        url = "http://{}:{}".format(*service.address)
        with Client(url, key=key) as client:
            assert client.index("shop").search("red").total > 0
            with pytest.raises(InsufficientScope, match="scope"):
                client.index("shop").delete(["1"])
        with Client(url) as client, pytest.raises(InvalidApiKey):
            client.indexes()


def test_a_tenant_token_finds_the_documents_of_its_filter(shop_path, tmp_path, patient_service):
    key = add_key(tmp_path / "keys.json", "shop", ["search"])
    keys = Keys(tmp_path / "keys.json", ())
    with (
        OpenIndexes(tmp_path, interval=0) as open_indexes,
        serving(open_indexes, keys=keys) as service,
    ):
        host, port = service.address
        url = f"http://{host}:{port}"

        async def created():
            async with AsyncClient(url, key=key) as client:
                return await client.tenant_token({"shop": {"field": "price", "<": 100}})

        with Client(url, key=key) as client:
            tokens = [client.tenant_token({"shop": "price < 100"}, expires_in=60)]
            with pytest.raises(QueryError):
                client.tenant_token({"shop": "price <"})
        for token in (*tokens, asyncio.run(created())):
            with Client(url, key=token) as client:
                assert [hit.id for hit in client.index("shop").search("bicycle").hits] == ["2"]
                with pytest.raises(InsufficientScope):
                    client.tenant_token({"shop": "price < 100"})


@pytest.mark.parametrize("url", ["", "shop", "ftp://127.0.0.1", "http://", "http://a/?q=1"])
def test_an_address_that_is_none_is_refused(url):
    with pytest.raises(SettingsError) as raised:
        Client(url)
    assert raised.value.field == "url"


def answering(*statuses, headers=None):
    """A transport that answers with these statuses, one after the other, and what it was sent."""
    left, asked = list(statuses), []

    def handle(request):
        asked.append(request)
        status = left.pop(0)
        if isinstance(status, Exception):
            raise status
        busy = {"error": {"code": "busy", "message": "the service is busy", "field": None}}
        return httpx.Response(
            status, json={"indexes": []} if status == 200 else busy, headers=headers
        )

    return httpx.MockTransport(handle), asked


@pytest.fixture
def waited(monkeypatch):
    """The pauses of clients, which are not waited for."""
    pauses = []
    monkeypatch.setattr("klsa_search.client.blocking.time.sleep", pauses.append)
    return pauses


def test_temporary_refusals_are_retried(waited):
    transport, asked = answering(
        503, 429, httpx.ConnectError("no"), 200, headers={"Retry-After": "2"}
    )
    with Client("http://there", transport=transport) as client:
        assert client.indexes() == []
    assert (len(asked), waited) == (4, [2.0, 2.0, 0.4])


def test_retries_end_with_the_reason(waited):
    transport, asked = answering(*[503] * 3)
    with (
        Client("http://there", transport=transport, retries=2) as client,
        pytest.raises(ServiceBusy, match="is busy"),
    ):
        client.indexes()
    assert len(asked) == 3
    transport, _ = answering(httpx.ConnectError("connection refused"))
    with (
        Client("http://there", transport=transport, retries=0) as client,
        pytest.raises(ServiceFailed, match=r"there`: connection refused; check"),
    ):
        client.indexes()


NOT_IDEMPOTENT = {
    "create an index": lambda client: client.create_index("shop"),
    "delete an index": lambda client: client.delete_index("shop"),
    "delete documents": lambda client: client.index("shop").delete(["1"]),
    "delete a rule": lambda client: client.index("shop").delete_rule("pin"),
    "refit": lambda client: client.index("shop").refit(),
    "update settings": lambda client: client.index("shop").update_settings(k1=1.0),
}


@pytest.mark.parametrize("call", NOT_IDEMPOTENT.values(), ids=NOT_IDEMPOTENT)
@pytest.mark.parametrize("lost", [httpx.ReadError("reset"), 503], ids=["no answer", "timed out"])
def test_requests_that_would_be_applied_twice_are_not_retried(waited, call, lost):
    transport, asked = answering(lost, 200)
    with Client("http://there", transport=transport) as client, pytest.raises(KlsaError):
        call(client)
    assert (len(asked), waited) == (1, [])


def test_unprocessed_requests_are_retried(waited):
    transport, asked = answering(httpx.ConnectError("no"), 200)
    with Client("http://there", transport=transport) as client, pytest.raises(ServiceFailed):
        client.delete_index("shop")  # the answer that stands in is another's
    assert len(asked) == 2
    transport, asked = answering(503, 200, headers={"Retry-After": "1"})
    with Client("http://there", transport=transport) as client, pytest.raises(ServiceFailed):
        client.delete_index("shop")
    assert len(asked) == 2
    transport, asked = answering(httpx.ReadError("reset"), 200)
    with Client("http://there", transport=transport) as client:
        assert client.indexes() == []
    assert len(asked) == 2


@pytest.mark.parametrize("id_", [".", ".."])
def test_ids_that_an_address_cannot_contain_are_refused(waited, id_):
    transport, asked = answering()
    with Client("http://there", transport=transport) as client:
        for call in (client.index("shop").document, client.index("shop").delete_rule):
            with pytest.raises(QueryError, match="cannot be sent in an address"):
                call(id_)
    assert asked == []


@pytest.mark.parametrize("failure", [httpx.DecodingError("bad gzip"), httpx.ReadTimeout("late")])
def test_answers_that_cannot_be_read_are_failures_of_the_service(waited, failure):
    transport, _ = answering(failure)
    with (
        Client("http://there", transport=transport) as client,
        pytest.raises(ServiceFailed, match=rf"`http://there`: {failure}; check"),
    ):
        client.indexes()


def test_a_stream_is_not_sent_twice(waited):
    transport, asked = answering(503)
    with Client("http://there", transport=transport) as client, pytest.raises(KlsaError):
        client.index("shop").sync(iter(BIKES))
    assert (len(asked), waited) == (1, [])


def test_coroutines_find_the_same(shop_path, tmp_path):
    async def bells():
        for n in range(3):
            yield {"id": f"bell {n}", "text": "A bell."}

    async def ask(open_indexes):
        transport = httpx.ASGITransport(app_of_indexes(open_indexes, writes=Writes()))
        async with AsyncClient("http://there", transport=transport) as client:
            shop = client.index("shop")
            results = await shop.search("bicycle", facets=["price"])
            assert await shop.explain("red", "1") is not None
            assert await shop.suggest("bi")
            bell = await client.create_index("bell")
            assert await bell.add(bells()) == 3
            assert (await bell.patch("bell 1", {"title": "Ring"})).changed == 1
            assert (await bell.document("bell 1")).title == "Ring"
            assert await bell.delete(["bell 1"]) == 1
            assert (await bell.sync(bells())).added == ("bell 1",)
            assert (await bell.info()).documents == 3
            both = await client.multi_search([{"index": "shop", "q": "bicycle"}] * 2)
            assert [each.hits for each in both] == [results.hits] * 2
            await client.delete_index("bell")
            assert [each.name for each in await client.indexes()] == ["shop"]
            return results

    with OpenIndexes(tmp_path, interval=0) as open_indexes, open_index(shop_path) as index:
        assert asyncio.run(ask(open_indexes)) == index.search("bicycle", facets=["price"])


@pytest.fixture
def jobs(shop_path, tmp_path, monkeypatch):
    """Jobs whose command does nothing, and fails if a setting changes."""
    monkeypatch.setattr("klsa_search.service.jobs.INTERVAL", 0.01)
    monkeypatch.setattr("klsa_search.service.routes.indexes.INTERVAL", 0.01)
    command = ["sh", "-c", 'test "$1" = "{}"']
    with (
        OpenIndexes(tmp_path, interval=0) as open_indexes,
        Jobs(open_indexes, command, share=None) as jobs,
    ):
        yield open_indexes, jobs


def test_jobs_are_waited_for(jobs, patient_service):
    open_indexes, running = jobs
    with (
        serving(open_indexes, writes=Writes(), jobs=running) as service,
        Client("http://{}:{}".format(*service.address)) as client,
    ):
        shop = client.index("shop")
        done = client.wait(shop.refit())
        assert (done.state, done.has_ended, done.error) == ("done", True, None)
        assert shop.update_settings(alpha=0.5) is None
        failed = client.wait(shop.update_settings(k1=0.5), timeout=PATIENCE)
        assert (failed.state, failed.settings) == ("failed", {"k1": 0.5})
        assert client.jobs("shop") == client.jobs() == [failed, done]
        assert client.job(done.id) == client.cancel_job(done.id) == done
        assert shop.info().job is None
        running.close()
        assert running.watch.join(PATIENCE)
        waiting = shop.refit()
        assert shop.info().job == waiting.id
        with pytest.raises(TimeoutError, match="waiting"):
            client.wait(waiting, timeout=AT_ONCE)
        assert client.cancel_job(waiting.id).state == "cancelled"
        with pytest.raises(JobNotFound):
            client.job(99)
        with pytest.raises(QueryError) as refused:
            shop.update_settings(alpha=2)
        assert refused.value.field == "alpha"


def test_coroutines_wait_for_jobs(jobs):
    open_indexes, running = jobs

    async def ask():
        transport = httpx.ASGITransport(app_of_indexes(open_indexes, writes=Writes(), jobs=running))
        async with AsyncClient("http://there", transport=transport) as client:
            shop = client.index("shop")
            done = await client.wait(await shop.refit())
            failed = await client.wait(await shop.update_settings(k1=0.5))
            assert await client.jobs("shop") == [failed, done]
            assert await client.job(done.id) == await client.cancel_job(done.id) == done
            return done.state, failed.state

    assert asyncio.run(ask()) == ("done", "failed")


@pytest.mark.slow
def test_a_shop_from_an_empty_service_to_its_end(tmp_path, patient_service):
    with (ROOT / "examples" / "products.csv").open(encoding="utf-8", newline="") as file:
        rows = [
            {"id": row["sku"], "title": row["name"], "text": row["description"]}
            | {"price": float(row["price"]), "brand": row["brand"]}
            for row in csv.DictReader(file)
        ]
    with writable(tmp_path) as url, Client(url) as client:
        assert client.indexes() == []
        shop = client.create_index("shop", fields=["price:number"])
        assert shop.add(row for row in rows) == len(rows)
        job = client.wait(shop.refit())
        assert (job.state, job.error) == ("done", None)
        with open_index(tmp_path / "shop") as index:  # its build has the documents
            assert index.manifest.counts.documents == len(rows)
        found = shop.search("rain jacket", filter="price < 150", facets=["brand"])
        assert sum(count for _, count in found.facets["brand"].values) == found.total > 0
        assert shop.facet_search("brand", "co").values[0][0] == "Corvo"
        first = found[0].id
        shop.patch(first, {"price": 5000})
        assert first not in {hit.id for hit in shop.search("rain jacket", filter="price < 150")}
        assert shop.delete([first]) == 1
        with pytest.raises(DocumentNotFound):
            shop.document(first)
        client.delete_index("shop")
        assert client.indexes() == []


def test_the_walk_of_the_product_guide(client):
    with (ROOT / "examples" / "products.csv").open(encoding="utf-8", newline="") as file:
        rows = [
            {**row, "id": row["sku"], "title": row["name"], "text": row["description"]}
            for row in csv.DictReader(file)
        ]
    products = client.create_index(
        "shop", match="all", split={"colours": ";"}, fields=["price:number", "colours:keyword"]
    )
    assert products.add(rows) == len(rows)
    found = products.search(
        "rain ja", prefix="last", sort=["price"], facets=["brand", "colours"], highlight=True
    )
    named = [row for row in rows if "rain jacket" in row["title"]]
    assert found.total == len(named)
    assert [hit.id for hit in found.hits] == [
        row["sku"] for row in sorted(named, key=lambda row: float(row["price"]))
    ][:10]
    assert sum(count for _, count in found.facets["brand"].values) == len(named)
    green = sum("green" in row["colours"].split(";") for row in named)
    assert dict(found.facets["colours"].values)["green"] == green
    products.patch("P-113", {"price": 5000})
    assert products.search("rain jacket", sort=["price:desc"])[0].id == "P-113"
    assert products.sync(rows).changed == ("P-113",)
