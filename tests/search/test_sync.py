"""A sync: the index contains what the source contains, and equal documents are not written."""

import json
import shutil
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klsa_search import Document, build, open_index
from klsa_search.collection import open_collection
from klsa_search.errors import CollectionError, SettingsError, StoreError, WritingRefused
from klsa_search.indexing import refit
from klsa_search.search import sync as syncing
from klsa_search.search.sync import max_deletions
from klsa_search.search.writer import Writer
from klsa_search.storage.write_log import WriteLog
from klsa_search.storage.write_log_writer import LogWriter
from tests.support.examples import one_in

WORDS = ("wing", "bread", "flow", "yeast", "oven")
FIRST = [{"id": str(n), "text": f"{WORDS[n % 5]} {WORDS[n % 3]}", "year": n} for n in range(12)]


@pytest.fixture(scope="module")
def built(index_of):
    return index_of(FIRST, name="synced", dimensions=2).path.parent


@pytest.fixture
def index(copy_of):
    return copy_of(FIRST, name="synced", dimensions=2)


def contents(documents):
    """What is stored of each document, in which 1, 1.0 and True differ."""
    return {
        each.id: (each.title, each.text, json.dumps(dict(each.metadata), sort_keys=True))
        for each in documents
    }


def stored(index):
    with closing(open_index(index.path.parent)) as another:
        assert contents(another.live_documents()) == contents(index.live_documents())
    return contents(index.live_documents())


def batches_of(index):
    return len([each for each in WriteLog(index.path).batches() if each.undone is None])


values = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=3), st.lists(st.sampled_from(WORDS), max_size=2),
)  # fmt: skip
sources = st.dictionaries(
    st.sampled_from([*map(str, range(15)), "ü", "a\tb", "a\nb"]),
    st.fixed_dictionaries(
        {"text": st.sampled_from(WORDS)},
        optional={"title": st.sampled_from(WORDS), "year": values, "tags": values},
    ),
    max_size=8,
)


@one_in(3)
@given(history=st.lists(sources, min_size=1, max_size=2))
def test_any_history_of_syncs_equals_the_last_source(built, tmp_path_factory, history):
    folder = tmp_path_factory.mktemp("history")
    with closing(open_index(shutil.copytree(built, folder / "synced"))) as index:
        for source in history:
            records = [{"id": id_, **fields} for id_, fields in source.items()]
            wanted = contents(open_collection(records).documents())
            before = contents(index.live_documents())
            result = index.sync(records, max_delete="100%")
            assert contents(index.live_documents()) == wanted
            assert set(result.added) == wanted.keys() - before.keys()
            assert set(result.deleted) == before.keys() - wanted.keys()
            assert len(result.changed) + result.unchanged == len(wanted.keys() & before.keys())
            assert all(before[id_] != wanted[id_] for id_ in result.changed)
            again, count = index.sync(records, max_delete=0), batches_of(index)
            assert (again.added, again.changed, again.deleted) == ((), (), ())
            assert (again.unchanged, again.batches) == (len(wanted), 0)
            assert batches_of(index) == count
        stored(index)


def test_a_sync_is_one_batch_that_can_be_undone(index):
    before = stored(index)
    source = [*FIRST[3:], {"id": "3", "text": "other", "year": 3}, {"id": "new", "text": "new"}]
    source.remove(FIRST[3])
    result = index.sync(source)
    assert (result.added, result.changed) == (("new",), ("3",))
    assert (result.deleted, result.unchanged, result.batches) == (("0", "1", "2"), 8, 1)
    assert (index.drift.added, index.drift.deleted) == (2, 4)
    with LogWriter(index.path) as writer:
        writer.undo(1)
    index.refresh()
    assert stored(index) == before


def test_a_large_sync_is_several_batches_and_completes_when_repeated(index, monkeypatch):
    monkeypatch.setattr(syncing, "MAX_BATCH", 2)
    source = [{"id": str(n), "text": f"new {n}"} for n in range(4, 15)]
    write, done = Writer.write, []

    def failing(writer, *batch):
        if len(done) == 3:
            raise StoreError("the disk is full")
        done.append(write(writer, *batch))
        return done[-1]

    monkeypatch.setattr(Writer, "write", failing)
    with pytest.raises(StoreError):
        index.sync(source)
    assert not any(each.deleted for each in done)  # the last batch deletes
    monkeypatch.setattr(Writer, "write", write)
    result = index.sync(source)
    assert (len(result.changed) + len(result.added), result.unchanged) == (5, 6)
    assert (len(result.deleted), result.batches) == (4, 3)
    assert stored(index) == contents(open_collection(source).documents())


def test_a_dry_run_writes_nothing(index):
    before = stored(index)
    result = index.sync(FIRST[1:], dry_run=True)
    assert (result.deleted, result.unchanged, result.batches) == (("0",), 11, 0)
    assert (stored(index), batches_of(index)) == (before, 0)


def refused(index, source, **options):
    with pytest.raises(CollectionError) as failure:
        index.sync(source, **options)
    assert batches_of(index) == 0
    return str(failure.value)


def test_a_truncated_source_is_refused_before_anything_is_written(index):
    changed = [{"id": "0", "text": "changed"}]
    message = refused(index, changed)
    assert "has 1 document and index `synced` has 12, so 11 would be deleted" in message
    assert "allowed: 10 by default" in message
    assert "max_delete=11" in message
    assert "allowed: 2)" in refused(index, FIRST[3:], max_delete="20%")
    assert "would be deleted (allowed: 0)" in refused(index, FIRST[1:], max_delete=0)
    assert "no documents" in refused(index, [])
    assert "no documents" in refused(index, iter(()), max_delete=11)
    assert index.sync(FIRST[3:], max_delete="25%").deleted == ("0", "1", "2")
    assert index.sync(FIRST[4:], max_delete="1").deleted == ("3",)
    assert len(index.sync([], max_delete="100%").deleted) == 8
    assert index.sync([]).batches == 0


def test_a_bad_record_is_refused_before_anything_is_written(index, tmp_path):
    new = {"id": "new", "text": "new"}
    assert "is used before" in refused(index, [*FIRST, new, FIRST[0]])
    path = tmp_path / "export.jsonl"
    lines = [*map(json.dumps, [new, *FIRST]), '{"id": "cut']
    path.write_text("\n".join(lines))
    assert "export.jsonl:14" in refused(index, path)
    assert "no such file" in refused(index, tmp_path / "none.jsonl")
    result = index.sync(path, on_error="skip")
    assert (result.added, result.unchanged, result.skipped.count) == (("new",), 12, 1)


def test_a_field_that_the_source_lost_is_reported(index):
    lost = [{"id": each["id"], "text": each["text"]} for each in FIRST]
    assert index.sync([*lost[1:], FIRST[0]], dry_run=True).removed_fields == ()
    assert index.sync(lost).removed_fields == ("year",)
    assert index.sync(lost).removed_fields == ()
    assert index.sync(FIRST).removed_fields == ()


def test_a_field_keeps_its_type_while_no_document_has_it(index):
    index.sync([{**each, "seen": "x"} for each in FIRST])
    index.sync(FIRST)
    result = index.sync([{**each, "seen": 1.5} for each in FIRST])
    assert index.fields["seen"].type_mismatches == result.warnings.count == 12
    assert "the keyword field 'seen' has 1.5" in result.warnings.reasons[0]


def test_documents_need_no_columns_of_the_build(tmp_path):
    table = tmp_path / "tickets.csv"
    table.write_text("key,subject,body\n1,Belt,worn\n2,Horn,silent\n")
    with closing(build(table, name="a", home=tmp_path / "home", on_error="skip")) as index:
        result = index.sync([*index.live_documents(), Document(id="3", text="new")])
        assert (result.added, result.unchanged) == (("3",), 2)
        assert "3 bad records skipped, the first: document 1: no 'key'" in refused_after(
            index, [{"id": str(n), "text": "x"} for n in range(3)]
        )


def refused_after(index, source):
    with pytest.raises(CollectionError) as failure:
        index.sync(source)
    return str(failure.value)


@pytest.mark.parametrize(
    "bad", ["", "20 percent", "-1", "101%", "a", 0.5, "9" * 5000, "\N{ARABIC-INDIC DIGIT THREE}"]
)
def test_an_invalid_limit_is_refused(index, bad):
    with pytest.raises(SettingsError, match="max_delete"):
        index.sync(FIRST, max_delete=bad)


def test_limits_of_deletions():
    assert [max_deletions(None, n) for n in (0, 20, 1000)] == [10, 10, 200]
    assert [max_deletions(most, 50) for most in (3, "3", "10%", " 2.5 % ", "100%")] == [
        3, 3, 5, 1, 50,
    ]  # fmt: skip


def test_an_index_remembers_how_its_source_was_read(tmp_path):
    table = tmp_path / "tickets.csv"
    table.write_text("ticket,subject,notes\n1,Belt,worn\n2,Horn,silent\n")
    options = {"columns": {"id": "ticket", "title": "subject", "text": ["notes"]}}
    home = tmp_path / "home"
    with closing(build(table, name="tickets", home=home, on_error="skip", **options)) as index:
        assert index.manifest.reading == {"on_error": "skip", **options}
    refit(home / "tickets").close()
    table.write_text("ticket,subject,notes\n2,Horn,loud\n3,Fan,hot\n3,Fan,again\n")
    with closing(open_index(home / "tickets")) as index:
        result = index.sync(table)
        assert (result.added, result.changed, result.deleted) == (("3",), ("2",), ("1",))
        assert result.skipped.count == 1
        assert index.document("3").title == "Fan"
        with pytest.raises(CollectionError, match="is used before"):
            index.sync(table, on_error="stop")


def test_a_manifest_without_options_is_as_in_version_0_2(index):
    assert json.loads((index.path / "manifest.json").read_text())["reading"] == {}


def test_the_order_of_fields_does_not_count_as_a_change(index):
    source = [{"year": each["year"], "text": each["text"], "id": each["id"]} for each in FIRST]
    source[0] = {"id": "0", "text": FIRST[0]["text"], "b": 1, "a": 2, "year": 0}
    index.sync(source)
    source[0] = {"id": "0", "a": 2, "text": FIRST[0]["text"], "year": 0, "b": 1}
    assert index.sync(source).unchanged == 12
    source[0] = {**source[0], "b": 1.0}
    assert index.sync(source).changed == ("0",)  # equal in Python, not in JSON


def test_documents_of_python_can_be_a_source_and_snapshots_are_read_only(index):
    source = [Document(id=each["id"], text=each["text"], metadata={"year": each["year"]})
              for each in FIRST]  # fmt: skip
    assert index.sync(iter(source)).unchanged == 12
    with pytest.raises(StoreError, match="snapshot"):
        index.snapshot().sync(source)


def test_a_read_only_index_is_refused(tmp_path):
    with (
        closing(build(FIRST, name="paper", home=tmp_path, preset="paper")) as index,
        pytest.raises(WritingRefused),
    ):
        index.sync(FIRST)


def test_folders_are_compared_by_path(tmp_path):
    folder = tmp_path / "notes"
    folder.mkdir()
    for name in ("a.txt", "b.md", "c.txt"):
        (folder / name).write_text(f"text of {name}")
    with closing(build(folder, name="notes", home=tmp_path / "home")) as index:
        (folder / "c.txt").rename(folder / "d.txt")
        (folder / "a.txt").write_text("changed")
        (folder / ".a.txt.swp").write_text("hidden")
        (folder / "a.txt~").write_text("old")
        result = index.sync(folder)
        assert (result.added, result.changed, result.deleted, result.unchanged) == (
            ("d.txt",), ("a.txt",), ("c.txt",), 1,
        )  # fmt: skip
