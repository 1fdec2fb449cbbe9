"""Folders that mix texts, tables and ZIP archives."""

import json
import stat
import zipfile
from dataclasses import replace

import pytest

import klsa_search as klsa
from klsa_search.collection import open_collection
from klsa_search.collection.files import archives, reading
from klsa_search.collection.folder import FileCache
from klsa_search.collection.opened_collection import unread_text
from klsa_search.core import installation
from klsa_search.errors import CollectionError, MissingExtra

from .test_tables import workbook

TICKETS = "id,title,text,kind\nT1,Leak,The pump leaks.,bug\nT2,Noise,The pump hums.,bug\n"


def fill(folder, **files):
    for name, content in files.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def pack(path, compression=zipfile.ZIP_DEFLATED, **files):
    with zipfile.ZipFile(path, "w", compression) as packed:
        for name, content in files.items():
            packed.writestr(name.replace("__", "/").replace("_", "."), content)
    return path


def ids(source, **options):
    return [document.id for document in open_collection(source, **options).documents()]


def test_rows_of_tables_are_documents_among_the_files(tmp_path):
    fill(
        tmp_path,
        a_md="# Pumps",
        b__tickets_csv=TICKETS,
        c_tsv="title\ttext\nRoof\tIt leaks.\n",
        d_jsonl='{"id": 7, "text": "One."}\n{"id": 8, "text": "Two."}\n',
        e_json='[{"subject": "Hose", "body": "It is worn."}]',
    )
    source = open_collection(tmp_path)
    documents = {document.id: document for document in source.documents()}
    assert source.format == "text"
    assert list(documents) == [
        "a.md",
        "b/tickets.csv#T1",
        "b/tickets.csv#T2",
        "c.tsv#1",
        "d.jsonl#7",
        "d.jsonl#8",
        "e.json#1",
    ]
    assert documents["c.tsv#1"].metadata == {"kind": "tsv", "path": "c.tsv"}
    assert documents["b/tickets.csv#T1"].metadata == {"kind": "bug", "path": "b/tickets.csv"}
    assert documents["b/tickets.csv#T1"].origin == f"{tmp_path}/b/tickets.csv:2"
    assert (documents["e.json#1"].title, documents["e.json#1"].text) == ("Hose", "It is worn.")
    assert source.options == {}  # columns recognised in one table are not those of the source


def test_ids_of_rows_do_not_depend_on_other_files(tmp_path):
    fill(tmp_path, a_md="# Pumps", b_csv="text\none\ntwo\n", c_csv="text\nthree\n")
    before = ids(tmp_path)
    (tmp_path / "b.csv").unlink()
    assert ids(tmp_path) == [id_ for id_ in before if not id_.startswith("b.csv")]


def test_tables_without_texts_are_not_read_and_refuse_nothing(tmp_path):
    fill(
        tmp_path,
        a_md="# Pumps",
        b_csv="x,y\n1,2\n",
        c_csv="id,id\n1,2\n",
        d_csv="name,subject,body\n1,2,3\n",  # both could be the title
        e_json='{\n  "name": "package"\n}\n',
        f_json="[1, 2]",
        g_jsonl='{"x": 1}\n',
        h_csv="",
    )
    source = open_collection(tmp_path)
    assert [document.id for document in source.documents()] == ["a.md"]
    assert source.unread.kinds == {
        ".csv: no title or text column": 1,
        ".csv: no valid header": 2,
        ".json: no array or lines of objects": 2,
        ".jsonl: no title or text column": 1,
    }
    assert source.unread.first[".csv: no valid header"] == "c.csv"
    assert source.problems.count == 0


def test_bad_rows_follow_on_error(tmp_path):
    fill(tmp_path, a_md="# Pumps", b_csv="id,text\n1,one\n2\n ,three\n4,four\n")
    with pytest.raises(CollectionError, match=r"b.csv:3: 1 cells under a header of 2"):
        ids(tmp_path)
    source = open_collection(tmp_path, on_error="skip")
    assert [document.id for document in source.documents()] == ["a.md", "b.csv#1", "b.csv#4"]
    assert source.problems.count == 2


def test_named_columns_hold_for_the_tables_of_a_folder(tmp_path):
    fill(tmp_path, a_md="# Pumps", b_csv="key,note\nk1,It leaks.\n", c_csv="text\nx\n")
    source = open_collection(tmp_path, columns={"id": "key", "text": "note"})
    assert [document.id for document in source.documents()] == ["a.md", "b.csv#k1"]
    assert source.unread.kinds == {".csv: no valid header": 1}
    with pytest.raises(CollectionError, match="no document has a column 'body'; check"):
        ids(tmp_path, columns={"text": "body"})


def test_tables_of_queries_and_judgements_are_not_documents(tmp_path):
    fill(tmp_path, a_md="# Pumps", queries_jsonl='{"id": "q", "text": "pump"}\n')
    fill(tmp_path, qrels_tsv="q\ta.md\t1\n")
    source = open_collection(tmp_path)
    assert [document.id for document in source.documents()] == ["a.md"]
    assert (len(source.queries()), len(source.judgements())) == (1, 1)


def test_tables_of_one_format_stay_a_collection(tmp_path):
    fill(tmp_path, a_csv=TICKETS, README_md="# About", make_py="pass")
    pack(tmp_path / "old.zip", a_csv=TICKETS, b_csv=TICKETS)
    source = open_collection(tmp_path)
    assert (source.format, [each.id for each in source.documents()]) == ("csv", ["T1", "T2"])


def test_rows_of_parquet_among_files(tmp_path):
    pyarrow = pytest.importorskip("pyarrow", reason="needs pyarrow")
    from pyarrow import parquet

    fill(tmp_path, a_md="# Pumps")
    parquet.write_table(pyarrow.table({"id": ["r"], "text": ["x"]}), tmp_path / "b.parquet")
    assert ids(tmp_path) == ["a.md", "b.parquet#r"]


def test_rows_of_sheets_among_files(tmp_path, monkeypatch):
    pytest.importorskip("python_calamine", reason="needs python_calamine")
    fill(tmp_path, a_md="# Pumps")
    workbook(tmp_path / "b.xlsx", [["id", "text"], ["r", "x"]])
    assert ids(tmp_path) == ["a.md", "b.xlsx#r"]
    monkeypatch.setattr(reading, "LARGEST", 100)
    with pytest.raises(CollectionError, match=r"b\.xlsx: is too large"):
        ids(tmp_path)
    fill(tmp_path, b_xlsx="not a workbook")
    with pytest.raises(CollectionError, match=r"b\.xlsx:1: the zip data is"):
        ids(tmp_path)


def test_tables_that_need_a_missing_extra_are_not_read(tmp_path, monkeypatch):
    fill(tmp_path, a_txt="Pumps", b_xlsx="", c_parquet="")
    monkeypatch.setattr(installation, "is_importable", lambda module: False)
    source = open_collection(tmp_path)
    assert [document.id for document in source.documents()] == ["a.txt"]
    assert source.unread.kinds == {".parquet": 1, ".xlsx": 1}
    assert unread_text(source.unread).endswith(
        "(first: c.parquet, b.xlsx); pip install 'klsa-search[tables]' reads .parquet, .xlsx"
    )
    (tmp_path / "a.txt").unlink()
    with pytest.raises(MissingExtra, match=r"klsa-search\[tables\]"):
        open_collection(tmp_path)


def test_files_of_an_archive_are_documents(tmp_path):
    fill(tmp_path, a_md="# Pumps")
    pack(
        tmp_path / "old.zip",
        z_rst="The pump leaks.",
        sub__t_csv=TICKETS,
        photo_jpg="x",
        x_csv="x,y\n1,2\n",
        **{"__MACOSX/._z.rst": "no", ".git/config": "no"},
    )
    source = open_collection(tmp_path)
    found = [(document.id, document.origin) for document in source.documents()]
    archive = f"{tmp_path}/old.zip"
    assert found == [
        ("a.md", f"{tmp_path}/a.md:1"),
        ("old.zip/sub/t.csv#T1", f"{archive}/sub/t.csv:2"),
        ("old.zip/sub/t.csv#T2", f"{archive}/sub/t.csv:3"),
        ("old.zip/z.rst", f"{archive}/z.rst:1"),
    ]
    assert source.unread.kinds == {".jpg": 1, ".csv: no title or text column": 1}
    assert source.unread.first[".jpg"] == "old.zip/photo.jpg"
    # As the source itself, an archive is read like a folder.
    assert ids(tmp_path / "old.zip") == ["sub/t.csv#T1", "sub/t.csv#T2", "z.rst"]


def test_names_in_an_archive_never_lead_outside(tmp_path):
    source = fill(tmp_path / "source", a_md="# Pumps")
    pack(source / "b.zip", **{"../../evil.txt": "x", "/etc/evil.txt": "y", "..": "z", "c.txt": "w"})
    assert ids(source) == ["a.md", "b.zip//etc/evil.txt", "b.zip/c.txt"]
    assert not list(tmp_path.glob("**/evil.txt"))


def test_links_and_archives_in_archives_are_not_read(tmp_path):
    fill(tmp_path, a_md="# Pumps")
    link = zipfile.ZipInfo("link.txt")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    pack(tmp_path / "inner.zip", c_txt="deep")
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as packed:
        packed.writestr(link, "/etc/passwd")
        packed.writestr("inner.zip", (tmp_path / "inner.zip").read_bytes())
    (tmp_path / "inner.zip").unlink()
    source = open_collection(tmp_path)
    assert [document.id for document in source.documents()] == ["a.md"]
    assert source.unread.kinds == {"linked": 1, ".zip in an archive": 1}


def test_files_of_an_archive_beyond_a_limit_are_refused(tmp_path, monkeypatch):
    fill(tmp_path, a_md="# Pumps")
    pack(tmp_path / "b.zip", c_txt="x" * 5000, d_txt="short")
    monkeypatch.setattr(archives, "LARGEST", 1000)
    with pytest.raises(CollectionError, match=r"b\.zip/c\.txt:1: is too large"):
        ids(tmp_path)
    source = open_collection(tmp_path, on_error="skip")
    assert [document.id for document in source.documents()] == ["a.md", "b.zip/d.txt"]
    monkeypatch.setattr(archives, "LARGEST_UNPACKED", 1000)
    source = open_collection(tmp_path, on_error="skip")
    assert [document.id for document in source.documents()] == ["a.md"]
    assert source.problems.kinds == {".zip: is too large": 1}


def test_damaged_archives_are_refused(tmp_path):
    fill(tmp_path, a_md="# Pumps", b_zip=b"PK\x03\x04 no archive")
    path = pack(tmp_path / "c.zip", zipfile.ZIP_STORED, d_txt="The pump leaks.", e_txt="It hums.")
    path.write_bytes(path.read_bytes().replace(b"pump", b"PUMP"))
    source = open_collection(tmp_path, on_error="skip")
    assert [document.id for document in source.documents()] == ["a.md", "c.zip/e.txt"]
    first, second = source.problems.reasons
    assert "b.zip:1: is damaged" in first
    assert f"{path}/d.txt:1: is damaged (Bad CRC-32" in second
    with pytest.raises(CollectionError, match=r"b\.zip:1: is damaged"):
        ids(tmp_path)


def test_a_row_that_changes_is_one_document_that_changes(tmp_path):
    folder = fill(tmp_path / "source", a_md="# Pumps", t_csv=TICKETS, n_csv="text\none\ntwo\n")
    pack(folder / "old.zip", t_csv=TICKETS)
    with klsa.build(folder, name="files", home=tmp_path / "index") as index:
        assert len(index) == 7
        fill(folder, t_csv=TICKETS.replace("hums", "knocks"))
        fill(folder, b_jsonl=json.dumps({"id": 1, "text": "new"}))
        pack(folder / "old.zip", t_csv=TICKETS.replace("leaks", "drips"))
        result = index.sync(folder)
        assert result.added == ("b.jsonl#1",)
        assert result.changed == ("old.zip/t.csv#T1", "t.csv#T2")
        assert (result.deleted, result.unchanged) == ((), 5)


def test_unchanged_tables_and_archives_are_not_read_again(tmp_path):
    fill(tmp_path, a_md="# Pumps", t_csv=TICKETS)
    pack(tmp_path / "old.zip", t_csv=TICKETS)
    collection = open_collection(tmp_path)
    stored = {document.id: document for document in collection.documents()}
    collection.cache = FileCache(stored.__getitem__)
    list(collection.documents())
    collection.cache.commit()
    for id_ in ("t.csv#T1", "old.zip/t.csv#T2"):
        stored[id_] = replace(stored[id_], title="from the cache")
    assert list(collection.documents()) == list(stored.values())


def test_features_of_geojson_lie_among_texts(tmp_path):
    features = [{"type": "Feature", "properties": {"name": "Rome"}, "geometry": None}]
    places = json.dumps({"type": "FeatureCollection", "name": "cities", "features": features})
    fill(tmp_path, a_txt="It leaks", b_geojson=places)
    titles = {each.id: each.title for each in open_collection(tmp_path).documents()}
    assert titles == {"a.txt": "a", "b.geojson#1": "Rome"}
