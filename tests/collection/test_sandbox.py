"""Files made to exhaust memory, time or output of a parser, or to crash it."""

import gzip
import os
import signal
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from klsa_search.collection import lines as lines_module
from klsa_search.collection import open_collection
from klsa_search.collection.files import plain, sandbox
from klsa_search.collection.files.content import Unreadable
from klsa_search.collection.files.formats import format_of
from klsa_search.collection.files.sandbox import Limits, Sandbox
from klsa_search.core.child_processes import start_worker
from klsa_search.errors import CollectionError
from tests.support.waiting import PATIENCE, wait_until

from .test_files import docx

ATTRIBUTES = "<p " + " ".join(f"a{n}=1" for n in range(60_000)) + ">leak"
"""Attributes of one tag, each of which libxml2 compares with all before it."""


def pdf_bomb(size):
    """A page whose content is unpacked to `size` bytes."""
    content = zlib.compress(b"BT /F1 12 Tf (pump) Tj ET\n" + b"q " * (size // 2))
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R/Resources<<>>>>",
        b"<</Filter/FlateDecode/Length %d>>\nstream\n%s\nendstream" % (len(content), content),
    ]
    made = b"%PDF-1.4\n"
    for number, body in enumerate(objects, start=1):
        made += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    return made + b"trailer\n<</Root 1 0 R>>\n%%EOF\n"


def read(parser, path):
    return list(parser.read(format_of(path), path, None))


@pytest.fixture
def limited(monkeypatch):
    def limited(**limits):
        monkeypatch.setattr(sandbox, "LIMITS", Limits(**limits))

    return limited


@pytest.mark.slow
def test_a_file_that_takes_too_much_memory_is_refused(tmp_path, limited):
    limited(memory=2**26)
    (tmp_path / "a.pdf").write_bytes(pdf_bomb(2**26))
    (tmp_path / "b.html.gz").write_bytes(gzip.compress(bytes(2**27), 1))
    (tmp_path / "c.rst").write_text("The pump leaks.")
    source = open_collection(tmp_path, on_error="skip")
    assert [document.id for document in source.documents()] == ["c.rst"]
    first, second = source.problems.reasons
    assert "a.pdf:1: " in first
    assert "64 MiB" in first
    assert "b.html.gz:1: takes too much memory (more than 64 MiB)" in second
    with pytest.raises(CollectionError, match=r"b\.html\.gz:1: takes too much .*64 MiB.*--on-err"):
        list(open_collection(tmp_path / "b.html.gz", format="text").documents())


def test_a_file_that_takes_too_long_is_refused(tmp_path, limited):
    limited(seconds=0.3)
    (tmp_path / "a.html").write_text(ATTRIBUTES)
    (tmp_path / "b.rst").write_text("The pump leaks.")
    source = open_collection(tmp_path, on_error="skip")
    assert [document.id for document in source.documents()] == ["b.rst"]
    [problem] = source.problems.reasons
    assert problem.endswith("a.html:1: takes too long (more than 0.3 s of processor time)")


def test_a_file_of_too_much_text_is_refused(tmp_path, limited):
    limited(characters=20)
    (tmp_path / "a.rst").write_text("The pump leaks, and it hums.")
    with pytest.raises(CollectionError, match=r"a\.rst:1: is too large \(more than 20 characters"):
        list(open_collection(tmp_path, format="text").documents())


def test_one_process_reads_all_files_until_it_has_to_be_ended(tmp_path, monkeypatch):
    started = []
    monkeypatch.setattr(
        sandbox,
        "start_worker",
        lambda module, **options: started.append(start_worker(module, **options)) or started[-1],
    )
    (tmp_path / "a.rst").write_text("The pump leaks.")
    (tmp_path / "b.rst").write_bytes(b"\0")
    with Sandbox() as parser:
        [content] = read(parser, tmp_path / "a.rst")
        assert content.text == "The pump leaks."
        with pytest.raises(Unreadable, match="not text"):
            read(parser, tmp_path / "b.rst")
        assert read(parser, tmp_path / "a.rst") == [content]
        [process] = started
        process.kill()
        process.wait(PATIENCE)
        with pytest.raises(Unreadable, match="damaged or takes too much memory"):
            read(parser, tmp_path / "a.rst")
        assert read(parser, tmp_path / "a.rst") == [content]
        assert len(started) == 2
    assert started[-1].returncode == -signal.SIGKILL


PARENT = """
import sys
from pathlib import Path
from klsa_search.collection.files.formats import format_of
from klsa_search.collection.files.sandbox import Sandbox
parser = Sandbox()
print(parser._started().pid, flush=True)
path = Path(sys.argv[1])
list(parser.read(format_of(path), path, None))
"""


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")
def test_the_process_ends_with_its_parent_while_it_parses(tmp_path):
    (tmp_path / "a.html").write_text(ATTRIBUTES)
    command = [sys.executable, "-c", PARENT, str(tmp_path / "a.html")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as parent:
        child = int(parent.stdout.readline())
        parent.kill()
    wait_until(lambda: not Path(f"/proc/{child}").exists())


def test_a_script_without_a_guard_reads_a_folder(tmp_path):
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "a.rst").write_text("The pump leaks.")
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\n"
        "from klsa_search.collection import open_collection\n"
        "print(len(list(open_collection(sys.argv[1]).documents())))\n"
    )
    assert (
        subprocess.check_output([sys.executable, script, folder], text=True, timeout=PATIENCE)
        == "1\n"
    )


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_a_pipe_or_a_device_is_refused_at_once(tmp_path, make):
    make(tmp_path / "a.txt")
    with pytest.raises(CollectionError, match="a pipe or device"):
        open_collection(tmp_path / "a.txt", format="text")
    (tmp_path / "b.txt").write_text("The pump leaks.")
    source = open_collection(tmp_path, format="text", follow_links=True)
    assert [document.id for document in source.documents()] == ["b.txt"]
    assert source.unread.kinds == {"special": 1}


def test_paragraphs_within_paragraphs_are_read_once(tmp_path):
    words = [f"word{number}" for number in range(3000)]
    body = "".join(f"<w:p><w:r><w:t>{word}</w:t></w:r>" for word in words) + "</w:p>" * len(words)
    (tmp_path / "a.docx").write_bytes(docx(body))
    [document] = open_collection(tmp_path, format="text").documents()
    assert document.text.split() == words


def test_a_line_or_a_text_that_unpacks_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(lines_module, "LONGEST_LINE", 2**20)
    monkeypatch.setattr(plain, "LARGEST", 10)
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(b'{"id": "' + bytes(2**21)))
    with pytest.raises(CollectionError, match=r"a\.jsonl\.gz:1: the line is too large .*1 MiB"):
        list(open_collection(tmp_path / "a.jsonl.gz", format="jsonl").documents())
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(b"pump\n" * 3))
    with pytest.raises(CollectionError, match=r"b\.txt\.gz:3: is too large \(more than 10 char"):
        list(open_collection(tmp_path / "b.txt.gz", format="text").documents())


def test_trec_without_ends_of_tags_is_read_in_linear_time(tmp_path):
    path = tmp_path / "a.trec"
    path.write_text(f"<DOC>\n<DOCNO>1</DOCNO>\n<TEXT>pump <{'a' * 300_000}\n</TEXT>\n</DOC>\n")
    [document] = open_collection(path, format="trec").documents()
    assert document.text.startswith("pump")
    path.write_text("<DOC>\n" * 10_000)
    with pytest.raises(CollectionError, match="unknown format"):
        open_collection(path)
