"""The service over shards: the same answers, and the shards that gave them."""

import json
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

from klsa_search.cluster.index import ShardedIndex
from klsa_search.indexing.build import build
from klsa_search.service.catalog import Catalog
from klsa_search.storage.current import current_generation
from tests.service.sockets import serving

from .local_workers import Fleet
from .test_index import documents, queries


class Service:
    """Three shards, some of which fail."""

    def __init__(self, address):
        self.failing = set()
        self._address = address

    def search(self, index, **asked):
        query = urlencode({"index": index, "q": queries()[0], "k": 100, **asked})
        try:
            with urlopen(f"http://127.0.0.1:{self._address[1]}/search?{query}") as answer:
                return answer.status, json.load(answer)
        except HTTPError as error:
            return error.code, json.load(error)


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    build(documents(200), name="spread", home=home).close()
    build(documents(200), name="alone", home=home).close()
    failing = set()

    def trouble(shard, *_):
        if shard in failing:
            raise ConnectionError("gone")

    fleet = Fleet(3, trouble=trouble)

    def opened(path):
        generation = current_generation(path)
        if path.name == "alone":
            from klsa_search.search.index import Index

            return Index(generation)
        return ShardedIndex(generation, fleet)

    with Catalog(home, opener=opened) as catalog, serving(catalog) as served:
        service = Service(served.address)
        service.failing = failing
        yield service


@pytest.fixture(autouse=True)
def whole(service):
    service.failing.clear()


def test_answers_are_those_of_one_process(service):
    (status, spread), (_, alone) = service.search("spread"), service.search("alone")
    assert status == 200
    assert spread["hits"] == alone["hits"]
    assert spread["shards"] == {"total": 3, "ok": 3, "failed": 0}
    assert "shards" not in alone


def test_a_missing_shard_is_an_error(service):
    service.failing.add(1)
    status, answer = service.search("spread")
    assert (status, answer["error"]["code"]) == (503, "shard_missing")
    assert (
        "1 of 3 shards do not answer (shard 1: ConnectionError: gone)"
        in (answer["error"]["message"])
    )


def test_who_asks_for_it_gets_what_the_others_have(service):
    _, whole = service.search("spread")
    service.failing.add(1)
    status, part = service.search("spread", partial="true")
    assert (status, part["shards"]) == (200, {"total": 3, "ok": 2, "failed": 1})
    ids = {hit["id"] for hit in whole["hits"]}
    assert {hit["id"] for hit in part["hits"]} & ids
    assert part["total"] < whole["total"]
    service.failing.update(range(3))
    assert service.search("spread", partial="true")[0] == 503


def test_one_process_has_nothing_to_do_without(service):
    assert service.search("alone", partial="true")[0] == 200
