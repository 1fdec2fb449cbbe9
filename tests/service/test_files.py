"""PUT /indexes/{name}/files/{file}: the documents of a file in any format that builds read."""

import asyncio
import errno
import fcntl
import gzip
import io
import json
import logging
import os
import shutil
import signal
import socket
import tempfile
import time
import zipfile

import pytest

from klsa_search import open_index
from klsa_search.collection.files.sandbox import Limits
from klsa_search.core.child_processes import start_worker
from klsa_search.errors import CollectionError, StoreError
from klsa_search.indexing.build import build
from klsa_search.service import file_reading
from klsa_search.service.admission import Admission, Writes
from klsa_search.service.file_reading import FileReader, FileTask
from klsa_search.service.index_service import IndexService
from klsa_search.service.middleware import bodies
from klsa_search.service.middleware.auth import Keys
from klsa_search.service.resources import Resources
from klsa_search.service.routes import document_lines, sources
from klsa_search.storage.columns.declared import DeclaredFields
from tests.support.application import app_of_indexes
from tests.support.client import AppClient
from tests.support.waiting import PATIENCE, wait_until
from tests.support.workers import ForkedWorker, prepare

from .conftest import DOCUMENTS, copy_home, failure_of
from .sockets import serving

TABLE = 'Key;Headline;Body;Colour\nt1;Table;"A table; round";brown\nt2;Chair\n'


@pytest.fixture
def home(tiny_home, tmp_path):
    return copy_home(tiny_home, tmp_path / "home")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The folder of temporary files, in which nothing stays, and which no answer names."""
    path = tmp_path / "temporary"
    path.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(path))
    yield path
    assert list(path.iterdir()) == []


@pytest.fixture(scope="module", autouse=True)
def _forking():
    prepare()


@pytest.fixture(autouse=True)
def _forked_readers(monkeypatch):
    monkeypatch.setattr(file_reading, "start_worker", ForkedWorker)


def sent(client, name, content, **parameters):
    answer = client.put(f"/indexes/tiny/files/{name}", content=content, params=parameters)
    assert "klsa-file-" not in answer.text
    return answer


def read(client, name, content, **parameters):
    answer = sent(client, name, content, **parameters)
    assert answer.status_code == 200, answer.text
    return answer.json()


def stored(home, *ids):
    with open_index(home / "tiny") as index:
        return [index.document(id_) for id_ in ids]


def test_a_table_is_added_and_what_is_left_out_reported(writer, home, monkeypatch):
    monkeypatch.setattr(file_reading, "start_worker", start_worker)  # as it is
    answer = read(writer, "stock.csv", TABLE)
    assert (answer["format"], answer["added"]) == ("csv", 1)
    assert answer["columns"] == ["Key", "Headline", "Body", "Colour"]
    assert answer["used"] == {"id": "Key", "title": "Headline", "text": ["Body"]}
    assert answer["skipped"]["count"] == 1
    assert answer["skipped"]["first"][0].startswith("stock.csv:3: ")
    assert any("delimiter ';'" in note for note in answer["notes"])
    (table,) = stored(home, "t1")
    assert (table.title, table.text) == ("Table", "A table; round")
    assert writer.get("/search", params={"q": "round", "ranker": "bm25"}).json()["hits"]
    answer = read(writer, "stock.csv", TABLE, title="Colour", text="Body,Headline")
    assert stored(home, "t1")[0].text == "A table; round\n\nTable"
    assert answer["log_position"] > 0


def test_a_blank_parameter_leaves_a_column_unused(writer, home):
    table = "id,title,text,body\n1,Pump,leaks,of brass\n2,Valve,sticks,of steel\n"
    answer = read(writer, "a.csv", table, id="", title="", preview=1)
    assert answer["used"] == {"text": ["text"]}
    (document,) = answer["documents"]
    assert (document["id"], document["title"], document["text"]) == ("a.csv#1", "", "leaks")
    assert document["metadata"] == {"id": "1", "title": "Pump", "body": "of brass"}
    answer = read(writer, "a.csv", table, text="")
    assert answer["used"] == {"id": "id", "title": "title"}
    assert [each.text for each in stored(home, "1", "2")] == ["", ""]
    assert read(writer, "a.csv", table, text=" ")["used"] == {"id": "id", "title": "title"}
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("a.md", "Words.")
    for name, content in (("a.zip", packed.getvalue()), ("a.csv", ""), ("a.json", "")):
        for parameters in ({"id": ""}, {"title": "", "preview": 3}, {"text": ""}):
            assert read(writer, name, content, **parameters)["used"] == {}


def test_messages_name_parameters(writer):
    names = "id,name,subject,body\n1,a,b,c\n"
    error = failure_of(sent(writer, "a.csv", names), 422)
    assert (error["field"], "choose with title=name or title=subject, and" in error["message"]) == (
        "title",
        True,
    )
    answer = read(writer, "a.csv", "Key;Full title;Body\nt1;Table;round\n", preview=1)
    named = "other columns: id=Key text=Body"
    assert any(note.endswith(named) for note in answer["notes"]), answer["notes"]
    error = failure_of(sent(writer, "a.csv", "id,text\n1,a\n", id="nr", title="text"), 422)
    assert error["field"] == "id"
    error = failure_of(sent(writer, "a.csv", "a", format="beir"), 422)
    assert (error["field"], "'beir'" in error["message"]) == ("format", True)
    assert "beir" not in failure_of(sent(writer, "a.bin", b"a\0"), 422)["message"]
    answer = read(writer, "my--notes.csv", "title,text\na,b\n", preview=1)
    assert answer["numbered"] == ["my--notes.csv"]


def test_rows_without_ids_are_named_after_their_file(writer, home):
    for name in ("one.csv", "two.csv"):
        answer = read(writer, name, f"title,text\n{name},first\nb,second\n")
        assert answer["numbered"] == [name]
    assert [each.title for each in stored(home, "one.csv#1", "two.csv#1")] == ["one.csv", "two.csv"]


def test_other_formats(writer, home):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("notes/a.md", "# Heading\n\nWords.")
        archive.writestr("photo.jpg", b"\xff\xd8")
    answer = read(writer, "all.zip", packed.getvalue())
    assert (answer["added"], answer["unread"]["kinds"]) == (1, {".jpg": 1})
    lines = '\ufeff{"id": "j1", "text": "one"}\r\n{"id": "j2", "title": 3}\n{broken\n'
    answer = read(writer, "rows.jsonl.gz", gzip.compress(lines.encode()))
    assert (answer["added"], answer["skipped"]["count"]) == (2, 1)
    read(writer, "a note.txt", "Les élèves étudient la géographie à l'été".encode("latin-1"))
    (note,) = stored(home, "a note.txt")
    assert (note.title, "élèves" in note.text) == ("a note", True)
    stored(home, "notes/a.md", "j1", "j2")


def test_a_preview_adds_nothing(writer, home):
    answer = read(writer, "stock.csv", TABLE, preview=2)
    assert (answer["added"], answer["fault"]) == (0, None)
    assert answer["documents"] == [
        {"id": "t1", "title": "Table", "text": "A table; round", "metadata": {"Colour": "brown"}}
    ]
    answer = read(writer, "two.csv", "id,name,subject,body\n1,a,b,c\n", preview=2)
    assert answer["columns"] == ["id", "name", "subject", "body"]
    assert (answer["documents"], "could each be the title" in answer["fault"]) == ([], True)
    with open_index(home / "tiny") as index:
        assert index.last_write.seq == 0


def test_batches_are_stored_one_by_one(writer, home, monkeypatch):
    monkeypatch.setattr(sources, "BATCH_DOCUMENTS", 10)
    rows = [json.dumps({"id": f"m{n}", "text": f"word {n}"}) for n in range(35)]
    assert read(writer, "many.jsonl", "\n".join(rows))["log_position"] == 35


def test_documents_are_not_replaced_by_those_without_a_misspelt_column(writer, home, monkeypatch):
    monkeypatch.setattr(sources, "BATCH_DOCUMENTS", 10)
    rows = "\n".join(json.dumps({"id": f"m{n}", "text": f"word {n}"}) for n in range(35))
    read(writer, "many.jsonl", rows)
    columns = {"id": "id", "text": "txet"}
    error = failure_of(sent(writer, "many.jsonl", rows, **columns), 422)
    assert (error["code"], error["field"]) == ("bad_collection", "text")
    assert error["message"].startswith("no document has a column 'txet'; check the spelling")
    assert read(writer, "many.jsonl", rows, preview=2, **columns)["fault"] == error["message"]
    assert stored(home, "m1")[0].text == "word 1"


def test_an_error_says_how_many_documents_were_added_before(writer, monkeypatch):
    monkeypatch.setattr(sources, "BATCH_DOCUMENTS", 10)
    rows = [json.dumps({"id": f"m{n}", "text": f"word {n}"}) for n in range(35)]
    write, batches = IndexService.write, []

    async def fail(service, name, change):
        batches.append(name)
        if len(batches) == 3:
            raise StoreError("the disk is full")
        return await write(service, name, change)

    monkeypatch.setattr(IndexService, "write", fail)
    error = failure_of(sent(writer, "many.jsonl", "\n".join(rows)), 503)
    assert error["added"] == 20


def test_a_column_that_few_records_have_is_not_misspelt(writer, monkeypatch):
    monkeypatch.setattr(sources, "BATCH_DOCUMENTS", 10)
    rows = [json.dumps({"id": f"m{n}", "text": f"word {n}"}) for n in range(35)]
    rare = json.dumps({"id": "m5000", "note": "rare"})
    columns = {"id": "id", "text": "note"}
    assert read(writer, "many.jsonl", "\n".join([rare, *rows]), **columns)["added"] == 36
    failure_of(sent(writer, "many.jsonl", "\n".join([*rows, rare]), **columns), 422)


def test_a_preview_says_nothing_about_writes(writer, home):
    failures = writer.app.state.write_failures
    failures.failed("tiny", StoreError("the disk is full"))
    read(writer, "stock.csv", TABLE, preview=2)
    path = "/indexes/tiny/sync?dry_run=true&max_delete=100%25"
    kind = {"Content-Type": "application/x-ndjson"}
    assert writer.post(path, content='{"id": "a", "text": "b"}', headers=kind).status_code == 200
    assert failures.failing() == {"tiny"}
    read(writer, "stock.csv", TABLE)
    assert failures.failing() == set()


def test_a_read_only_index_refuses_before_the_body_is_received(tmp_path, client_of, monkeypatch):
    build(DOCUMENTS, name="tiny", home=tmp_path, dimensions=3, spectral="von-neumann").close()
    monkeypatch.setattr(bodies, "spool", None)
    client = client_of(tmp_path, writes=Writes())
    assert failure_of(sent(client, "a.csv", TABLE), 403)["code"] == "writing_refused"


@pytest.mark.parametrize("path", ["files/many.jsonl", "documents"])
def test_an_alias_that_moves_between_batches_splits_nothing(
    two_home, tmp_path, indexes_of, monkeypatch, path
):
    home = shutil.copytree(two_home, tmp_path / "two")
    monkeypatch.setattr(sources, "BATCH_DOCUMENTS", 10)
    monkeypatch.setattr(document_lines, "BATCH_DOCUMENTS", 10)
    open_indexes = indexes_of(home)
    open_indexes.set_alias("now", "first")
    write = IndexService.write

    async def move(service, name, change):
        written = await write(service, name, change)
        open_indexes.set_alias("now", "second")
        return written

    monkeypatch.setattr(IndexService, "write", move)
    rows = [json.dumps({"id": f"m{n}", "text": f"word {n}"}) for n in range(35)]
    client = AppClient(app_of_indexes(open_indexes, writes=Writes()))
    send = client.put if path.startswith("files") else client.post
    kind = {"Content-Type": "application/x-ndjson"}
    assert send(f"/indexes/now/{path}", content="\n".join(rows), headers=kind).status_code == 200
    sizes = [client.get(f"/indexes/{name}").json()["documents"] for name in ("first", "second")]
    assert sizes == [40, 2]


def task_of(folder, name, content, **limits):
    path = folder / name
    path.write_bytes(content)
    return FileTask(
        path=path,
        reading={"format": None},
        declared=DeclaredFields({}),
        dimensions={},
        batch=1000,
        characters=2**25,
        limits=Limits(**limits),
    )


def lines(count):
    """Empty lines, compressed."""
    return gzip.compress(b"\n" * 2**20) * (count >> 20)


def test_a_file_that_takes_too_much_is_refused(tmp_path):
    many = b'{"items": [' + b'{"id": 1},' * 2**20 + b'{"id": 1}]}'
    large = task_of(tmp_path, "a.json", many, memory=2**27)
    slow = task_of(tmp_path, "a.jsonl.gz", lines(2**27), seconds=0.5)
    with FileReader(large) as reader, pytest.raises(CollectionError, match="too much memory"):
        reader.next()
    with FileReader(slow) as reader, pytest.raises(CollectionError, match=r"more than 0.5 s of"):
        reader.next()


def test_reading_ends_when_the_client_leaves_or_the_service_stops(home, indexes_of, monkeypatch):
    begun = []

    def start(module, **options):
        begun.append(start_worker(module, **options))
        return begun[-1]

    def send(address):
        content = lines(2**31)
        connection = socket.create_connection(address)
        head = "PUT /indexes/tiny/files/a.jsonl.gz HTTP/1.1\r\nHost: a\r\nContent-Length:"
        connection.sendall(f"{head} {len(content)}\r\n\r\n".encode() + content)
        return connection

    monkeypatch.setattr(file_reading, "start_worker", start)
    with serving(indexes_of(home), writes=Writes(), grace=1) as served:
        with send(served.address):
            wait_until(lambda: len(begun) == 1)
            assert served.get("/health/live")[0] == 200
        assert begun[0].wait(PATIENCE) == -signal.SIGKILL
        with send(served.address):
            wait_until(lambda: len(begun) == 2)
            served.stop()
            served.wait_for_end()
        assert begun[1].wait(PATIENCE) == -signal.SIGKILL


def test_documents_that_do_not_fit_are_left_out(writer, home):
    rows = [
        {"id": "x" * 600, "text": "long id"},
        {"id": "v1", "text": "a", "_vectors": {"space": [1, 2]}},
        {"id": "v2", "text": "b", "_vectors": {"space": [1, 2, 3]}},
        {"id": "fits", "text": "c"},
    ]
    answer = read(writer, "rows.jsonl", "\n".join(map(json.dumps, rows)))
    assert (answer["added"], answer["skipped"]["count"]) == (2, 2)
    stored(home, "v1", "fits")


def test_what_is_refused(writer, monkeypatch):
    assert failure_of(sent(writer, "photo.jpg", b"\xff\xd8\0\0"), 422)["code"] == "bad_collection"
    assert failure_of(sent(writer, "%00.csv", b"a"), 422)["field"] == "file"
    assert failure_of(sent(writer, "a.csv", b"a", format="none"), 422)["field"] == "format"
    assert failure_of(sent(writer, "a.csv", b"a", preview=0), 422)["field"] == "preview"
    for name in ("idna", "unicode_escape"):
        error = failure_of(sent(writer, "a.csv", b"a", encoding=name), 422)
        assert error["field"] == "encoding"
    assert failure_of(writer.put("/indexes/none/files/a.csv", content=b"a"), 404)
    monkeypatch.setattr(bodies, "MAX_SPOOLED", 50)
    assert "larger than 50 bytes" in failure_of(sent(writer, "a.csv", b"x" * 51), 413)["message"]


def test_files_of_a_service_that_was_killed_are_removed(folder, indexes_of, home):
    def left(name, seconds):
        path = folder / f"klsa-file-{name}"
        path.mkdir(mode=0o700)
        (path / "a.csv").write_bytes(b"a")
        os.utime(path, (time.time() - seconds,) * 2)
        return path

    abandoned, locked, new = left("aban_don", 90), left("locked_0", 90), left("new_0000", 0)
    of_others = left("mine", 90), left("personal", 90)
    of_others[1].chmod(0o755)
    descriptor = os.open(locked, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    open_indexes = indexes_of(home)
    resources = Resources(
        open_indexes=open_indexes,
        keys=Keys(home / "keys", {"write"}),
        admission=Admission(),
        heavy=Admission(),
    )
    with resources.running():
        assert (abandoned.exists(), locked.exists(), new.exists()) == (False, True, True)
    assert all(path.exists() for path in of_others)
    os.close(descriptor)
    for path in (locked, new, *of_others):
        shutil.rmtree(path)


def test_a_service_starts_without_a_folder_of_temporary_files(monkeypatch):
    def gettempdir():
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found")

    monkeypatch.setattr(bodies, "gettempdir", gettempdir)
    bodies.remove_abandoned()


def test_a_full_folder_of_temporary_files_is_named(writer, monkeypatch):
    call = asyncio.to_thread

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    def run(work, *arguments, **options):
        is_write = getattr(work, "__name__", "") == "write"
        return call(full if is_write else work, *arguments, **options)

    monkeypatch.setattr(asyncio, "to_thread", run)
    error = failure_of(sent(writer, "a.csv", TABLE), 503)
    assert "No space left on device; free space in the folder of temp" in error["message"]
    assert "TMPDIR" in error["message"]


def test_a_page_of_another_site_cannot_send_files(writer):
    headers = {"Origin": "https://evil.example", "Access-Control-Request-Method": "PUT"}
    answer = writer.options("/indexes/tiny/files/a.csv", headers=headers)
    assert answer.status_code == 405
    assert "access-control-allow-origin" not in answer.headers


def test_a_file_is_in_the_audit_log(writer, caplog):
    caplog.set_level(logging.INFO, "klsa_search.changes")
    sent(writer, "stock.csv", TABLE)
    (record,) = [each for each in caplog.records if each.name == "klsa_search.changes"]
    assert record.fields["path"] == "/indexes/tiny/files/stock.csv"
    assert record.fields["index"] == "tiny"
