"""klsa-search against a service prints what it prints for a local index."""

import socket
import threading
from contextlib import suppress

import pytest

from klsa_search import build
from klsa_search.service.keys import add_key
from klsa_search.service.middleware.auth import Keys
from klsa_search.service.open_indexes import OpenIndexes
from klsa_search.storage.aliases import set_alias
from tests.service.conftest import copy_home
from tests.service.sockets import serving
from tests.support.waiting import PATIENCE

from .conftest import DOCUMENTS

FIELDS = {
    "heat": {"year": 2021, "kind": "note"},
    "cold": {"year": 2023, "kind": "note"},
    "tyre": {"year": 2019, "kind": "report"},
    "road": {"year": 2024},
}


@pytest.fixture(scope="module")
def built_home(tmp_path_factory):
    home = tmp_path_factory.mktemp("remote")
    records = [document | FIELDS[document["id"]] for document in DOCUMENTS]
    build(records, name="cars", home=home).close()
    set_alias(home, "live", "cars")
    return home


@pytest.fixture
def home(shell, built_home, tmp_path):
    return copy_home(built_home, tmp_path / "index")


@pytest.fixture
def url_of(home, monkeypatch, patient_service):
    """A function that serves the home, with keys or without, and returns where."""
    monkeypatch.delenv("KLSA_KEY", raising=False)
    opened = []

    def served(**options):
        open_indexes = OpenIndexes(home, interval=0)
        service = serving(open_indexes, **options)
        opened.append((open_indexes, service))
        host, port = service.__enter__().address
        return f"http://{host}:{port}"

    yield served
    for open_indexes, service in opened:
        service.__exit__(None, None, None)
        open_indexes.close()


ASKED = [
    ["coolant in engines"],
    ["wet roads", "-k", 1, "--json"],
    ["wet roads", "--ranker", "bm25", "--json"],
    ["coolnat", "--json"],
    ["wet ro", "--prefix", "last", "--match", "all", "--json"],
    ["coolnat", "--spelling", "suggest"],
    ["coolant -thermostat", "--no-operators", "--json"],
    ["", "--sort", "year:desc", "--offset", 1],
    ["coolant tyres", "--filter", "year >= 2021 AND kind EXISTS", "--json"],
    ["coolant tyres", "--facet", "kind", "--facet", "year", "--distinct", "kind"],
    ["coolant tyres", "--facet", "kind", "--min-score", 0.1, "--json"],
    ["slippery roads", "--highlight", "--quality", "--snippet-length", 20, "--json"],
    ["slippery roads zeppelin", "--quality"],
    ["engines stall", "--explain", "-k", 2],
    ["engines stall", "--explain", "--json", "--alpha", 0.5, "--z", 2, "--exact"],
    ["engines stall", "--explain-id", "road"],
    ["engines stall", "--explain-id", "cold", "--json", "--ranker", "bm25"],
    ["engines", "--ranker", "lsi", "--dimensions", 2, "--json"],
    ["zeppelin"],
]


def test_remote_output_equals_local_output(shell, url_of):
    url = url_of()
    for name, queries in (("cars", ASKED), ("live", ASKED[:1])):
        for asked in queries:
            here = shell("klsa-search", name, *asked)
            assert here.code == 0, here.err
            assert shell("klsa-search", name, *asked, "--url", url) == here, asked


def test_a_batch_becomes_the_same_run_file(shell, url_of, tmp_path, monkeypatch):
    monkeypatch.setattr("klsa_search.cli.search.SEARCHES", 2)
    (tmp_path / "queries.tsv").write_text("q1\tcoolant\nq2\tzeppelin\nq3\twet tyres\n")
    asked = ["live", "--batch", "queries.tsv", "--alpha", 0.5, "-k", 3, "--run"]
    url = url_of()
    here = shell("klsa-search", *asked, "here.trec")
    there = shell("klsa-search", *asked, "there.trec", "--url", url)
    assert there.out == here.out.replace("here", "there")
    assert (tmp_path / "there.trec").read_bytes() == (tmp_path / "here.trec").read_bytes()


def test_errors_of_the_service_are_printed_as_local_ones(shell, url_of):
    url = url_of()
    for asked in (
        ["none", "x"], ["cars", "x", "--explain-id", "lake"], ["cars", "x", "--filter", "year >"],
        ["cars", "x", "--sort", "colour"], ["cars", "x", "--dimensions", 4000],
    ):  # fmt: skip
        here, there = shell("klsa-search", *asked), shell("klsa-search", *asked, "--url", url)
        assert (there.code, there.out) == (here.code, ""), asked
        assert there.err.startswith("error: ")
        assert asked[0] == "none" or there.err == here.err
    done = shell("klsa-search", "cars", "x", "-k", 5000, "--url", url)
    assert (done.code, done.err) == (2, "error: k = 5000: must be at most 1000\n")


def test_a_key_is_sent(shell, url_of, home, monkeypatch):
    file = home / ".keys.json"
    token, other = add_key(file, "web", ["search"]), add_key(file, "feed", ["search"], ["other"])
    asked = ["klsa-search", "cars", "coolant", "--url", url_of(keys=Keys(file, {"search"}))]
    done = shell(*asked)
    assert (done.code, done.err) == (
        1, "error: API key required; send `Authorization: Bearer KEY`\n"
    )  # fmt: skip
    assert "heat" in shell(*asked, "--key", token).out
    assert shell(*asked, "--key", other).code == 1
    monkeypatch.setenv("KLSA_KEY", token)
    assert "heat" in shell(*asked).out
    assert shell(*asked, "--key", "a\nb").code == 2


@pytest.mark.parametrize(
    "options",
    [["--url", "localhost:8000"], ["--url", "file:///etc"], ["--url", "http://"],
     ["--url", "http://127.0.0.1:1", "--home", "index"],
     ["--url", "http://127.0.0.1:1", "--threads", 2]],
)  # fmt: skip
def test_wrong_usage(shell, options):
    assert shell("klsa-search", "cars", "coolant", *options).code == 2


def test_a_service_that_is_not_there_is_named(shell, refusing_port):
    url = f"http://127.0.0.1:{refusing_port}"
    done = shell("klsa-search", "cars", "coolant", "--url", url)
    assert done.code == 1
    assert url in done.err
    assert "klsa-serve" in done.err


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno", "not from klsa-serve"),
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno", "status 404"),
        (b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
         "status 302"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", "received 1 bytes, expected 9"),
        (b"what\r\n\r\n", "what"),
        (b"", "disconnected without"),
    ],
)  # fmt: skip
def test_an_address_of_another_service_is_named(shell, answer, told):
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def reply():
            caller, _ = listener.accept()
            with caller:
                caller.settimeout(5)
                caller.sendall(answer)
                caller.shutdown(socket.SHUT_WR)
                with suppress(TimeoutError):  # a client may keep the connection
                    caller.makefile("rb").read()  # closing with unread bytes would be a reset

        thread = threading.Thread(target=reply)
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        done = shell("klsa-search", "cars", "coolant", "--url", url)
        thread.join(PATIENCE)
    assert done.code == 1
    assert told in done.err
