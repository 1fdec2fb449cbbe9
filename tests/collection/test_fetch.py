import errno
import hashlib
import io
import os
import tarfile
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from klsa_search.collection import fetch, public_collections
from klsa_search.errors import FetchError
from tests.support.waiting import PATIENCE

FILES = {
    "cran.all.1400": b".I 1\n.W\na\n",
    "cran.qry": b".I 1\r\n.W\r\na\r\n",
    "cranqrel": b"1 1 2 \n",
}


def tar(*members):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            if isinstance(content, bytes):
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
            else:
                info.type, info.linkname = content
                archive.addfile(info)
    return out.getvalue()


GOOD = tar(*FILES.items(), ("cranqrel.readme", b"read me"))


@pytest.fixture(autouse=True)
def small_cran(tmp_path, monkeypatch):
    """A cran of three lines in the place of the real one, which is not ours to copy."""
    sums = {}
    for name, content in FILES.items():
        (tmp_path / "file").write_bytes(content)
        sums["cran.qrels" if name == "cranqrel" else name] = public_collections.text_sum(
            tmp_path / "file"
        )
    cran = public_collections.PublicCollection(
        archive="cran/cran.tar.gz", sums=sums, aliases={"cranqrel": "cran.qrels"}
    )
    monkeypatch.setitem(public_collections.PUBLIC, "cran", cran)


@pytest.fixture
def server():
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.server.asked.append(self.path)
            body, status, length = self.server.answer
            self.send_response(status)
            if length is not None:
                self.send_header("Content-Length", str(length))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        running.asked = []
        running.url = f"http://127.0.0.1:{running.server_port}/collections"
        running.give = lambda body, status=200, length=None: setattr(
            running, "answer", (body, status, length)
        )
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield running
        running.shutdown()
        thread.join(PATIENCE)


def test_fetch_once_and_not_again(server, tmp_path):
    server.give(GOOD, length=len(GOOD))
    seen = []
    home = tmp_path / "new" / "home"
    folders = fetch(
        ["cran", "cran-1837"], home, base_url=server.url, progress=lambda *a: seen.append(a)
    )
    assert folders == [home / "cran"]
    assert sorted(file.name for file in (home / "cran").iterdir()) == [
        "cran.all.1400",
        "cran.qrels",
        "cran.qry",
    ]
    assert seen == [("cran", len(GOOD), len(GOOD))]
    assert fetch(["cran"], home, base_url=server.url) == folders
    assert server.asked == ["/collections/cran/cran.tar.gz"]
    assert [path.name for path in home.iterdir()] == ["cran"]


@pytest.mark.parametrize("name", sorted(public_collections.PUBLIC))
def test_every_collection_comes_from_its_archive(server, tmp_path, monkeypatch, name):
    public = public_collections.PUBLIC[name]
    files = {file: f"{file}\n".encode() for file in public.sums}
    sums = {file: hashlib.sha256(body).hexdigest() for file, body in files.items()}
    monkeypatch.setitem(public_collections.PUBLIC, name, replace(public, sums=sums))
    archived = {file: there for there, file in public.aliases.items()}
    server.give(tar(*((archived.get(file, file), body) for file, body in files.items())))
    (folder,) = fetch([name], tmp_path, base_url=server.url)
    assert server.asked == [f"/collections/{public.archive}"]
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == files


def test_a_damaged_folder_is_mended_and_other_files_stay(server, tmp_path):
    server.give(GOOD)
    (tmp_path / "cran").mkdir()
    (tmp_path / "cran" / "cran.qry").write_text("damaged")
    (tmp_path / "cran" / "mine").write_text("mine")
    fetch(["cran"], tmp_path, base_url=server.url)
    assert (tmp_path / "cran" / "cran.qry").read_bytes() == FILES["cran.qry"]
    assert (tmp_path / "cran" / "mine").read_text() == "mine"


def test_files_may_lie_in_a_folder_with_other_line_endings(server, tmp_path):
    unix = [(f"cran/{name.upper()}", body.replace(b"\r", b"")) for name, body in FILES.items()]
    other = ("cran/x", (tarfile.SYMTYPE, "/etc")), ("../y", b"y")  # neither is written
    folder = ("cran", (tarfile.DIRTYPE, ""))
    server.give(tar(folder, *unix[:2], ("cran/cranqrel", unix[2][1]), *other))
    fetch(["cran"], tmp_path, base_url=server.url)
    assert {path.name for path in (tmp_path / "cran").iterdir()} == {
        "cran.all.1400",
        "cran.qry",
        "cran.qrels",
    }


BAD = {
    "sum": (tar(*{**FILES, "cran.qry": b".I 1\n.W\nb\n"}.items()), "sum of cran.qry is wrong"),
    "missing": (tar(("cran.qry", FILES["cran.qry"])), "cran.all.1400 is missing"),
    "truncated": (GOOD[: len(GOOD) // 2], "not a complete tar archive"),
    "not a tar": (b"<html>moved</html>", "not a complete tar archive"),
    "traversal": (tar(*FILES.items(), ("../cran.qry", b"x")), "sum of cran.qry is wrong"),
    "absolute": (tar(*FILES.items(), ("/tmp/cran.qry", b"x")), "sum of cran.qry is wrong"),
    "symlink": (tar(("cran.qry", (tarfile.SYMTYPE, "/etc/passwd"))), "is missing"),
    "hard link": (tar(("cran.qry", (tarfile.LNKTYPE, "/etc/passwd"))), "is missing"),
    "device": (tar(("cran.qry", (tarfile.CHRTYPE, ""))), "is missing"),
}


@pytest.mark.parametrize("case", sorted(BAD))
def test_bad_archives_leave_everything_as_it_was(server, tmp_path, case):
    body, reason = BAD[case]
    server.give(body)
    (tmp_path / "home" / "cran").mkdir(parents=True)
    (tmp_path / "home" / "cran" / "cran.qry").write_text("old")
    with pytest.raises(FetchError, match=reason):
        fetch(["cran"], tmp_path / "home", base_url=server.url)
    left = [path.relative_to(tmp_path / "home") for path in (tmp_path / "home").rglob("*")]
    assert sorted(map(str, left)) == ["cran", "cran/cran.qry"]
    assert (tmp_path / "home" / "cran" / "cran.qry").read_text() == "old"
    assert not (tmp_path / "cran.qry").exists()


def test_a_download_that_is_not_an_archive_is_one_sentence(server, tmp_path):
    server.give(b"<html>moved</html>")
    with pytest.raises(FetchError) as caught:
        fetch(["cran"], tmp_path, base_url=server.url)
    assert "\n" not in caught.value.message
    assert caught.value.message.endswith("(file could not be opened successfully); try again")


def test_too_large_an_archive_or_member(server, tmp_path, monkeypatch):
    server.give(GOOD)
    monkeypatch.setattr(public_collections, "LARGEST", 100)
    with pytest.raises(FetchError, match="larger than 100 bytes"):
        fetch(["cran"], tmp_path, base_url=server.url)
    bomb = tar(("cran.qry", b"\0" * 100_000))
    server.give(bomb)
    monkeypatch.setattr(public_collections, "LARGEST", len(bomb) + 1)
    with pytest.raises(FetchError, match="a file of 100,000 bytes"):
        fetch(["cran"], tmp_path, base_url=server.url)


def test_failing_downloads_name_the_address_and_the_next_step(server, tmp_path):
    server.give(b"", status=404)
    with pytest.raises(FetchError, match=r"cran/cran.tar.gz .*Not Found.* yourself"):
        fetch(["cran"], tmp_path, base_url=server.url)
    server.give(GOOD[:50], length=len(GOOD))
    with pytest.raises(FetchError, match=r"not a complete tar archive .*try again"):
        fetch(["cran"], tmp_path, base_url=server.url)


def test_no_network(tmp_path, refusing_port):
    base = f"http://127.0.0.1:{refusing_port}"
    with pytest.raises(FetchError, match=rf"{base}/.*refused.*unpack it into"):
        fetch(["cran"], tmp_path, base_url=base)


@pytest.mark.parametrize("step", ["download", "unpack"])
def test_a_full_disk_is_reported_as_such(server, tmp_path, monkeypatch, step):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    server.give(GOOD)
    if step == "unpack":
        monkeypatch.setattr(public_collections.Path, "write_bytes", full)
    with pytest.raises(FetchError, match=r"cannot write .*No space left on device.*free space"):
        fetch(
            ["cran"],
            tmp_path / "data",
            base_url=server.url,
            progress=full if step == "download" else None,
        )


def test_unknown_names_and_unwritable_homes(tmp_path):
    with pytest.raises(FetchError, match="'trec-8'; the collections are: cacm"):
        fetch(["trec-8"], tmp_path)
    (tmp_path / "home").write_text("a file")
    with pytest.raises(FetchError, match="cannot write"):
        fetch(["cran"], tmp_path / "home", base_url="http://127.0.0.1:9")


def test_the_real_files_have_the_sums_of_the_table(collections_home, monkeypatch):
    monkeypatch.undo()
    names = ["cran", "cisi", "cacm", "med"]
    folders = fetch(names, collections_home, base_url="http://127.0.0.1:9")
    assert [folder.name for folder in folders] == names


def test_text_sum_is_blind_to_blanks_only(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"a \r\n\r\n b\r\n\r\n")
    assert public_collections.text_sum(path) == hashlib.sha256(b"a\n\n b\n").hexdigest()
    path.write_bytes(b"a\n\nb\n")
    assert public_collections.text_sum(path) != hashlib.sha256(b"a\n\n b\n").hexdigest()
