"""Indexes as MCP tools of an assistant."""

import json
import shutil
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import klsa_search as klsa
from klsa_search.errors import IndexNotFound
from klsa_search.mining import related
from tests.support.processes import run_python
from tests.support.waiting import PATIENCE, wait_until

from .conftest import MANUAL, REPORTS

pytest.importorskip("mcp_types", reason="needs version 2 of mcp: pip install 'klsa-search[mcp]'")

import anyio
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

from klsa_search.connect import mcp
from klsa_search.connect.mcp import server

pytestmark = pytest.mark.external

COMMAND = "from klsa_search.cli.mcp import main; main()"


def called(where, tool, **given):
    """What a tool answers: whether it refuses, and its one text."""

    async def ask():
        async with Client(where) as client:
            return await client.call_tool(tool, given)

    answer = anyio.run(ask)
    (content,) = answer.content
    assert content.type == "text"
    assert answer.structured_content is None
    return answer.is_error, content.text


def asked(where, tool, **given):
    refused, text = called(where, tool, **given)
    assert not refused, text
    return json.loads(text)


def test_search_and_fetch_keep_the_convention_of_deep_research(home):
    served = server(home)
    found = asked(served, "search", query="coolant stains")
    assert set(found) == {"results", "tokens", "truncated", "quality"}
    assert found["results"][0] == {
        "id": "reports/leak",
        "title": "leak",  # it has none of its own
        "url": "klsa://reports/leak",
        "document_id": "reports/leak",
        "page": None,
        "span": [0, 61],
        "heading": "",
        "text": "Coolant leaks from old hoses; look for stains below the pump.",
    }
    assert all(each["url"] for each in found["results"])
    assert asked(served, "fetch", id="reports/heat") == {
        "id": "reports/heat",
        "title": "Overheating",
        "url": "https://example.org/heat",
        "text": "An engine that overheats has lost coolant, or its pump has failed.",
        "metadata": {"year": 2021, "url": "https://example.org/heat"},
    }


def test_search_takes_a_number_and_a_filter(home):
    served = server(home)
    found = asked(served, "search", query="coolant", k=1, filter="year < 2020")
    assert [each["id"] for each in found["results"]] == ["reports/pump"]
    none = asked(served, "search", query="submarines")
    assert (none["results"], none["note"]) == ([], "nothing found; try other words")


@pytest.fixture
def manual(tmp_path):
    klsa.build([MANUAL, *REPORTS], name="manual", home=tmp_path, passages=60).close()
    return server(tmp_path)


def test_search_returns_passages_that_can_be_cited_and_fetched(manual):
    found = asked(manual, "search", query="narwhal valve", k=1)
    (hit,) = found["results"]
    assert (hit["document_id"], hit["page"], hit["heading"]) == ("manual/manual", 3, "Chapter 2")
    assert hit["text"] == MANUAL["text"][slice(*hit["span"])]
    assert hit["id"] == "manual/manual#{}-{}".format(*hit["span"])
    fetched = asked(manual, "fetch", id=hit["id"])
    assert {name: fetched[name] for name in hit} == hit
    assert (
        asked(manual, "fetch", id=hit["document_id"], page=3)["text"]
        == (MANUAL["text"].split("\f")[2])
    )
    span = "{}-{}".format(*hit["span"])
    assert asked(manual, "fetch", id=hit["document_id"], span=span) == fetched
    of_passage = asked(manual, "explain", query="narwhal", id=hit["id"])
    assert of_passage == asked(manual, "explain", query="narwhal", id=hit["document_id"])
    assert called(manual, "search", query="narwhal valve", k=1) == (
        called(manual, "search", query="narwhal valve", k=1)
    )


def test_search_keeps_to_its_budget_and_says_so(manual):
    small = asked(manual, "search", query="machine", max_tokens=3)
    assert (small["results"], small["tokens"], small["truncated"]) == ([], 0, True)
    assert "nothing fits" in small["note"]
    some = asked(manual, "search", query="machine valve", max_tokens=200)
    assert 0 < some["tokens"] <= 200
    assert some["truncated"]
    assert "raise max_tokens" in some["note"]
    poor = asked(manual, "search", query="valve of the admiralty submarines in peace")
    assert poor["quality"] < 0.5
    assert "no good match" in poor["note"]


def test_a_long_document_is_fetched_in_parts(manual):
    text, span, parts = "", None, 0
    while span != "end":
        part = asked(manual, "fetch", id="manual/manual", span=span, max_tokens=100)
        assert len(part["text"]) <= 400
        assert part["id"].startswith("manual/manual#")
        text, span, parts = text + part["text"], part.get("next_span", "end"), parts + 1
    assert text == MANUAL["text"]
    assert parts > 3


def test_explain_and_related_say_what_the_index_says(home, index):
    explained = asked(server(home), "explain", query="coolant", id="reports/leak")
    assert explained["score"] == index.explain("coolant", "leak").score
    assert explained["lexical"]["terms"][0]["term"] == "coolant"
    near = asked(server(home), "related", term="tyre", k=2)["related"]
    assert [each["word"] for each in near] == [each.word for each in related(index, "tyre", 2)]


@pytest.mark.parametrize(
    ("tool", "given", "said"),
    [
        ("search", {"query": "x", "filter": "yaer > 1"}, "unknown field 'yaer'"),
        ("search", {"query": "x", "k": 0}, "k = 0"),
        ("search", {"query": "x", "index": "no"}, "no"),
        ("fetch", {"id": "leak"}, "INDEX/ID"),
        ("fetch", {"id": "reports/no"}, "no document 'no'"),
        ("fetch", {"id": "reports/leak#0-999"}, "no such span"),
        ("fetch", {"id": "reports/leak", "span": "x"}, "BEGIN-END"),
        ("fetch", {"id": "reports/leak", "page": 1}, "has no pages"),
        ("fetch", {"id": "reports/leak", "max_tokens": 0}, "max_tokens"),
        ("related", {"term": "submarine"}, "no document contains it"),
    ],
)
def test_errors_are_returned_to_the_assistant(home, tool, given, said):
    refused, text = called(server(home), tool, **given)
    assert refused
    assert said in text


def test_several_indexes_are_distinguished(home):
    klsa.build([{"id": "a/b", "text": "wet roads"}], name="roads", home=home).close()
    both, one = server(home), server(home, "roads")
    refused, text = called(both, "search", query="roads")
    assert refused
    assert "choose one of reports, roads" in text
    found = asked(both, "search", query="roads", index="roads")["results"]
    assert [each["id"] for each in found] == ["roads/a/b"]
    assert asked(both, "fetch", id="roads/a/b")["text"] == "wet roads"
    assert asked(one, "search", query="roads")["results"] == found
    assert called(one, "fetch", id="reports/leak")[0]


def test_later_writes_are_found(home, index):
    served = server(home)
    assert asked(served, "search", query="horn")["results"] == []
    index.add([{"id": "horn", "text": "A horn that will not sound."}])
    assert asked(served, "search", query="horn")["results"][0]["id"] == "reports/horn"


def test_the_tools_are_described_as_read_only(home):
    async def listed():
        async with Client(server(home)) as client:
            return (await client.list_tools()).tools

    tools = anyio.run(listed)
    assert [tool.name for tool in tools] == ["search", "fetch", "explain", "related"]
    assert all("Indexes: reports." in tool.description for tool in tools)
    assert all(tool.annotations.read_only_hint for tool in tools)
    assert tools[0].input_schema["required"] == ["query"]


def test_nothing_to_serve_is_refused(tmp_path, home):
    with pytest.raises(IndexNotFound, match="klsa-index build"):
        server(tmp_path / "empty")
    with pytest.raises(IndexNotFound):
        server(home, "no")


def test_the_command_answers_on_standard_input(home):
    program = StdioServerParameters(
        command=sys.executable, args=["-c", COMMAND, "--home", str(home)]
    )
    assert asked(program, "search", query="stains")["results"][0]["id"] == "reports/leak"


def test_the_command_answers_over_http(home, kept_port):
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND, "--home", str(home), "--http", str(kept_port)]
    )

    def listens():
        with socket.socket() as trying:
            return trying.connect_ex(("127.0.0.1", kept_port)) == 0

    try:
        wait_until(listens)
        address = f"http://127.0.0.1:{kept_port}/mcp"
        assert asked(address, "search", query="stains")["results"][0]["id"] == "reports/leak"
    finally:
        process.terminate()
        process.wait(300)


def test_the_command_says_what_is_missing(tmp_path):
    done = run_python(COMMAND, "--home", str(tmp_path))
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "no index" in done.stderr


def test_an_index_that_opens_slowly_delays_no_other(home, tmp_path, monkeypatch):
    for name in ("quick", "slow"):
        shutil.copytree(home / "reports", tmp_path / name)
    opening, opened = threading.Event(), threading.Event()

    def open_index(path):
        if path.name == "slow":
            opening.set()
            assert opened.wait(PATIENCE)
        return klsa.open_index(path)

    monkeypatch.setattr(mcp, "open_index", open_index)
    tools = mcp.SearchTools(tmp_path, None)
    with ThreadPoolExecutor(1) as threads:
        slow = threads.submit(tools.search, "coolant", index="slow")
        assert opening.wait(PATIENCE)
        try:
            quick = tools.search("coolant", index="quick")["results"]
        finally:
            opened.set()
        ids = [each["id"].replace("quick", "slow") for each in quick]
        assert [each["id"] for each in slow.result(PATIENCE)["results"]] == ids != []
