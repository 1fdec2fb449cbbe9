"""Files of a folder that are read, files that are skipped, and links."""

import os
import subprocess
from zipfile import ZipFile

import pytest

from klsa_search.collection import open_collection
from klsa_search.collection.folder import Selection, walk
from klsa_search.errors import CollectionError
from tests.support.waiting import PATIENCE


def fill(folder, *names, text="prose"):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def ids(source, **options):
    return [document.id for document in open_collection(source, **options).documents()]


def test_files_of_a_folder_that_are_not_read_are_counted_by_kind(tmp_path):
    fill(tmp_path, "a.md", "b.txt", "deep/c.rst", ".hidden.html", ".git/config")
    fill(tmp_path, *(f"site/{number}.PNG" for number in range(3)), "b.exe", "Makefile", "x.tar.gz")
    os.mkfifo(tmp_path / "pipe")
    source = open_collection(tmp_path)
    assert source.unread.kinds == {
        ".png": 3,
        ".exe": 1,
        "without suffix": 1,
        ".tar.gz": 1,
        "special": 1,
    }
    assert source.unread.first[".png"] == "site/0.PNG"
    assert source.unread.count == 7
    assert source.unread.as_json()["count"] == 7
    assert len(list(source.documents())) == 3


def test_each_reading_counts_skipped_files_again(tmp_path):
    source = open_collection(fill(tmp_path, "a.md", "b.exe"))
    for names in ((), ("c.exe",)):
        fill(tmp_path, *names)
        list(source.files())
        assert source.unread.count == 1 + len(names)


def test_queries_next_to_a_folder_of_tables_are_read(tmp_path):
    fill(tmp_path, "a.jsonl", "b.jsonl", "queries.jsonl", "qrels/x.tsv", text='{"id": "1"}\n')
    fill(tmp_path, "README.md")
    assert open_collection(tmp_path).unread.kinds == {".md": 1}


def test_a_beir_folder_counts_all_files_but_corpus_queries_and_judgements(tmp_path):
    fill(tmp_path, "corpus.jsonl", "queries.jsonl", "qrels/test.tsv", text='{"_id": "1"}\n')
    fill(tmp_path, "more/corpus.jsonl", "notes.html")
    assert open_collection(tmp_path).unread.kinds == {".jsonl": 1, ".html": 1}
    assert open_collection(tmp_path / "corpus.jsonl").unread.count == 0


def test_a_smart_folder_counts_all_other_files(tmp_path):
    fill(tmp_path, "MED.ALL", text=".I 1\n.W\nwing\n")
    fill(tmp_path, "MED.QRY", "MED.REL", "MED.BLN", text="x\n")
    source = open_collection(tmp_path)
    assert (source.format, source.unread.kinds) == ("smart", {".bln": 1})


@pytest.mark.parametrize("source", ["python-docs", [{"id": "1", "text": "x"}]])
def test_without_a_folder_there_are_none(source):
    assert open_collection(source).unread.count == 0


def test_names_that_are_not_utf_8_can_be_shown(tmp_path):
    fill(tmp_path, "a.md")
    try:
        os.close(os.open(os.fsencode(tmp_path) + b"/caf\xe9.ht\xe9", os.O_CREAT))
    except OSError:
        pytest.skip("needs file names of any bytes")
    assert open_collection(tmp_path).unread.first == {".ht\ufffd": "caf\ufffd.ht\ufffd"}


def test_links_in_a_folder_are_followed_with_an_option_only(tmp_path):
    outside = fill(tmp_path / "outside", "secret.txt", "deep/more.txt")
    source = fill(tmp_path / "source", "a.txt")
    (source / "file.txt").symlink_to(outside / "secret.txt")
    (source / "folder").symlink_to(outside)
    (source / "broken.txt").symlink_to(tmp_path / "nowhere")
    (source / "loop.txt").symlink_to(source / "loop.txt")
    assert ids(source) == ["a.txt"]
    assert open_collection(source).unread.kinds == {"linked": 4}
    followed = open_collection(source, follow_links=True)
    assert [document.id for document in followed.documents()] == [
        "a.txt",
        "file.txt",
        "folder/deep/more.txt",
        "folder/secret.txt",
    ]
    assert followed.unread.kinds == {"special": 2}


def test_the_source_itself_may_be_a_link(tmp_path):
    fill(tmp_path / "source", "a.txt")
    (tmp_path / "link").symlink_to(tmp_path / "source")
    (tmp_path / "link.txt").symlink_to(tmp_path / "source" / "a.txt")
    assert ids(tmp_path / "link") == ["a.txt"]
    assert ids(tmp_path / "link.txt", format="text") == ["link.txt"]


def test_links_that_lead_in_circles_end(tmp_path):
    """Twelve folders that all link to all others: 12! ways, each folder once."""
    names = [f"{number:02d}" for number in range(12)]
    for name in names:
        fill(tmp_path / name, "a.txt")
    for name in names:
        for other in names:
            (tmp_path / name / f"to-{other}").symlink_to(tmp_path / other)
        (tmp_path / name / "up").symlink_to(tmp_path)
    found = list(walk(tmp_path, Selection(follow_links=True)))
    assert len(found) == 12
    assert {path.resolve() for path in found} == {tmp_path / name / "a.txt" for name in names}
    assert found == list(walk(tmp_path, Selection(follow_links=True)))
    assert len(ids(tmp_path, follow_links=True)) == 12


def test_a_folder_as_deep_as_a_path_may_be_is_walked(tmp_path):
    depth = 1_200
    folder = os.open(tmp_path, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=folder)
        inner = os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    os.close(os.open("a.txt", os.O_CREAT, dir_fd=folder))
    os.close(folder)
    assert len(list(walk(tmp_path))) == 1
    subprocess.run(
        ["rm", "-r", tmp_path / "d"], check=True, timeout=PATIENCE
    )  # too deep for pytest to remove


def test_a_folder_of_nothing_but_links_says_how_to_follow_them(tmp_path):
    fill(tmp_path / "blobs", "1", text='{"_id": "1", "text": "wing"}\n')
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "corpus.jsonl").symlink_to(tmp_path / "blobs" / "1")
    with pytest.raises(CollectionError, match=r"--follow-links"):
        open_collection(tmp_path / "source")
    source = open_collection(tmp_path / "source", follow_links=True)
    assert (source.format, len(list(source.documents()))) == ("beir", 1)


@pytest.mark.parametrize("links", [False, True])
def test_queries_and_judgements_behind_links_are_followed_likewise(tmp_path, links):
    fill(tmp_path / "source", "corpus.jsonl", text='{"_id": "1", "text": "wing"}\n')
    fill(tmp_path / "outside", "q", text='{"_id": "q", "text": "wing"}\n')
    fill(tmp_path / "outside" / "qrels", "test.tsv", text="q\t1\t1\n")
    (tmp_path / "source" / "queries.jsonl").symlink_to(tmp_path / "outside" / "q")
    (tmp_path / "source" / "qrels").symlink_to(tmp_path / "outside" / "qrels")
    source = open_collection(tmp_path / "source", follow_links=links)
    assert len(source.queries()) == len(source.judgements()) == int(links)


def test_text_after_many_files_that_are_none_is_found(tmp_path):
    fill(tmp_path, *(f"a{number}.png" for number in range(60)), "b.md", text="<p>")
    source = open_collection(tmp_path)
    assert (source.format, source.unread.kinds) == ("text", {".png": 60})


@pytest.mark.parametrize("name", ["node_modules", "__pycache__", "bower_components"])
def test_folders_of_dependencies_are_left_out_and_counted(tmp_path, name):
    package = tmp_path / "web" / name / "x"
    package.mkdir(parents=True)
    (package / "README.md").write_text("# readme of package x")
    (tmp_path / "a.md").write_text("# mine")
    source = open_collection(tmp_path)
    assert [each.id for each in source.documents()] == ["a.md"]
    assert source.unread.kinds == {f"{name} folder": 1}
    assert source.unread.first == {f"{name} folder": f"web/{name}"}
    assert [each.id for each in open_collection(package.parent).documents()] == ["x/README.md"]


def test_patterns_leave_out_files_and_folders(tmp_path):
    fill(tmp_path, "a.md", "b.log.txt", "drafts/c.md", "deep/drafts/d.md", "deep/old.txt")
    source = open_collection(tmp_path, format="text", exclude=["drafts/", "*.txt", "!old.txt"])
    assert [document.id for document in source.documents()] == ["a.md", "deep/old.txt"]
    assert source.unread.kinds == {"excluded by drafts/": 2, "excluded by *.txt": 1}
    assert source.options == {"format": "text", "exclude": ["drafts/", "*.txt", "!old.txt"]}
    assert ids(tmp_path, format="text", exclude="deep") == ["a.md", "b.log.txt", "drafts/c.md"]
    assert ids(tmp_path, format="text", exclude="/drafts")[-1] == "deep/old.txt"


def test_a_pattern_that_leaves_out_nothing_is_reported(tmp_path):
    (tmp_path / "a.md").write_text("pump")
    (tmp_path / "a.log").write_text("valve")
    source = open_collection(tmp_path, format="text", exclude=["*.log", "draft/", "!b.log"])
    assert [document.id for document in source.documents()] == ["a.md"]
    assert [note for note in source.notes if "pattern" in note] == [
        f"{tmp_path.name}: the pattern 'draft/' leaves out nothing; check the spelling"
    ]


def test_the_lock_of_an_open_document_of_office_is_hidden(tmp_path):
    (tmp_path / "a.md").write_text("pump")
    (tmp_path / "~$a.docx").write_bytes(b"\x03Ann")
    source = open_collection(tmp_path)
    assert [document.id for document in source.documents()] == ["a.md"]
    assert source.unread.count == 0


def test_gitignore_files_leave_out_what_is_below_them(tmp_path):
    fill(tmp_path, "a.md", "build/b.md", "notes/c.md", "notes/d.md", "notes/build/e.md", "d.md")
    fill(tmp_path, ".gitignore", text="# made by tools\nbuild/\n!\n[z-a]\n")
    fill(tmp_path / "notes", ".gitignore", text="/d.md\n!build/\n")
    source = open_collection(tmp_path, format="text")
    names = ["a.md", "d.md", "notes/build/e.md", "notes/c.md"]
    assert [document.id for document in source.documents()] == names
    assert source.unread.kinds == {"ignored by .gitignore": 2}
    assert source.unread.first["ignored by .gitignore"] == "build"
    assert len(ids(tmp_path, format="text", exclude=["!*"])) == 6


def test_patterns_read_folders_of_packages(tmp_path):
    fill(tmp_path, "a.md", "node_modules/b.md", "node_modules/c.js")
    assert ids(tmp_path) == ["a.md"]
    read = ids(tmp_path, exclude=["!node_modules/", "*.js"])
    assert read == ["a.md", "node_modules/b.md"]


def test_patterns_hold_in_archives(tmp_path):
    with ZipFile(tmp_path / "a.zip", "w") as archive:
        for name in ("a.md", "drafts/b.md", "node_modules/x/c.md"):
            archive.writestr(name, "prose")
    source = open_collection(tmp_path / "a.zip", exclude=["drafts/"])
    assert [document.id for document in source.documents()] == ["a.md"]
    assert source.unread.kinds == {"excluded by drafts/": 1, "node_modules folder": 1}
    fill(tmp_path, "b.md")
    assert ids(tmp_path, exclude=["a.zip/drafts"]) == ["a.zip/a.md", "b.md"]


def test_a_folder_whose_files_are_all_ignored_is_refused(tmp_path):
    fill(tmp_path, "a.md", "b.md")
    fill(tmp_path, ".gitignore", text="*\n")
    with pytest.raises(CollectionError, match=r"\.gitignore names are left out; --exclude '!\*'"):
        open_collection(tmp_path)
    assert ids(tmp_path, exclude=["!*"]) == ["a.md", "b.md"]


def test_tables_and_collections_of_a_folder_are_left_out_likewise(tmp_path):
    for name in ("2023.jsonl", "2024.jsonl"):
        fill(tmp_path, name, text=f'{{"id": "{name}", "text": "prose"}}\n')
    assert ids(tmp_path, exclude=["2023*"]) == ["2024.jsonl"]
    fill(tmp_path / "beir", "corpus.jsonl", text='{"_id": "1"}\n')
    fill(tmp_path / "beir", "queries.jsonl", text='{"_id": "q", "text": "prose"}\n')
    assert open_collection(tmp_path / "beir").queries()
    assert not open_collection(tmp_path / "beir", exclude=["queries.jsonl"]).queries()


def test_unusable_patterns_are_refused(tmp_path):
    fill(tmp_path, "a.jsonl", text='{"id": "1", "text": "prose"}\n')
    with pytest.raises(CollectionError, match=r"exclude: '\[z-a\]' is not a pattern; write it"):
        open_collection(tmp_path, exclude=["[z-a]"])
    with pytest.raises(CollectionError, match="exclude is for folders and archives"):
        open_collection(tmp_path / "a.jsonl", exclude=["*.log"])
    for option, value in (("columns", ["title"]), ("exclude", [5]), ("exclude", None), ("data", 5)):
        with pytest.raises(CollectionError, match=rf"^{option}\b.* (give|must be)") as failure:
            open_collection(tmp_path, **{option: value})
        assert failure.value.field == option
    with pytest.raises(CollectionError, match="unknown option 'excluded'; did you mean `exclude`"):
        open_collection(tmp_path, excluded=["*.log"])
