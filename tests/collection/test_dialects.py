"""CSV in the dialects and encodings of other programs, and the messages about what is wrong."""

import csv
import io
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klsa_search.collection import open_collection
from klsa_search.errors import CollectionError
from tests.support.examples import one_in

CELLS = st.text(st.characters(codec="cp1252", exclude_characters="\0\r"), max_size=9).filter(
    lambda cell: cell not in ("NA", "<NA>", "NULL", "NaN", "nan", "None", "\\N", "#N/A")
)
"""Cells, none of which stands for no text."""
ROWS = st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=5)


def opened(folder, data, name="a.csv", **options):
    path = folder / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    source = open_collection(path, **options)
    return source, list(source.documents())


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("dialects")


@one_in(4)
@given(
    rows=ROWS,
    delimiter=st.sampled_from(",;\t|"),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    end=st.sampled_from(["\n", "\r\n"]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"]),
    names=st.sampled_from([("id", "title", "text", "x"), ("key", "Subject", "body", "x")]),
)
def test_every_dialect_gives_the_same_documents(
    scratch, rows, delimiter, quoting, end, encoding, names
):
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=delimiter, quoting=quoting, lineterminator=end)
    writer.writerow(names)
    numbered = [(str(number), *row) for number, row in enumerate(rows)]
    writer.writerows(numbered)
    _, documents = opened(scratch, out.getvalue().encode(encoding))
    assert [(d.id, d.title, d.text, d.metadata["x"]) for d in documents] == numbered


def test_plain_csv_has_no_notes(tmp_path):
    source, documents = opened(tmp_path, "id,title,text\n1,a;b;c,d|e\n2,a;b;c,é\n")
    assert (source.notes, [d.title for d in documents]) == ([], ["a;b;c"] * 2)


@pytest.mark.parametrize(
    ("data", "noted", "text"),
    [
        ("id;text\n1;a, b\n2;c, d\n", "delimiter ';'", "a, b"),
        ("id\ttext\n1\ta, b\n", "delimiter '\\t'", "a, b"),
        ("sep=|\nid|text\n1|a;b\n", "delimiter '|'", "a;b"),
        ("'id','text'\n'1','it''s, so'\n", "single quotes", "it's, so"),
        ('id,text\n1,"a \\"b\\", c"\n', "quotes escaped by backslashes", 'a "b", c'),
        ('id,text\n1,"a\\b ""c"""\n', "", 'a\\b "c"'),
        ("text\na;b\n", "", "a;b"),
        ("price;text\n1,5;a\n2,5;b\n", "delimiter ';'", "a"),
        ("id;text\n1;" + "long, " * 20_000 + "\n", "delimiter ';'", "long, " * 20_000),
    ],
)
def test_worked_dialects(tmp_path, data, noted, text):
    source, documents = opened(tmp_path, data)
    assert documents[0].text == text
    assert source.notes == ([f"{tmp_path / 'a.csv'}: read as CSV with {noted}"] if noted else [])


def test_a_table_without_suffix_is_recognised_by_its_header(tmp_path):
    for name, data in (("a", b"id;text\n1;x\n"), ("b", 'id\ttext\n1\t"x"\n'.encode("utf-16"))):
        source, documents = opened(tmp_path, data, name)
        assert (source.format, [d.text for d in documents]) == ("csv", ["x"])


def test_a_broken_byte_is_not_windows_1252_in_a_file_of_utf_8(tmp_path):
    data = "id,text\n1,äöü\n".encode() + b"2,caf\xe9\n"
    with pytest.raises(CollectionError, match=r"a.csv:3: column 'text' is not UTF-8: byte 0xe9"):
        opened(tmp_path, data)
    source, documents = opened(tmp_path, data, on_error="skip")
    assert (source.problems.count, [d.text for d in documents]) == (1, ["äöü"])


def test_damaged_utf_16_is_named_with_its_line(tmp_path):
    data = "id,text\n1,a\n".encode("utf-16") + b"x"
    with pytest.raises(CollectionError, match=r"a.csv:3: invalid UTF-16"):
        opened(tmp_path, data)


def test_a_column_that_later_lines_lack_is_noted(tmp_path):
    lines = '{"id": 1, "body": "a"}\n{"id": 2, "message": "b"}\n{"id": 3}\n'
    source, documents = opened(tmp_path, lines, "a.jsonl")
    assert [d.text for d in documents] == ["a", "", ""]
    assert f"{tmp_path / 'a.jsonl'}:2: no column 'body', in this and 1 more record" in source.notes
    source, _ = opened(tmp_path, "".join(lines.splitlines(keepends=True)[:2]), "b.jsonl")
    assert f"{tmp_path / 'b.jsonl'}:2: no column 'body', in this record" in source.notes


def test_repeated_ids_of_a_column_that_was_chosen_name_the_option(tmp_path):
    with pytest.raises(
        CollectionError,
        match=r"the id .1. is used before; name another .* by --id",
    ):
        opened(tmp_path, "number,body\n1,a\n1,b\n")


def test_lines_may_end_with_a_carriage_return(tmp_path):
    _, documents = opened(tmp_path, "id,text\r1,a\r2,b\r")
    assert [(each.id, each.text) for each in documents] == [("1", "a"), ("2", "b")]


TICKETS = "Key;Subject;Body;tags\nSUP-1;Pump;It leaks;a\n"


@pytest.mark.parametrize("kind", ["csv", "jsonl", "json"])
def test_common_names_are_used_in_a_source_without_title_and_text(tmp_path, kind):
    rows = '{"Key": "SUP-1", "Subject": "Pump", "Body": "It leaks", "tags": "a"}'
    data = {"csv": TICKETS, "jsonl": rows, "json": f"[{rows}]"}[kind]
    source, [document] = opened(tmp_path, data, f"a.{kind}")
    assert (document.id, document.title, document.text) == ("SUP-1", "Pump", "It leaks")
    assert (document.metadata, source.numbered) == ({"tags": "a"}, [])
    assert "using column 'Key' as id, 'Subject' as title, 'Body' as text" in source.notes[-1]
    assert "--id Key --title Subject --text Body" in source.notes[-1]
    assert source.options == {"columns": {"id": "Key", "title": "Subject", "text": ["Body"]}}
    [again] = open_collection(tmp_path / f"a.{kind}", **source.options).documents()
    assert again == document


def test_given_columns_and_plain_names_win_over_common_ones(tmp_path):
    source, [document] = opened(tmp_path, TICKETS, columns={"text": "Subject"})
    assert (document.id, document.title, document.text) == ("SUP-1", "", "Pump")
    source, [document] = opened(tmp_path, TICKETS, columns={"title": "Subject"})
    assert (document.id, document.title, document.text) == ("SUP-1", "Pump", "It leaks")
    source, [document] = opened(tmp_path, "key,title,body,message\n7,Pump,It leaks,x\n")
    assert (document.id, document.text) == ("7", "")
    assert "column 'body' is not searched; --text body searches it" in source.notes[1]
    lines = '{"key": 7, "title": "Pump"}'
    source, [document] = opened(tmp_path, lines, "a.jsonl")
    assert document.id == "1"
    assert "column 'key' is not used as ID; --id key uses it" in source.notes[0]
    lines = '{"id": 1, "subject": "a"}\n{"id": 2, "subject": "b", "text": "c"}\n'
    source, (one, two) = opened(tmp_path, lines, "a.jsonl")
    assert (one.title, two.title, two.text, two.metadata) == ("a", "", "c", {"subject": "b"})
    assert source.options == {}


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ("id,subject,name", "'subject' and 'name' could each be the title; choose with --title"),
        ("id,body,message", "--text body or --text message"),
        ("key,uuid,body", "'key' and 'uuid' could each be the id"),
    ],
)
def test_several_common_names_need_a_choice(tmp_path, header, reason):
    with pytest.raises(CollectionError, match=reason):
        opened(tmp_path, f"{header}\n1,2,3\n")


PIECES = st.sampled_from(
    [
        "id",
        "text",
        "key",
        "body",
        ",",
        ";",
        "\t",
        "|",
        "\n",
        "\r\n",
        "\r",
        '"',
        "'",
        '\\"',
        "é",
        " ",
    ]
)


@given(
    pieces=st.lists(PIECES, max_size=30),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "cp1252"]),
    end=st.binary(max_size=2),
    kind=st.sampled_from(["csv", "tsv"]),
)
def test_any_bytes_are_read_or_refused_by_a_message(scratch, pieces, encoding, end, kind):
    data = "".join(pieces).encode(encoding) + end
    with suppress(CollectionError):
        source, documents = opened(scratch, data, f"any.{kind}", on_error="skip")
        assert len({d.id for d in documents}) == len(documents)
        assert len(source.notes) == len(set(source.notes))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le"])
def test_byte_order_marks_of_joined_files_are_left_out(tmp_path, encoding):
    path = tmp_path / "joined.csv"
    path.write_bytes("\ufeff\ufeffid,text\n1,a\n\ufeff2,b\n".encode(encoding))
    assert [(each.id, each.text) for each in open_collection(path).documents()] == [
        ("1", "a"), ("2", "b"),
    ]  # fmt: skip
