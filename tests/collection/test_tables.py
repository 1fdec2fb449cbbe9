"""Tables of SQLite databases, cursors of other databases, Parquet files and workbooks."""

import sqlite3
import zipfile
from contextlib import closing
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from uuid import UUID

import pytest

from klsa_search import build
from klsa_search.collection import open_collection
from klsa_search.errors import CollectionError

ROWS = [
    {"ticket": 7, "subject": "Pump", "body": "It leaks.", "price": 2.5, "due": "2026-03-01"},
    {"ticket": 8, "subject": "Fan", "body": "It hums.", "price": None, "due": None},
]


@pytest.fixture
def database(tmp_path):
    from sqlite_utils import Database

    path = tmp_path / "desk & more.db"
    made = Database(path)
    made["tickets"].insert_all(ROWS, pk="ticket")
    made["other"].insert({"name": "x", "picture": b"\xff"})
    made.create_view("open", "select ticket as id, body as text from tickets")
    made.close()
    return path


def read(source, **options):
    opened = open_collection(source, **options)
    return opened, list(opened.documents())


def test_a_table_is_read_with_its_primary_key_as_id(database):
    before = database.read_bytes()
    source, (one, two) = read(f"sqlite:{database}?table=tickets")
    assert (one.id, one.title, one.text) == ("7", "Pump", "It leaks.")
    assert dict(one.metadata) == {"price": 2.5, "due": "2026-03-01"}
    assert dict(two.metadata) == {"price": None, "due": None}
    assert (source.name, source.format, source.numbered) == (database.name, "sqlite", [])
    assert "using column 'ticket' as id, 'subject' as title, 'body' as text" in source.notes[0]
    assert database.read_bytes() == before
    assert [d.text for d in read(f"sqlite:{database}?table=open")[1]] == ["It leaks.", "It hums."]


def test_a_query_is_read_as_it_is_written(database):
    query = "SELECT ticket+1 AS id, subject || '?table=' AS text FROM tickets WHERE price & 2 = 2"
    source, [document] = read(f"sqlite:{database}?query={query}")
    assert (document.id, document.text) == ("8", "Pump?table=")
    assert source.address.endswith(query)


def test_names_of_columns_are_read_in_any_case(database):
    query = "SELECT ticket AS ID, subject AS Title, body AS TEXT, price AS Price FROM tickets"
    source, [document, _] = read(f"sqlite:{database}?query={query}")
    assert (document.id, document.title, document.text) == ("7", "Pump", "It leaks.")
    assert (dict(document.metadata), source.numbered) == ({"Price": 2.5}, [])


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        ("", "names no table and no query; give sqlite:FILE"),
        ("?table=", "names no table and no query"),
        ("?table=ticket", r"no table 'ticket'; the tables are: 'tickets', 'other', 'open'"),
        ("?table=other", "is not JSON"),
        ("?query=SELECT x FROM tickets", "no such column: x"),
        ("?query=DELETE FROM tickets", "cannot be read as SQLite .*readonly database"),
        ("?query=ATTACH 'other.db' AS other", "too many attached databases"),
        ("?query=SELECT body, body FROM tickets", "columns with the same name .*with AS"),
        ("?query=PRAGMA user_version = 3", "returns no rows|readonly database"),
        ("?query=SELECT ticket FROM tickets", "no column 'title' or 'text' among 'ticket'"),
    ],
)
def test_unreadable_tables_are_named(database, wanted, reason):
    with pytest.raises(CollectionError, match=reason):
        read(f"sqlite:{database}{wanted}")


def test_files_that_are_not_databases_are_named(tmp_path, database):
    with pytest.raises(CollectionError, match="no such file"):
        read(f"sqlite:{tmp_path / 'none.db'}?table=a")
    (tmp_path / "a.db").write_text("prose" * 100)
    with pytest.raises(CollectionError, match="cannot be read as SQLite"):
        read(f"sqlite:{tmp_path / 'a.db'}?table=a")
    with pytest.raises(CollectionError, match=r"is a SQLite database, .*sqlite:FILE\?table=NAME"):
        read(database)


def test_a_cursor_of_any_database_is_a_source(database, tmp_path):
    with closing(sqlite3.connect(database)) as connection:
        connection.row_factory = lambda cursor, row: dict(
            zip((column[0] for column in cursor.description), row, strict=True)
        )
        cursor = connection.execute("SELECT * FROM tickets ORDER BY ticket")
        columns = {"id": "ticket", "title": "subject", "text": "body"}
        with closing(build(cursor, name="a", home=tmp_path, columns=columns)) as index:
            assert [hit.id for hit in index.search("pump", filter="due < 2027-01-01")] == ["7"]
            assert index.fields["due"].type == "date"


def test_values_of_databases_become_json():
    unique = UUID(int=7)
    moment = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
    record = {
        "id": unique,
        "text": "x",
        "at": [moment, date(2026, 3, 1), time(9)],
        "price": Decimal("2.50"),
        "count": Decimal("4"),
        "took": timedelta(minutes=1.5),
    }
    [document] = open_collection([record]).documents()
    assert document.id == str(unique)
    assert document.metadata == {
        "at": ["2026-03-01T09:30:00+00:00", "2026-03-01", "09:00:00"],
        "price": 2.5,
        "count": 4,
        "took": 90.0,
    }


def test_a_parquet_file_is_a_table(tmp_path):
    pyarrow = pytest.importorskip("pyarrow", reason="needs pyarrow")
    from pyarrow import parquet

    path = tmp_path / "a.parquet"
    rows = [{**row, "tags": ["a", "b"], "at": datetime(2026, 3, 1)} for row in ROWS]
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    source, (one, two) = read(path, columns={"id": "ticket", "title": "subject", "text": "body"})
    assert (source.format, one.id, one.text, two.id) == ("parquet", "7", "It leaks.", "8")
    assert one.metadata["tags"] == ["a", "b"]
    assert (one.metadata["at"], two.metadata["price"]) == ("2026-03-01T00:00:00", None)
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(CollectionError, match=r"a.parquet: cannot be read as Parquet"):
        read(path)


def test_types_of_arrow_that_python_lacks_are_read_or_left_out(tmp_path):
    pyarrow = pytest.importorskip("pyarrow", reason="needs pyarrow")
    from pyarrow import parquet

    path = tmp_path / "a.parquet"
    moments = pyarrow.array([1_709_285_400_123_456_789], pyarrow.timestamp("ns"))
    columns = {
        "id": pyarrow.array([2**60]),
        "text": pyarrow.array(["<p>R&uuml;ckruf</p>"]).dictionary_encode(),
        "at": moments,
        "zoned": moments.cast(pyarrow.timestamp("ns", "UTC")),
        "list": pyarrow.ListArray.from_arrays(pyarrow.array([0, 1]), moments),
        "inner": pyarrow.StructArray.from_arrays([moments], ["at"]),
        "took": pyarrow.array([1_500_000_000], pyarrow.duration("ns")),
        "price": pyarrow.array([Decimal("9.99")]),
        "image": pyarrow.array([b"\x00\xff"]),
    }
    parquet.write_table(pyarrow.table(columns), path)
    source, [document] = read(path)
    moment = "2024-03-01T09:30:00.123456"
    assert (document.id, document.text) == (str(2**60), "<p>R&uuml;ckruf</p>")
    assert document.metadata == {
        "at": moment,
        "zoned": f"{moment}+00:00",
        "list": [moment],
        "inner": {"at": moment},
        "took": 1.5,
        "price": 9.99,
    }
    assert source.notes == [f"{path}: columns of bytes are not read: 'image'"]
    with build(path, name="arrow", home=tmp_path / "home") as index:
        assert index.search("Rückruf", filter="at > 2024-01-01").total == 1


CELLS = [["key", "Subject", "body", "priority"], [7, "Pump", "It leaks.", 2.5], [8, "Fan", "", ""]]


def workbook(path, rows):
    """Write a workbook with the parts that readers need."""

    def cell(value):
        if isinstance(value, str):
            return f'<c t="inlineStr"><is><t>{value}</t></is></c>' if value else "<c/>"
        return f"<c><v>{value}</v></c>"

    office = "http://schemas.openxmlformats.org"
    main = f'xmlns="{office}/spreadsheetml/2006/main"'
    kind = f"{office}/officeDocument/2006/relationships"
    lines = "".join(f"<row>{''.join(map(cell, row))}</row>" for row in rows)
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="{office}/package/2006/relationships"><Relationship Id="r1" '
            f'Type="{kind}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        )
        packed.writestr(
            "xl/_rels/workbook.xml.rels",
            f'<Relationships xmlns="{office}/package/2006/relationships"><Relationship Id="r1" '
            f'Type="{kind}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
        )
        packed.writestr(
            "xl/workbook.xml",
            f'<workbook {main} xmlns:r="{kind}"><sheets><sheet name="Tickets" sheetId="1" '
            'r:id="r1"/></sheets></workbook>',
        )
        packed.writestr(
            "xl/worksheets/sheet1.xml",
            f"<worksheet {main}><sheetData>{lines}</sheetData></worksheet>",
        )
    return path


def test_the_first_sheet_of_a_workbook_is_a_table(tmp_path):
    pytest.importorskip("python_calamine", reason="needs python_calamine")
    path = workbook(tmp_path / "a.xlsx", CELLS)
    source, (one, two) = read(path)
    assert (source.format, one.id, one.title, one.text) == ("xlsx", "7", "Pump", "It leaks.")
    assert (one.metadata, two.text, two.metadata) == ({"priority": 2.5}, "", {"priority": None})
    assert "'Subject' as title" in source.notes[0]
    with pytest.raises(CollectionError, match="columns 1 and 2 have the same name"):
        read(workbook(path, [["id", "id"], [1, 2]]))
    path.write_bytes(b"PK\x03\x04 and nothing")
    with pytest.raises(CollectionError, match=r"a.xlsx: cannot be read as a workbook"):
        read(path)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([["", "title", "text"], [0, "Pump", "Leaks"], [1, "Fan", "Hums"]], [{}, {}]),
        (
            [
                ["List of pumps"],
                [],
                ["id", "title", "text"],
                [0, "Pump", "Leaks"],
                [1, "Fan", "Hums"],
            ],
            [{}, {}],
        ),
        (
            [
                ["id", "title", "text", "label", "label", ""],
                [0, "Pump", "Leaks", "a", "b", ""],
                [1, "Fan", "Hums", "", "c", ""],
                ["", "", "", "", "", ""],
            ],
            [{"label": ["a", "b"]}, {"label": "c"}],
        ),
        (
            [
                ["id", "title", "text", "", "due"],
                [0, "Pump", "Leaks", "x", "05.03.2024"],
                [1, "Fan", "Hums", "", "28.12.2023"],
            ],
            [{"column_4": "x", "due": "05.03.2024"}, {"due": "28.12.2023"}],
        ),
    ],
    ids=["counter", "title", "labels", "nameless"],
)
def test_workbooks_are_read_like_csv(tmp_path, rows, expected):
    pytest.importorskip("python_calamine", reason="needs python_calamine")
    width = max(map(len, rows))
    path = workbook(tmp_path / "a.xlsx", [[*row, *[""] * (width - len(row))] for row in rows])
    found = read(path)[1]
    assert [(d.id, d.title, d.text) for d in found] == [
        ("0", "Pump", "Leaks"),
        ("1", "Fan", "Hums"),
    ]
    assert [dict(d.metadata) for d in found] == expected
