"""POST /indexes/{name}/sync: the index contains what the body contains, or nothing has changed."""

import json
import threading

import pytest

from klsa_search import open_index
from klsa_search.service.admission import Writes
from klsa_search.service.middleware import bodies
from klsa_search.service.schemas import documents as reading
from tests.support.application import app_of_indexes
from tests.support.client import AppClient
from tests.support.waiting import PATIENCE, wait_until

from .conftest import copy_home, failure_of

LINES = {"Content-Type": "application/x-ndjson"}
URL = "/indexes/tiny/sync"


@pytest.fixture
def home(tiny_home, tmp_path):
    return copy_home(tiny_home, tmp_path / "home")


def stored(home):
    with open_index(home / "tiny") as index:
        return {
            each.id: {"id": each.id, "title": each.title, "text": each.text, **each.metadata}
            for each in index.live_documents()
        }


def sent(writer, documents, **parameters):
    body = "\n".join(map(json.dumps, documents))
    return writer.post(URL, content=body, headers=LINES, params=parameters)


def test_the_index_contains_what_the_body_contains(writer, home):
    before = stored(home)
    first, *rest = before.values()
    wanted = [{**rest[0], "year": None, "title": "Other"}, *rest[1:], {"id": "new", "text": "new"}]
    dry = sent(writer, wanted, dry_run=True, ids=True).json()
    assert stored(home) == before
    assert dry["ids"] == {"added": ["new"], "changed": [rest[0]["id"]], "deleted": [first["id"]]}
    answer = sent(writer, wanted).json()
    assert answer.pop("time_ms") > 0
    assert answer == {
        "index": "tiny", "generation": "000001", "added": 1, "changed": 1, "deleted": 1,
        "unchanged": len(rest) - 1, "batches": 1, "dry_run": False, "log_position": 3,
        "warnings": {"count": 0, "first": [], "kinds": {}}, "removed_fields": [],
    }  # fmt: skip
    found = stored(home)
    assert found == {each["id"]: {"title": "", **each} for each in wanted}
    again = sent(writer, wanted).json()
    assert (again["batches"], again["unchanged"]) == (0, len(wanted))
    assert writer.get("/search", params={"q": "new", "ranker": "bm25"}).json()["hits"]


@pytest.mark.parametrize(
    ("last", "fact"),
    [
        ('{"id": "x"', "line "), ("[]", "line "), ('{"text": "no id"}', "line "),
        ('{"id": "twice"}\n{"id": "twice"}', "is used before; correct it and send it again"),
    ],
)  # fmt: skip
def test_a_bad_line_refuses_all(writer, home, last, fact):
    before = stored(home)
    body = "\n".join([json.dumps({"id": "new"}), *map(json.dumps, before.values()), last])
    error = failure_of(writer.post(URL, content=body, headers=LINES), 422)
    assert fact in error["message"]
    assert stored(home) == before


def test_a_truncated_body_is_refused(writer, home):
    before = stored(home)
    some = list(before.values())[:1]
    error = failure_of(sent(writer, some, max_delete=0), 422)
    assert (error["code"], "would be deleted" in error["message"]) == ("bad_collection", True)
    assert "no documents" in failure_of(sent(writer, []), 422)["message"]
    for bad in ("some", "101%", "-1"):
        error = failure_of(sent(writer, some, max_delete=bad), 422)
        assert (error["field"], "such as 20%" in error["message"]) == ("max_delete", True)
    assert failure_of(sent(writer, some, replace=True), 422)["field"] == "replace"
    assert stored(home) == before
    assert sent(writer, some, max_delete="100%").json()["deleted"] == len(before) - 1


def test_a_sync_that_takes_longer_than_its_request_continues(indexes_of, home, monkeypatch):
    before, late = stored(home), threading.Event()

    def slow(body):
        assert late.wait(PATIENCE)
        yield from reading.documents_of_lines(body)

    monkeypatch.setattr("klsa_search.service.routes.sources.documents_of_lines", slow)
    writes = Writes(request_timeout=0.05)
    slow_writer = AppClient(app_of_indexes(indexes_of(home), writes=writes))
    answer = sent(slow_writer, [*before.values(), {"id": "new", "text": "new"}])
    assert "continues" in failure_of(answer, 503)["message"]
    late.set()
    wait_until(lambda: "new" in stored(home))


def test_other_bodies_are_refused(writer, home, monkeypatch):
    before = stored(home)
    assert failure_of(writer.post(URL, json=[]), 415)["code"] == "unsupported_media_type"
    monkeypatch.setattr(reading, "MAX_BODY", 50)
    assert "more than 50 bytes" in failure_of(sent(writer, [{"id": "x" * 50}]), 422)["message"]
    monkeypatch.setattr(bodies, "MAX_SPOOLED", 50)
    error = failure_of(sent(writer, [{"id": "x" * 50}]), 413)
    assert "larger than 50 bytes" in error["message"]
    assert (
        "no index" in failure_of(writer.post("/indexes/none/sync", headers=LINES), 404)["message"]
    )
    assert stored(home) == before
