"""Writes over HTTP: durable and searchable when answered; invalid ones are refused."""

import asyncio
import errno
import json
import os
import threading
from contextlib import closing

import pytest
from filelock import FileLock
from hypothesis import given
from hypothesis import strategies as st

from klsa_search import build, open_index
from klsa_search.errors import BodyTooSlow, IndexBusy
from klsa_search.lowrank import sparse_expansion
from klsa_search.search.writer import Writer
from klsa_search.service.admission import Writes
from klsa_search.service.open_indexes import OpenIndexes
from klsa_search.service.routes import document_lines
from klsa_search.service.schemas import documents as reading
from klsa_search.storage.generations import writing
from klsa_search.storage.write_log import WriteLog
from tests.support.waiting import PATIENCE

from .conftest import build_tiny, copy_home, failure_of

LINES = {"Content-Type": "application/x-ndjson"}
JSON = {"Content-Type": "application/json"}
URL = "/indexes/tiny/documents"


@pytest.fixture
def home(tiny_home, tmp_path):
    return copy_home(tiny_home, tmp_path / "home")


def found(client, query, **parameters):
    answer = client.get("/search", params={"q": query, "ranker": "bm25", **parameters})
    assert answer.status_code == 200, answer.text
    return [hit["id"] for hit in answer.json()["hits"]]


def statuses(answer):
    assert (answer.status_code, answer.headers["content-type"]) == (200, LINES["Content-Type"])
    return [json.loads(line) for line in answer.text.splitlines()]


def test_added_documents_are_found_by_the_next_request(writer, home):
    some = [{"id": "new", "text": "A zeppelin."}, {"id": 7, "title": "Zeppelins", "year": 1900}]
    answer = writer.post("/indexes/tiny/documents", json=some).json()
    assert answer.pop("time_ms") > 0
    assert answer == {
        "index": "tiny", "generation": "000001", "added": 2, "changed": 0, "deleted": 0,
        "log_position": 2, "unknown": [], "warnings": [],
    }  # fmt: skip
    assert sorted(found(writer, "zeppelin")) == ["7", "new"]
    assert writer.get("/documents/7").json()["metadata"] == {"year": 1900}
    with_other_eyes = open_index(home / "tiny")
    assert with_other_eyes.document("new").text == "A zeppelin."
    with_other_eyes.close()


def test_a_document_is_replaced_and_deleted_by_its_id(writer):
    path = "/indexes/tiny/documents/a%2Fb%20c%3F%25"
    answer = writer.put(path, json={"text": "Zeppelins"}).json()
    assert (answer["added"], answer["log_position"]) == (1, 1)
    assert found(writer, "zeppelin") == ["a/b c?%"]
    assert "a/b c?%" not in found(writer, "heat boundary")
    assert writer.put(path, json={"id": "a/b c?%", "text": "x"}).status_code == 200
    assert writer.delete(path).json()["deleted"] == 1
    assert writer.delete(path).json()["deleted"] == 0
    assert failure_of(writer.get("/documents/a%2Fb%20c%3F%25"), 404)
    error = failure_of(writer.put(path, json={"id": "b", "text": "x"}), 422)
    assert error["field"] == "id"
    assert "id 'b' in the body differs from 'a/b c?%' in the path" in error["message"]


def test_many_are_deleted_at_once(writer):
    answer = writer.post("/indexes/tiny/documents/delete-batch", json=["1", 3, "1", "never"])
    assert answer.json()["deleted"] == 2
    assert writer.get("/indexes").json()["indexes"][0]["documents"] == 3
    for body in ({"ids": ["1"]}, ["1", None], "1", [True]):
        wrong = writer.post("/indexes/tiny/documents/delete-batch", json=body)
        assert "array of IDs" in failure_of(wrong, 422)["message"]


def test_one_bad_document_of_an_array_keeps_all_out(writer, home):
    some = [{"id": "good", "text": "zeppelin"}, {"id": "bad", "text": [["zeppelin"]]}]
    error = failure_of(writer.post("/indexes/tiny/documents", json=some), 422)
    assert error["code"] == "bad_document"
    assert error["message"].startswith("documents[1]: 'text' is a list")
    assert found(writer, "zeppelin") == []
    assert WriteLog(home / "tiny" / "000001").last().seq == 0


UNFIT = [
    ({"text": "no id"}, "neither '_id' nor 'id'"),
    ({"documents": [{"id": "1"}]}, "neither '_id' nor 'id' is given, but 'documents'"),
    ({"id": " "}, "id is blank"),
    ({"id": "x" * 513}, "has 513 bytes"),
    ({"id": "x", "text": "a\0b"}, "NUL byte"),
    ({"id": "x", "text": "x" * (10 * 2**20)}, "limit of 10,485,760"),
    ("text", "is a str; send a JSON object"),
]


def test_documents_that_cannot_be_kept(writer):
    for document, says in UNFIT:
        error = failure_of(writer.post("/indexes/tiny/documents", json=[document]), 422)
        assert error["code"] == "bad_document"
        assert says in error["message"]
        assert ":" in error["message"] or ";" in error["message"]


def test_invalid_json_is_refused(writer):
    for body in (
        "[", '[{"id": "1"}', '[{"id": "1"},]', '[{"id": "1"} {"id": "2"}]', '[{"id": "1"}] x', "",
        "[" * 100_000, b'["\xff"]', b"\xff",
    ):  # fmt: skip
        answer = writer.post("/indexes/tiny/documents", content=body, headers=JSON)
        assert failure_of(answer, 400)["code"] == "bad_json", body


def test_not_a_number_is_a_missing_value(writer):
    answer = writer.post("/indexes/tiny/documents", content='{"id": "1", "n": NaN}', headers=JSON)
    assert answer.status_code == 200
    assert writer.get("/documents/1").json()["metadata"] == {"n": None}


@pytest.mark.parametrize("number", ["-Infinity", "1e999"])
def test_numbers_that_json_lacks_are_refused_by_place_and_field(writer, number):
    document = f'{{"id": "1", "n": {number}}}'
    for content, headers, place in [
        (f'[{{"id": "0"}}, {document}]', JSON, "documents[1]"),
        (document, JSON, "documents[0]"),
    ]:
        answer = writer.post("/indexes/tiny/documents", content=content, headers=headers)
        error = failure_of(answer, 422)
        assert error["code"] == "bad_document"
        assert error["message"].startswith(f"{place}: the field 'n' contains NaN or an infinite")
    headers = {"Content-Type": "application/x-ndjson"}
    lines = f'{{"id": "0"}}\n{document}\n'
    answer = writer.post("/indexes/tiny/documents", content=lines, headers=headers)
    assert "line 2: the field 'n' contains NaN or an infinite number" in answer.text
    answer = writer.post(
        "/indexes/tiny/documents/delete-batch", content=f"[{number}]", headers=JSON
    )
    assert "not an array of IDs" in failure_of(answer, 422)["message"]


def test_whole_numbers_beyond_float64_are_text(writer):
    number = str(10**400)
    documents = "/indexes/tiny/documents"
    answer = writer.put(f"{documents}/1", content=f'{{"title": {number}}}', headers=JSON)
    assert answer.status_code == 200, answer.text
    assert writer.get("/documents/1").json()["title"] == number
    answer = writer.patch(f"{documents}/1", content=f'{{"text": {number}}}', headers=JSON)
    assert answer.status_code == 200, answer.text
    assert writer.get("/documents/1").json()["text"] == number
    record = f'{{"id": {number}, "text": "a"}}'
    body = f'{{"id": "0"}}\n{record}\n{{"id": "2"}}\n'
    told = statuses(writer.post(documents, content=body, headers=LINES))
    assert [(one["ok"], one["id"]) for one in told] == [(True, "0"), (True, number), (True, "2")]
    answer = writer.post(f"{documents}/delete-batch", content=f"[{number}]", headers=JSON)
    assert answer.json()["deleted"] == 1


def test_changes_of_one_document_are_refused_where_they_become_too_many(writer):
    lines = [{"id": "1", name: "x" * 6_000_000} for name in ("one", "two")]
    body = "\n".join(map(json.dumps, [*lines, {"id": "3", "year": 1960}]))
    told = statuses(writer.patch("/indexes/tiny/documents", content=body, headers=LINES))
    assert [(one["line"], one["ok"]) for one in told] == [(1, True), (2, False), (3, True)]
    assert "more than the limit" in told[1]["error"]["message"]
    assert set(writer.get("/documents/1").json()["metadata"]) == {"one"}


def test_each_line_is_reported(writer, home):
    body = (
        b'\xef\xbb\xbf{"id": "a", "text": "zeppelin"}\r\n\n'
        b'{"id": "b", "text": 3.5}\n{"id": "c"\n{"id": "\xff"}\n   \n'
        b'{"id": "a", "text": "zeppelin again"}'
    )
    told = statuses(writer.post("/indexes/tiny/documents", content=body, headers=LINES))
    assert [(one["line"], one["ok"], one.get("id")) for one in told] == [
        (1, True, "a"), (3, True, "b"), (4, False, None), (5, False, None), (7, True, "a")
    ]  # fmt: skip
    assert [one["log_position"] for one in told if one["ok"]] == [1, 2, 3]
    assert {one["generation"] for one in told if one["ok"]} == {"000001"}
    assert told[2]["error"]["code"] == "bad_document"
    assert told[2]["error"]["message"].startswith("line 4: invalid JSON")
    assert "not UTF-8" in told[3]["error"]["message"]
    assert writer.get("/documents/a").json()["text"] == "zeppelin again"
    rows = list(WriteLog(home / "tiny" / "000001").rows())
    assert [row.id for row in rows] == ["a", "b", "a"]


def test_many_documents_are_patched_at_once(writer):
    prices = [{"id": "1", "price": 3}, {"id": "3", "price": 4, "title": None}]
    answer = writer.patch(URL, json=prices).json()
    assert (answer["added"], answer["changed"], answer["deleted"]) == (0, 2, 0)
    assert writer.get("/documents/1").json()["metadata"]["price"] == 3
    assert writer.patch(URL, json=[*prices, {"id": "never", "price": 1}]).status_code == 404
    for body in ([{"price": 1}], ["1"], [{"id": "1", "title": ["x"]}]):
        assert failure_of(writer.patch(URL, json=body), 422)["code"] == "bad_document"
    body = b'{"id": "1", "price": 5}\n\n{"id": "never"}\n{"price": 1}\n{"id": "3", "price": null}'
    told = statuses(writer.patch(URL, content=body, headers=LINES))
    assert [(one["line"], one["ok"], one.get("id")) for one in told] == [
        (1, True, "1"), (3, False, None), (4, False, None), (5, True, "3")
    ]  # fmt: skip
    assert [one["error"]["code"] for one in told if not one["ok"]] == [
        "document_not_found", "bad_document"
    ]  # fmt: skip
    assert writer.get("/documents/1").json()["metadata"]["price"] == 5
    assert "price" not in writer.get("/documents/3").json()["metadata"]


def test_values_that_do_not_fit_their_fields_are_reported(client_of, tmp_path):
    documents = [{"id": "a", "text": "hot", "year": 1990}, {"id": "b", "text": "cold"}]
    build(documents, name="tiny", home=tmp_path, z=2, fields=["rank:number"]).close()
    client = client_of(tmp_path, writes=Writes())
    told = client.post(URL, json=[{"id": "c", "year": "N/A"}, {"id": "d", "year": 5}]).json()
    assert [(each["id"], each["field"]) for each in told["warnings"]] == [("c", "year")]
    assert "which is not a number" in told["warnings"][0]["message"]
    assert client.put(f"{URL}/e", json={"year": 7}).json()["warnings"] == []
    lines = '{"id": "f", "year": "x"}\n{"id": "g", "rank": "first"}\n{"id": "h", "year": 8}\n'
    first, second, third = statuses(client.post(URL, content=lines, headers=LINES))
    assert (first["ok"], first["warnings"][0]["field"]) == (True, "year")
    assert "document 'g': the number field 'rank' contains \"first\"" in second["error"]["message"]
    assert "warnings" not in third
    refused = client.put(f"{URL}/g", json={"rank": "first"})
    assert failure_of(refused, 422)["code"] == "bad_document"
    assert client.get("/indexes/tiny").json()["fields"]["year"]["type_mismatches"] == 2
    assert found(client, "", sort="year:desc", filter="year > 5") == ["a", "h", "e"]


def test_a_stream_is_written_in_batches(writer, home, monkeypatch):
    monkeypatch.setattr(document_lines, "BATCH_DOCUMENTS", 4)
    lines = [json.dumps({"id": str(number), "text": "zeppelin"}) for number in range(10)]
    body = "\n".join(lines).encode()
    answer = writer.post("/indexes/tiny/documents", content=body, headers=LINES)
    assert [one["line"] for one in statuses(answer)] == [*range(1, 11)]
    assert [batch.puts for batch in WriteLog(home / "tiny" / "000001").batches()] == [4, 4, 2]
    assert len(found(writer, "zeppelin", k=20)) == 10


@given(
    parts=st.lists(st.sampled_from([b"\n", b"a", b"bc", b"1234567", b"\r\n"]), max_size=14),
    size=st.integers(1, 5),
)
def test_lines_are_the_same_however_a_stream_is_cut(parts, size):
    body = b"".join(parts)

    async def chunks():
        for at in range(0, len(body), size):
            yield body[at : at + size]

    async def read():
        return [line async for line in reading.lines_of(chunks())]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "MAX_BODY", 6)
        told = asyncio.run(read())
    assert told == [
        reading.Line(number, line if len(line) <= 6 else None)
        for number, line in enumerate(body.split(b"\n"), 1)
        if line
    ]


def test_a_line_that_is_too_long_is_reported_and_skipped(writer, monkeypatch):
    monkeypatch.setattr("klsa_search.service.schemas.documents.MAX_BODY", 50)
    long = b'{"id": "long", "text": "' + b"x" * 200 + b'"}\n'
    body = b'{"id": "a"}\n' + long + b'{"id": "b"}\n' + long.strip()
    pieces = [body[at : at + 16] for at in range(0, len(body), 16)]
    for content in (body, iter(pieces)):
        told = statuses(writer.post("/indexes/tiny/documents", content=content, headers=LINES))
        assert [(one["line"], one["ok"]) for one in told] == [
            (1, True), (2, False), (3, True), (4, False)
        ]  # fmt: skip
        assert "more than 50 bytes" in told[1]["error"]["message"]


def test_a_stream_that_is_too_long_says_where_it_ends(writer, monkeypatch):
    monkeypatch.setattr(document_lines, "MAX_LINES", 3)
    body = b"".join(b'{"id": "%d"}\n' % number for number in range(5))
    told = statuses(writer.post("/indexes/tiny/documents", content=body, headers=LINES))
    assert [(one["line"], one["ok"]) for one in told] == [
        (1, True), (2, True), (3, True), (4, False)
    ]  # fmt: skip
    assert "more than 3 lines" in told[3]["error"]["message"]


def test_a_failure_halfway_names_the_first_line_that_was_not_written(writer, monkeypatch):
    monkeypatch.setattr(document_lines, "BATCH_DOCUMENTS", 2)
    write, calls = Writer.write, []

    def failing(self, *given):
        calls.append(given)
        if len(calls) == 2:
            raise IndexBusy("another is at it: wait")
        return write(self, *given)

    monkeypatch.setattr(Writer, "write", failing)
    body = b"".join(b'{"id": "%d"}\n' % number for number in range(6))
    told = statuses(writer.post("/indexes/tiny/documents", content=body, headers=LINES))
    assert [(one["line"], one["ok"]) for one in told] == [(1, True), (2, True), (3, False)]
    assert told[2]["error"]["code"] == "index_busy"
    assert len(calls) == 2


def test_a_stream_that_becomes_too_slow_reports_what_was_written(writer, monkeypatch):
    async def slow(chunks):
        async for _ in chunks:
            pass
        yield reading.Line(1, b'{"id": "one", "text": "lamp"}')
        raise BodyTooSlow("the body arrived too slowly")

    monkeypatch.setattr(document_lines, "lines_of", slow)
    monkeypatch.setattr(document_lines, "BATCH_DOCUMENTS", 1)
    answer = writer.post("/indexes/tiny/documents", content=b"{}", headers=LINES)
    first, last = statuses(answer)
    assert (first["line"], first["ok"], first["id"]) == (1, True, "one")
    assert (last["line"], last["error"]["code"]) == (2, "body_too_slow")
    assert found(writer, "lamp") == ["one"]
    monkeypatch.setattr(document_lines, "BATCH_DOCUMENTS", 2)
    answer = writer.post("/indexes/tiny/documents", content=b"{}", headers=LINES)
    assert failure_of(answer, 408)["code"] == "body_too_slow"
    assert answer.headers["connection"] == "close"


def test_an_empty_stream_or_array_writes_nothing(writer, home):
    assert statuses(writer.post("/indexes/tiny/documents", content=b"", headers=LINES)) == []
    assert writer.post("/indexes/tiny/documents", json=[]).json()["added"] == 0
    assert WriteLog(home / "tiny" / "000001").last().seq == 0


def every_write(client, name="tiny"):
    path = f"/indexes/{name}/documents"
    yield client.post(path, json=[{"id": "1"}])
    yield client.post(path, content=b'{"id": "1"}\n', headers=LINES)
    yield client.put(f"{path}/1", json={})
    yield client.delete(f"{path}/1")
    yield client.post(f"{path}/delete-batch", json=["1"])


def test_a_service_that_is_not_writable_says_how_it_would_be(client_of, home):
    for answer in every_write(client_of(home)):
        error = failure_of(answer, 403)
        assert error["code"] == "writing_refused"
        assert "--read-only" in error["message"]
    assert WriteLog(home / "tiny" / "000001").last().seq == 0


def test_an_index_that_takes_no_writes(client_of, tmp_path):
    build([{"id": "1", "text": "wing"}], name="whole", home=tmp_path, preset="paper").close()
    for answer in every_write(client_of(tmp_path, writes=Writes()), "whole"):
        assert "is read-only" in failure_of(answer, 403)["message"]


def test_a_full_index_refuses_documents_before_they_are_logged(writer, home, monkeypatch):
    monkeypatch.setattr(sparse_expansion, "MAX_DOCUMENTS", len(open_index(home / "tiny")))
    put = {"id": "more", "text": "wing"}
    for answer in (
        writer.put("/indexes/tiny/documents/more", json=put),
        writer.post("/indexes/tiny/documents", json=[put]),
        writer.post("/indexes/tiny/documents", content=json.dumps(put), headers=LINES),
    ):
        assert "is full" in failure_of(answer, 403)["message"]
    assert WriteLog(home / "tiny" / "000001").last().seq == 0
    assert writer.delete("/indexes/tiny/documents/never").status_code == 200


def test_no_index_of_that_name(writer):
    for answer in every_write(writer, "none"):
        assert failure_of(answer, 404)["code"] == "index_not_found"


def test_requests_that_other_sites_can_send_are_refused(writer):
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", None):
        headers = {"Content-Type": kind} if kind else {}
        for path in ("/indexes/tiny/documents", "/indexes/tiny/documents/delete-batch"):
            answer = writer.post(path, content=b'["1"]', headers=headers)
            assert failure_of(answer, 415)["code"] == "unsupported_media_type"
    assert writer.options("/indexes/tiny/documents/1").status_code == 405


def test_documents_may_be_long_and_queries_may_not(writer):
    text = "zeppelin " * 200_000
    assert writer.put("/indexes/tiny/documents/long", json={"text": text}).status_code == 200
    assert found(writer, "zeppelin") == ["long"]
    error = failure_of(writer.post("/search", json={"q": text}), 413)
    assert "send less at a time" in error["message"]


def test_a_body_that_is_too_long_says_what_may_be_sent(writer):
    body = iter([b"["] + 33 * [b" " * 2**20])
    answer = writer.post("/indexes/tiny/documents", content=body, headers=JSON)
    assert "33,554,432 bytes" in failure_of(answer, 413)["message"]
    some = [{"id": str(number)} for number in range(1_001)]
    error = failure_of(writer.post("/indexes/tiny/documents", json=some), 422)
    assert "more than 1,000 documents" in error["message"]


def test_an_index_that_another_changes(writer, home, monkeypatch):
    monkeypatch.setattr("klsa_search.storage.generations.WRITE_TIMEOUT", 0.0)
    with writing(home / "tiny"):
        for answer in every_write(writer):
            error = failure_of(answer, 503)
            assert error["code"] == "index_busy"
            assert answer.headers["retry-after"] == "1"
    assert writer.delete("/indexes/tiny/documents/1").status_code == 200


def test_excess_writes_are_told_to_retry(client_of, home, monkeypatch):
    writer = client_of(home, writes=Writes(waiting=1))
    begun, done = threading.Event(), threading.Event()
    write = Writer.write

    def slow(self, *given):
        begun.set()
        assert done.wait(300)
        return write(self, *given)

    monkeypatch.setattr(Writer, "write", slow)
    thread = threading.Thread(target=writer.delete, args=("/indexes/tiny/documents/1",))
    thread.start()
    assert begun.wait(300)
    try:
        for answer in every_write(writer):
            assert failure_of(answer, 429)["code"] == "too_many_writes"
            assert answer.headers["retry-after"] == "1"
        assert found(writer, "wing") != []
    finally:
        done.set()
        thread.join(PATIENCE)
    assert writer.delete("/indexes/tiny/documents/1").status_code == 200


def test_writing_opens_the_index_no_second_time(home):
    opened = []

    def opening(path, *arguments, **settings):
        opened.append(path)
        return open_index(path, *arguments, **settings)

    with closing(OpenIndexes(home, interval=0, opener=opening)) as open_indexes:
        with open_indexes.writing("tiny") as index:
            index.add([{"id": "x", "text": "zeppelin"}])
        [after] = open_indexes.statuses()
        assert after.index.last_write.seq == 1
        assert len(opened) == 1


def test_writes_before_and_after_another_generation(writer, home):
    writer.put("/indexes/tiny/documents/x", json={"text": "zeppelin"})
    build_tiny(home)  # another builds anew from the source
    assert found(writer, "zeppelin") == []
    answer = writer.put("/indexes/tiny/documents/y", json={"text": "zeppelin"}).json()
    assert (answer["generation"], answer["log_position"]) == ("000002", 1)
    assert found(writer, "zeppelin") == ["y"]


def test_an_index_returns_its_drift(writer):
    writer.post("/indexes/tiny/documents", json=[{"id": "1", "text": "A wing, a zeppelin."}])
    writer.delete("/indexes/tiny/documents/3")
    details = writer.get("/indexes/tiny").json()
    since = details["drift"]
    assert since.pop("bytes") > 0
    assert since == {
        "added": 1, "deleted": 2, "added_share": 0.25, "changed_share": 0.5,
        "unseen_share": 0.5, "max_doc": 6, "segments": 2, "log_position": 2,
    }  # fmt: skip
    assert (details["documents"], details["counts"]["documents"]) == (4, 5)
    (health,) = writer.get("/health").json()["indexes"]
    assert health["drift"].items() >= since.items()


def test_a_write_to_a_read_only_directory_is_reported(writer, monkeypatch):
    """As where the folder is mounted read-only."""

    def acquire(_):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(FileLock, "acquire", acquire)
    error = failure_of(writer.put("/indexes/tiny/documents/a", json={"text": "x"}), 503)
    assert error["code"] == "index_unusable"
    assert "Read-only file system" in error["message"]


@pytest.mark.parametrize("kind", ["application/json", "application/merge-patch+json"])
def test_fields_are_changed_by_a_patch(writer, home, kind):
    put = {"title": "Zeppelin", "text": "A zeppelin.", "year": 1900, "tags": ["air"]}
    assert writer.put(f"{URL}/new", json=put).status_code == 200

    def patch(content, id_="new"):
        return writer.patch(f"{URL}/{id_}", content=content, headers={"Content-Type": kind})

    answer = patch('{"title": "Airships", "year": null, "seats": 12}').json()
    assert (answer["added"], answer["changed"], answer["log_position"]) == (0, 1, 2)
    document = writer.get("/documents/new").json()
    assert (document["title"], document["text"]) == ("Airships", "A zeppelin.")
    assert document["metadata"] == {"tags": ["air"], "seats": 12}
    assert patch('{"seats": 12}').json()["changed"] == 0
    assert failure_of(patch("{}", "none"), 404)["code"] == "document_not_found"
    assert failure_of(patch("{"), 400)["code"] == "bad_json"
    for bad in ("[]", '{"id": "other"}', '{"title": {}}'):
        assert failure_of(patch(bad), 422)
    assert failure_of(writer.patch(f"{URL}/new", content="{}"), 415)
    assert writer.get("/documents/new").json() == document
    # PUT replaces the whole document.
    assert writer.put(f"{URL}/new", json={"text": "A zeppelin."}).status_code == 200
    assert writer.get("/documents/new").json()["metadata"] == {}
