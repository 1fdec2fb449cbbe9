"""The log contains exactly the acknowledged writes, in order."""

import math
import os
import shutil
import sqlite3
import threading
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.faults.children import without_privileges
from klsa_search.collection import Document
from klsa_search.collection.model import MAX_DOCUMENT_BYTES, document_of
from klsa_search.errors import BadDocument, CollectionError, IndexDamaged, StoreError
from klsa_search.storage import write_log as module
from klsa_search.storage.write_log import LogPosition, WriteLog, parse_batch
from klsa_search.storage.write_log_writer import LogWriter
from tests.support.forked import in_child
from tests.support.waiting import PATIENCE

texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
ids = st.sampled_from(["a", "b", "c", "'", "ü;--", " \n-"])
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
documents = st.builds(
    Document, id=ids, title=texts, text=texts, metadata=st.dictionaries(texts, json_values)
)
steps = st.lists(
    st.tuples(st.lists(documents, max_size=3), st.lists(ids, max_size=2)) | st.integers(1, 3),
    max_size=8,
)


def doc(id_, text=""):
    return Document(id=id_, text=text)


def pairs(rows):
    return [(row.id, row.document) for row in rows]


def test_a_log_continues_its_earlier_states_only(tmp_path):
    def state(folder):
        (tmp_path / folder).mkdir()
        WriteLog(tmp_path).copy_to(tmp_path / folder)
        return WriteLog(tmp_path / folder)

    states = [state("empty")]
    with LogWriter(tmp_path) as writer:
        for number, change in enumerate(("a", "b", "undo", "c")):
            if change == "undo":
                writer.undo(1)
            else:
                writer.append([doc(change)])
            states.append(state(str(number)))
    for place, later in enumerate(states):
        assert [later.continues(earlier) for earlier in states] == [
            other <= place for other in range(len(states))
        ]
    state_ids = [log.state_id() for log in states]
    assert len({*state_ids}) == len(states)
    assert (state_ids[0], WriteLog(tmp_path).state_id()) == ("", state_ids[-1])
    with LogWriter(tmp_path / "empty") as writer:
        writer.append([doc("a")])
    assert not states[0].continues(states[1])


def test_logs_that_diverged_do_not_continue_each_other_though_they_end_alike(tmp_path):
    original = tmp_path / "original"
    original.mkdir()
    with LogWriter(original) as writer:
        writer.append([doc("a")])
    logs = []
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        WriteLog(original).copy_to(tmp_path / name)
        with LogWriter(tmp_path / name) as writer:
            writer.append([doc(name)])
            writer.append([doc("b")])
        logs.append(WriteLog(tmp_path / name))
    one, other = logs
    assert one.continues(WriteLog(original))
    assert not one.continues(other)
    assert not other.continues(one)


@given(steps=steps)
def test_a_log_is_the_list_of_what_was_written_at_any_state_of_it(tmp_path_factory, steps):
    folder = tmp_path_factory.mktemp("log")
    log, model, states = WriteLog(folder), [], []
    with LogWriter(folder) as writer:
        for step in steps:
            if isinstance(step, int):
                if step > len(model):
                    with pytest.raises(StoreError, match=f"has {len(model)} batch.* not {step}"):
                        writer.undo(step)
                else:
                    last = writer.undo(step)
                    del model[-step:]
                    assert log.last() == last
            else:
                puts, deletes = step
                last = writer.append(puts, deletes)
                if puts or deletes:
                    model.append([*((each, None) for each in deletes), *((d.id, d) for d in puts)])
                assert log.last() == last
            states.append((log.last(), [pair for batch in model for pair in batch]))
            assert pairs(writer.rows()) == states[-1][1]
    log.check()
    for last, wanted in states:
        rows = list(log.rows(last=last))
        assert pairs(rows) == wanted
        for half in (0, len(rows) // 2):
            after = rows[half - 1].seq if half else 0
            assert list(log.rows(after, last)) == rows[half:]
        kept = log.valid_until(last)
        had = [row for row in log.rows(last=last) if row.seq <= kept]
        assert had == [row for row in log.rows() if row.seq <= kept]
        assert kept == last.seq or log.last().undos > last.undos
    standing = [each for each in log.batches() if each.undone is None]
    assert [each.puts + each.deletes for each in standing] == [len(batch) for batch in model]


def test_the_first_write_creates_the_log_and_reading_needs_none(tmp_path):
    log = WriteLog(tmp_path)
    assert (log.last(), list(log.rows()), log.batches(), log.check()) == (LogPosition(), [], [], 0)
    with LogWriter(tmp_path) as writer:
        assert (writer.last(), os.listdir(tmp_path)) == (LogPosition(), [])
        assert writer.append() == LogPosition(0, 0)
        assert log.batches() == []
        assert writer.append([doc("a")]) == LogPosition(1, 0)
        assert log.last() == LogPosition(1, 0)
    assert [each for each in os.listdir(tmp_path) if not each.startswith("WRITES")] == []
    # SQLite's application ID, by which logs of all versions are told from other files.
    assert (tmp_path / "WRITES").read_bytes()[68:72] == b"KLSW"
    [batch] = log.batches()
    assert (batch.number, batch.puts, batch.deletes, batch.last, batch.undone) == (1, 1, 0, 1, None)
    assert batch.time.endswith("+00:00")


def test_missing_documents_can_be_deleted_repeatedly(tmp_path):
    with LogWriter(tmp_path) as writer:
        for _ in range(2):
            writer.append(deletes=["never"])
        writer.append([doc("never")], deletes=["never"])
    assert pairs(WriteLog(tmp_path).rows())[-2:] == [("never", None), ("never", doc("never"))]


@pytest.mark.parametrize(
    ("document", "told"),
    [
        (doc(""), "the id is blank"),
        (doc("x" * 513), r"the id 'x+' has 513 bytes, 512 are allowed"),
        (doc("ü" * 257), "has 514 bytes"),
        (doc("a", "b\0"), "the text contains a NUL byte"),
        (doc("a", "\ud800"), "half of a character"),
        (doc("a", 7), "the text is of type int, not str"),
        (doc("big", "x" * MAX_DOCUMENT_BYTES), r"'big' has 10,485,7\d\d bytes .*split it"),
        (Document(id="a", metadata={"at": object()}), "is not JSON"),
        (Document(id="a", metadata=[1], origin="a:3"), "^a:3: the metadata is of type list"),
    ],
)
def test_an_unstorable_document_is_named_and_its_batch_is_not_written(tmp_path, document, told):
    with LogWriter(tmp_path) as writer:
        with pytest.raises(CollectionError, match=told):
            writer.append([doc("good"), document])
        assert WriteLog(tmp_path).last() == LogPosition()
        for id_ in ("x" * 513, "\ud800", 7):
            with pytest.raises(CollectionError, match=r"the id '.*choose another"):
                writer.append([doc("good")], deletes=[id_])
    assert WriteLog(tmp_path).last() == LogPosition()


def test_the_largest_documents_and_ids(tmp_path):
    deep = {"a": {"b": [{"c": [1, 2.5, None, "d"]}]}, "n": 10**400}
    wanted = [
        doc("ü" * 256, "ü\n" * (MAX_DOCUMENT_BYTES // 4 - 20)),
        doc("largest", "x" * (MAX_DOCUMENT_BYTES - len('{"text": ""}'))),
        *(doc(f"{n}", "x" * (MAX_DOCUMENT_BYTES // 2)) for n in range(4)),
        Document(id="deep", metadata=deep),
    ]
    with LogWriter(tmp_path) as writer:
        writer.append(wanted)
    assert [row.document for row in WriteLog(tmp_path).rows()] == wanted


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_numbers_that_json_lacks_are_refused(tmp_path, number):
    with (
        LogWriter(tmp_path) as writer,
        pytest.raises(BadDocument, match="the field 'x' contains NaN"),
    ):
        writer.append([Document(id="a", metadata={"x": number})])


def test_threads_read_the_log_during_writes(tmp_path):
    log, seen, failed = WriteLog(tmp_path), [], []

    def look():
        try:
            while not seen or seen[-1] < 60:
                last = log.last()
                assert [row.seq for row in log.rows(last=last)] == list(range(1, last.seq + 1))
                assert last.seq % 3 == 0
                seen.append(last.seq)
        except BaseException as failure:
            failed.append(failure)
            raise

    threads = [threading.Thread(target=look) for _ in range(3)]
    with LogWriter(tmp_path) as writer:
        for thread in threads:
            thread.start()
        for n in range(20):
            writer.append([doc("a", f"{n}"), doc("b")], ["c"])
        for thread in threads:
            thread.join(PATIENCE)
    assert not failed


def test_a_read_sees_one_state_whatever_is_written_meanwhile(tmp_path, monkeypatch):
    log, log_end = WriteLog(tmp_path), module.log_end
    with LogWriter(tmp_path) as writer:
        writer.append([doc("a")])
        before = log.state_id()

        def after_a_write(connection):
            writer.append([doc("b")])
            return log_end(connection)

        monkeypatch.setattr(module, "log_end", after_a_write)
        assert log.state_id() == before
        monkeypatch.undo()
        assert log.state_id() != before


def test_rows_are_read_in_pieces_of_limited_size(tmp_path, monkeypatch):
    parsed = []

    def parse(id_, text):
        parsed.append(id_)
        return document_of(id_, text)

    monkeypatch.setattr(module, "READ_CHARACTERS", 1_000)
    monkeypatch.setattr(module, "document_of", parse)
    with LogWriter(tmp_path) as writer:
        writer.append([doc(f"{n}", "x" * 300) for n in range(10)])
    rows = WriteLog(tmp_path).rows()
    next(rows)
    assert parsed == ["0", "1", "2"]  # 300 characters each, and 100 for the row
    assert [row.id for row in rows] == [f"{n}" for n in range(1, 10)]


def test_reading_needs_no_right_to_write(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs root, to give up rights and take them back")
    folder = tmp_path / "000001"
    folder.mkdir()
    log, seen = WriteLog(folder), []

    def look_in_child():
        for each in (*folder.iterdir(), folder):
            each.chmod(0o555)
        return in_child(look)

    def look():
        with without_privileges():
            with pytest.raises(PermissionError):
                (folder / "mine").touch()
            assert pairs(log.rows()) == seen
            assert log.check() == len(seen)

    assert look_in_child() == 0
    with LogWriter(folder) as writer:
        for n in range(3):
            writer.append([doc(f"{n}")])
            seen.append((f"{n}", doc(f"{n}")))
            assert look_in_child() == 0
    assert sorted(os.listdir(folder)) == ["WRITES", "WRITES-begun"]
    assert look_in_child() == 0
    assert sorted(os.listdir(folder)) == ["WRITES", "WRITES-begun"]


def test_a_log_that_is_written_while_it_is_read_without_rights_is_not_damaged(
    tmp_path, monkeypatch
):
    """SQLite cannot tell such a reader that a writer merges its log into the file."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to give up rights and take them back")
    folder = tmp_path / "000001"
    folder.mkdir()
    with LogWriter(folder) as writer:
        writer.append([doc("a"), doc("b")])

    def give_rights(mode):
        for each in (folder, *folder.iterdir()):
            each.chmod(mode)

    def parse(id_, text):
        give_rights(0o755)
        with LogWriter(folder) as writer:
            writer.append([doc("c")])
        give_rights(0o555)
        raise ValueError("half of it is new")

    def look():
        give_rights(0o555)
        with without_privileges():
            again = pytest.raises(
                StoreError, match="another process wrote to it meanwhile; try again"
            )
            with monkeypatch.context() as patch, again as read:
                patch.setattr(module, "document_of", parse)
                list(WriteLog(folder).rows())
            assert not isinstance(read.value, IndexDamaged)
            assert [row.id for row in WriteLog(folder).rows()][:3] == ["a", "b", "c"]

    assert in_child(look) == 0


def test_writes_that_only_a_writer_could_recover_are_not_left_out(tmp_path):
    """A writer was killed, and what it wrote is in WRITES-wal alone, in a read-only folder."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to give up rights and take them back")
    folder = tmp_path / "000001"
    folder.mkdir()
    with LogWriter(folder) as writer:
        writer.append([doc("a")])
        copy = shutil.copytree(
            folder, tmp_path / "copy", ignore=shutil.ignore_patterns("WRITES-shm")
        )
    for each in (*copy.iterdir(), copy):
        each.chmod(0o555)

    def look():
        with without_privileges(), pytest.raises(StoreError, match="check its owner"):
            WriteLog(copy).last()

    assert in_child(look) == 0


@pytest.mark.parametrize("removed", ["folder", "file"])
def test_a_generation_that_goes_is_noticed_by_reader_and_writer(tmp_path, removed):
    folder = tmp_path / "000001"
    folder.mkdir()
    log = WriteLog(folder)
    with LogWriter(folder) as writer:
        writer.append([doc("a")])
        if removed == "folder":
            shutil.rmtree(folder)
            with pytest.raises(StoreError, match=r"000001` was removed; open the index again"):
                log.last()
        else:
            (folder / "WRITES").unlink()
        with pytest.raises(StoreError, match=r"removed or replaced|cannot write"):
            writer.append([doc("b")])


@pytest.mark.parametrize("what", ["text", "database", "link", "folder"])
def test_a_file_that_is_not_a_log_is_refused_and_left_alone(tmp_path, what):
    path = tmp_path / "WRITES"
    if what == "text":
        path.write_text("mine, and long enough to be looked at" * 30)
    elif what == "database":
        with sqlite3.connect(path) as mine:
            mine.execute("create table mine (a)")
        mine.close()
    elif what == "link":
        path.symlink_to(tmp_path / "elsewhere")
    else:
        path.mkdir()
    before = path.read_bytes() if path.is_file() else None
    with (
        LogWriter(tmp_path) as writer,
        pytest.raises(StoreError, match=r"(cannot (read|write) .*WRITES|does not belong)"),
    ):
        writer.append([doc("a")])
    if before is not None:
        assert path.read_bytes() == before
        with pytest.raises(IndexDamaged, match=r"cannot read `.*WRITES` .*restore a backup"):
            WriteLog(tmp_path).last()
    assert not (tmp_path / "elsewhere").exists()


def test_no_changed_byte_is_taken_for_what_was_written(tmp_path):
    with LogWriter(tmp_path) as writer:
        for n in range(8):
            writer.append([doc(f"{n}", "some text " * 40)], ["gone"])
        writer.undo(2)
    whole = (tmp_path / "WRITES").read_bytes()
    log = WriteLog(tmp_path)
    wanted, batches = list(log.rows()), log.batches()
    refused = fine = 0
    for place in range(0, len(whole), 97):
        changed = bytearray(whole)
        changed[place] ^= 0x15
        (tmp_path / "WRITES").write_bytes(changed)
        try:
            log.check()
        except StoreError as error:
            refused += str(tmp_path / "WRITES") in error.message
        else:
            fine += 1
            assert list(log.rows()) == wanted
            assert log.batches() == batches
    assert refused > 20
    assert refused + fine == len(range(0, len(whole), 97))


def test_a_batch_that_was_changed_is_refused(tmp_path):
    with LogWriter(tmp_path) as writer:
        writer.append([doc("a")])
    with closing(sqlite3.connect(tmp_path / "WRITES")) as connection:
        [row] = connection.execute("select * from batches")
    assert parse_batch(row).last == 1
    for place in range(len(row)):
        changed = (*row[:place], 7, *row[place + 1 :])
        with pytest.raises(ValueError, match="has changed since it was written"):
            parse_batch(changed)


def test_a_log_cut_short_is_named(tmp_path):
    with LogWriter(tmp_path) as writer:
        writer.append([doc(f"{n}", "some text " * 20) for n in range(100)])
    whole = (tmp_path / "WRITES").read_bytes()
    with closing(sqlite3.connect(tmp_path / "WRITES", isolation_level=None)) as connection:
        connection.execute("delete from writes where seq = 100")
    with pytest.raises(IndexDamaged, match="rows 100 to 100 are missing"):
        list(WriteLog(tmp_path).rows())
    for length in (0, 1, 99, 4096, 8192, len(whole) - 4096):
        (tmp_path / "WRITES").write_bytes(whole[:length])
        with pytest.raises(StoreError, match=r"cannot read `.*WRITES`"):
            WriteLog(tmp_path).check()


def test_a_copy_is_the_log_of_that_moment(tmp_path):
    here, there = tmp_path / "a", tmp_path / "b"
    here.mkdir()
    there.mkdir()
    log = WriteLog(here)
    log.copy_to(there)
    assert os.listdir(there) == []
    with LogWriter(here) as writer:
        writer.append([doc("a"), doc("b")])
        writer.append([doc("c")])
        writer.undo()
        log.copy_to(there)
        writer.append([doc("d")])
    copy = WriteLog(there)
    assert pairs(copy.rows()) == [("a", doc("a")), ("b", doc("b"))]
    assert len(copy.batches()) == 2
    assert sorted(os.listdir(there)) == ["WRITES", "WRITES-begun"]
    with LogWriter(there) as writer:
        assert writer.append([doc("e")]) == LogPosition(4, 1)


def test_a_log_that_is_missing_or_another_is_named(tmp_path):
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
        with LogWriter(folder) as writer:
            writer.append([doc("a")])
    log = WriteLog(folders[0])
    for damage in ("swapped", "removed", "unmarked"):
        if damage == "swapped":
            (folders[0] / "WRITES").rename(tmp_path / "mine")
            shutil.copy(folders[1] / "WRITES", folders[0])
        elif damage == "removed":
            (folders[0] / "WRITES").unlink()
        else:
            (tmp_path / "mine").rename(folders[0] / "WRITES")
            (folders[0] / "WRITES-begun").unlink()
        with pytest.raises(IndexDamaged, match=r"cannot read `.*a/WRITES`"):
            log.last()
        with LogWriter(folders[0]) as writer, pytest.raises(IndexDamaged, match="a/WRITES"):
            writer.append([doc("b")])


def test_files_of_another_log_are_named(tmp_path):
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
        with LogWriter(folder) as writer:
            writer.append([doc("a", folder.name)])
            shutil.copy(folder / "WRITES-wal", tmp_path / f"{folder.name}-wal")
            shutil.copy(folder / "WRITES", tmp_path / f"{folder.name}-writes")
    shutil.copy(tmp_path / "a-writes", folders[0] / "WRITES")
    shutil.copy(tmp_path / "b-wal", folders[0] / "WRITES-wal")
    with pytest.raises(
        IndexDamaged, match=r"cannot read `.*a/WRITES` .WRITES-begun does not belong"
    ):
        list(WriteLog(folders[0]).rows())
    for name in ("WRITES-wal", "WRITES-shm"):
        (folders[0] / name).unlink(missing_ok=True)
    shutil.copy(tmp_path / "a-wal", folders[0] / "WRITES-wal")
    assert [row.id for row in WriteLog(folders[0]).rows()] == ["a"]
    (folders[0] / "WRITES-begun").unlink()
    (folders[0] / "WRITES-begun").mkdir()
    with pytest.raises(IndexDamaged, match=r"cannot read `.*WRITES-begun` .Is a directory"):
        WriteLog(folders[0]).last()


def test_rows_of_a_damaged_log_can_be_read_but_for_the_damaged_ones(tmp_path):
    log = WriteLog(tmp_path)
    with LogWriter(tmp_path) as writer:
        writer.append([doc("a"), doc("b")], ["c"])
    assert log.readable_rows() == list(log.rows())
    with closing(sqlite3.connect(log.path, isolation_level=None)) as connection:
        connection.execute("update writes set id = 'x' where id = 'a'")
    assert sorted(row.id for row in log.readable_rows()) == ["b", "c"]
    with pytest.raises(IndexDamaged):
        log.check()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("delete from batches where number = 1", "it has 2 rows, its batches 1"),
        ("delete from writes where seq = 1", "row 1 is missing"),
        ("delete from writes where seq = 2", "it has 1 rows, its batches 2"),
    ],
)
def test_missing_rows_and_batches_are_told(tmp_path, change, told):
    with LogWriter(tmp_path) as writer:
        writer.append([doc("a")])
        writer.append([doc("b")])
    with closing(sqlite3.connect(tmp_path / "WRITES", isolation_level=None)) as connection:
        connection.execute(change)
    with pytest.raises(IndexDamaged, match=told):
        WriteLog(tmp_path).check()


def test_a_log_can_be_read_between_its_readable_rows(tmp_path):
    log = WriteLog(tmp_path)
    with LogWriter(tmp_path) as writer:
        writer.append([doc("a"), doc("b")], [])
    done = threading.Event()

    def read():
        for row in log.readable_rows():
            assert row.seq <= log.last().seq
        done.set()

    threading.Thread(target=read, daemon=True).start()
    assert done.wait(60)
