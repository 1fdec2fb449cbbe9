"""klsa-index sync --watch: each change is in the index, whatever happens to the source."""

import pytest

from klsa_search import build, open_index
from klsa_search.cli.sync import follow, ticks_of
from klsa_search.collection import open_collection
from klsa_search.errors import IndexNotFound
from klsa_search.indexing import refit
from klsa_search.storage.generations import index_lock
from klsa_search.storage.maintenance import delete_index


@pytest.fixture
def notes(tmp_path):
    folder = tmp_path / "notes"
    folder.mkdir()
    for name in ("a.txt", "b.txt", "c.txt"):
        (folder / name).write_text(f"text of {name}")
    return folder


@pytest.fixture
def index(notes, tmp_path):
    build(notes, name="notes", home=tmp_path / "home").close()
    with open_index(tmp_path / "home" / "notes") as opened:
        yield opened


def stored(index):
    return {document.id: document.text for document in index.live_documents()}


def files(folder):
    found = (path for path in folder.rglob("*.txt") if not path.name.startswith("."))
    return {path.relative_to(folder).as_posix(): path.read_text() for path in found}


def watched(index, source, *changes, **reading):
    """Follow a source while it is changed; return the results. Each change is a function."""
    results = []

    def ticks():
        yield True
        for change in changes:
            change()
            yield True
            yield False

    follow(index, open_collection(source, **reading), ticks(), results.append)
    return results


def test_changes_are_in_the_index(index, notes, capsys):
    def edit():
        (notes / "a.txt").write_text("other")

    def save_as_editors_do():
        (notes / ".b.txt.swp").write_text("swap")
        (notes / "b.txt~").write_text("backup")
        (notes / ".tmp").write_text("new text")
        (notes / ".tmp").rename(notes / "b.txt")

    def rename():
        (notes / "c.txt").rename(notes / "d.txt")

    def move():
        (notes / "sub").mkdir()
        (notes / "d.txt").rename(notes / "sub" / "d.txt")

    def many():
        for number in range(50):
            (notes / f"many{number}.txt").write_text(f"number {number}")

    for change in (edit, save_as_editors_do, rename, move, many):
        first, result = watched(index, notes, change)
        assert first.batches == 0
        assert result.batches == 1
        assert stored(index) == files(notes)
    assert capsys.readouterr().err == ""


def test_writes_of_others_are_compared_with_all_files(index, notes):
    def patch():
        with open_index(index.path.parent) as other:
            other.patch("a.txt", {"text": "of another"})

    def edit():
        (notes / "b.txt").write_text("other")

    results = watched(index, notes, patch, edit)
    assert stored(index) == files(notes)
    assert [result.changed for result in results] == [(), ("a.txt",), ("b.txt",)]


def test_writes_of_others_before_a_refit_are_compared_too(index, notes):
    def patch():
        with open_index(index.path.parent) as other:
            other.patch("a.txt", {"text": "of another"})
        refit(index.path.parent).close()
        (notes / "b.txt").write_text("other")

    watched(index, notes, patch)
    assert stored(index) == files(notes)


def test_a_restart_begins_with_a_sync(index, notes):
    (notes / "a.txt").unlink()
    (result,) = watched(index, notes)
    assert result.deleted == ("a.txt",)
    assert stored(index) == files(notes)


def test_failures_of_the_source_are_reported_once_and_survived(index, notes, capsys):
    away = notes.with_name("away")
    results = watched(
        index,
        notes,
        lambda: notes.rename(away),
        lambda: None,
        lambda: (away / "a.txt").write_text("other"),
        lambda: away.rename(notes),
    )
    assert stored(index) == files(notes)
    assert [result.changed for result in results] == [(), ("a.txt",)]
    (line,) = capsys.readouterr().err.splitlines()
    assert "was removed" in line


def test_a_truncated_folder_deletes_nothing(index, notes):
    texts = files(notes)

    def empty():
        for name in texts:
            (notes / name).unlink()

    def restore():
        for name in texts:
            (notes / name).write_text(f"again {name}")

    _, result, _ = watched(index, notes, empty, restore)
    assert stored(index) == files(notes)
    assert "has no documents" in result.refusal
    assert result.kept == tuple(sorted(texts))


def test_one_broken_file_does_not_keep_the_others_out(index, notes, tmp_path):
    """A file that cannot be read is reported, also while it stays as it is."""

    def breaks():
        (notes / "b.txt").write_bytes(b"\xff\xfe\x00broken" * 9)
        (notes / "b.txt").rename(notes / "b.pdf")
        (notes / "d.txt").write_text("added")

    def goes_on():
        (notes / "a.txt").write_text("changed")
        (notes / "c.txt").unlink()

    def is_removed():
        (notes / "b.pdf").unlink()

    results = watched(index, notes, breaks, goes_on, is_removed, on_error="skip")
    assert [result.added for result in results] == [(), ("d.txt",), (), ()]
    assert [result.changed for result in results] == [(), (), ("a.txt",), ()]
    assert [result.kept for result in results] == [(), ("b.txt",), ("b.txt", "c.txt"), ()]
    assert [result.skipped.count for result in results] == [0, 1, 1, 0]
    assert "1 record of the source cannot be read" in results[1].refusal
    assert results[3].deleted == ("b.txt", "c.txt")
    assert stored(index) == files(notes)


def test_refused_deletions_do_not_keep_changes_out(notes, tmp_path, shell):
    for number in range(39):
        (notes / f"{number}.txt").write_text(f"number {number}")
    build(notes, name="many", home=tmp_path / "home").close()
    with open_index(tmp_path / "home" / "many") as index:

        def delete_and_edit():
            for number in range(11):
                (notes / f"{number}.txt").unlink()
            (notes / "a.txt").write_text("changed")

        def restore():
            (notes / "0.txt").write_text("number 0")

        first, second, third = watched(index, notes, delete_and_edit, restore)
        assert (first.kept, len(second.kept), third.kept) == ((), 11, ())
        assert second.changed == ("a.txt",)
        assert "11 would be deleted (allowed: 10 by default)" in second.refusal
        assert len(third.deleted) == 10
        assert stored(index) == files(notes)


def test_the_command_reports_what_it_did_not_delete(notes, index, tmp_path, shell, monkeypatch):
    monkeypatch.setattr("klsa_search.cli.sync.require", lambda _: None)
    monkeypatch.setattr("klsa_search.cli.sync.ticks_of", lambda _: [True])
    (notes / "b.txt").write_bytes(b"%PDF-")
    (notes / "b.txt").rename(notes / "b.pdf")
    (notes / "a.txt").write_text("changed")
    done = shell("klsa-index", "sync", "notes", notes, "--home", tmp_path / "home", "--watch")
    assert (done.code, "1 changed, 0 deleted" in done.out) == (0, True)
    assert "not deleted: 1 document, because 1 record of the source cannot be read" in done.err
    assert "b.pdf" in done.err


def test_a_locked_index_is_tried_again_without_a_change(index, notes, capsys, monkeypatch):
    monkeypatch.setattr("klsa_search.storage.generations.WRITE_TIMEOUT", 0.01)

    def ticks():
        yield True
        (notes / "a.txt").write_text("other")
        with index_lock(index.path.parent):
            yield True
            yield False
        yield False

    follow(index, open_collection(notes), ticks(), lambda _: None)
    assert stored(index) == files(notes)
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_deleted_index_ends_it(index, notes):
    def ticks():
        delete_index(index.path.parent)
        yield True

    with pytest.raises(IndexNotFound):
        follow(index, open_collection(notes), ticks(), lambda _: None)


def test_sources_that_cannot_be_watched_are_refused(shell, tmp_path, notes, index, monkeypatch):
    home = ("--home", tmp_path / "home", "--watch")
    assert shell("klsa-index", "sync", "notes", notes, *home, "--dry-run").code == 2
    assert shell("klsa-index", "sync", "notes", notes, *home, "--json").code == 2
    monkeypatch.setattr("klsa_search.core.installation.find_spec", lambda _: None)
    done = shell("klsa-index", "sync", "notes", notes, *home)
    assert (done.code, "klsa-search[watch]" in done.err) == (1, True)


@pytest.mark.slow
def test_the_system_reports_changes(tmp_path):
    pytest.importorskip("watchfiles", reason="needs watchfiles")
    folder, file = tmp_path / "folder", tmp_path / "table.csv"
    folder.mkdir()
    file.write_text("id,text\n")

    def changed(ticks):
        return any(next(ticks) for _ in range(20))

    in_folder, of_file = ticks_of(folder), ticks_of(file)
    assert next(in_folder)
    assert next(of_file)
    (folder / "a.txt").write_text("new")
    assert changed(in_folder)
    (folder / ".hidden").write_text("new")
    assert not next(in_folder)
    file.with_name("new").write_text("id,text\n1,new\n")
    file.with_name("new").rename(file)  # as editors and exports replace a file
    assert changed(of_file)
    (folder / "a.txt").unlink()
    assert changed(in_folder)
    folder.rename(tmp_path / "away")
    assert changed(in_folder)
    (tmp_path / "away").rename(folder)
    assert changed(in_folder)
    assert not all(next(in_folder) for _ in range(20))  # it is quiet again
    (folder / "b.txt").write_text("new")
    assert changed(in_folder)
    in_folder.close()
    of_file.close()
