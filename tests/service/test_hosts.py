import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klsa_search.service.middleware.clients import name_in, names_of_this_machine
from tests.support.application import app_of_indexes
from tests.support.client import AppClient

from .conftest import failure_of


@pytest.fixture
def asking(indexes_of, tiny_home):
    """A function that asks a service with these names for its health, by the name of a host."""

    def asking(*names):
        client = AppClient(app_of_indexes(indexes_of(tiny_home), allowed_hosts=names))
        return lambda host: client.get("/health", headers={"Host": host})

    return asking


def test_names_of_the_machine_are_answered(asking):
    ask = asking("search.example")
    for host in (
        "localhost",
        "localhost:8000",
        "LOCALHOST:80",
        "localhost.",
        "search.localhost:8000",
        "127.0.0.1:8000",
        "192.0.2.7",
        "[::1]:8000",
        "[2001:DB8::1]",
        "[fe80::1%eth0]:8000",
        "search.example",
        "Search.Example:443",
        "search.example.:443",
    ):
        assert ask(host).status_code == 200, host


def test_other_names_are_refused_with_a_way_out(asking):
    ask = asking("search.example")
    for host in (
        "evil.example",
        "search.example.evil",
        "evil.search.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "search.example@evil.example",
        "search.example:80:90",
        "search.example:port",
        "127.0.0.1%evil.com",
        "127.0.0.1%evil.com:8000",
        "[127.0.0.1%evil.com]",
        "[::1",
        "",
        ":8000",
        "*",
    ):
        response = ask(host)
        error = failure_of(response, 421)
        assert error["code"] == "unknown_host"
        assert "--allowed-host" in error["message"]
        assert response.headers["x-request-id"]


def test_any_name_can_be_allowed(asking, client):
    assert asking("*")("evil.example").status_code == 200
    assert client.get("/health", headers={"Host": "evil.example"}).status_code == 200


def test_machine_knows_its_names():
    assert socket.gethostname() in names_of_this_machine()


@given(st.text(st.characters(max_codepoint=255), max_size=20))
def test_no_header_is_too_odd(host):
    name = name_in(host)
    assert name is None or name == name.lower()
