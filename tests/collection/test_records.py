"""JSON lines, tables and Python objects."""

import csv
import gzip
import io
import json
import tracemalloc

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from klsa_search.collection import Document, open_collection
from klsa_search.collection.mappings import as_document
from klsa_search.errors import CollectionError


def read(path, **options):
    return list(open_collection(path, **options).documents())


def test_jsonl_fields(tmp_path):
    path = tmp_path / "docs"
    path.write_text(
        '\ufeff{"_id": 7, "title": "T", "text": "x", "id": "inner", "year": 1999}\n\n'
        '{"id": "b", "contents": "y", "metadata": {"url": "u", "n": 1}, "n": 2}\r\n'
        '{"id": "c", "title": null}',
        encoding="utf-8",
    )
    one, two, three = read(path)
    assert (one.id, one.title, one.text) == ("7", "T", "x")
    assert one.metadata == {"id": "inner", "year": 1999}
    assert one.origin == f"{path}:1"
    assert (two.text, two.metadata, two.origin) == ("y", {"url": "u", "n": 2}, f"{path}:3")
    assert (three.title, three.text) == ("", "")


BAD_LINES = [
    (b'{"id": "b", "text": ', "invalid JSON"),
    (b'["b"]', "list, not a JSON object"),
    (b'{"text": "no id"}', "neither '_id' nor 'id'"),
    (b'{"id": "  "}', "id is blank"),
    (b'{"id": null}', "id is blank"),
    (b'{"id": true}', "'id' is a bool"),
    (b'{"id": "a"}', "'a' is used before"),
    (b'{"id": "b", "text": [["x"]]}', "'text' is a list"),
    (b'{"id": ["b"]}', "'id' is a list"),
    (b'{"id": "b", "text": {"en": "x"}}', "name one of its fields: text.en"),
    (b'{"id": "b", "text": "caf\xe9"}', "is not UTF-8: byte 0xe9 at character 25"),
    (b'{"id": "b", "text": "\0"}', "NUL"),
    (b'{"id": "b", "text": "\\u0000"}', "the text contains a NUL"),
    (b'{"id": "b", "text": "\\ud800"}', "half of a character"),
    (b'{"id": "b", "n": 1e999}', "the field 'n' contains NaN or an infinite"),
    (b'{"id": "b", "m": 1, "n": {"x": [Infinity]}}', "the field 'n' contains NaN or an infinite"),
    (b'{"id": "b", "metadata": {"n": Infinity}}', "the field 'n' contains NaN or an infinite"),
    (b'{"id": "b", "text": -Infinity}', "'text' is -inf, which is not valid in JSON"),
    (b'{"id": "b", "n": ' + b"9" * 5000 + b"}", "invalid JSON"),
    (b"[" * 100_000, "invalid JSON"),
]


@pytest.mark.parametrize(("line", "reason"), BAD_LINES)
def test_jsonl_bad_lines_are_named_or_skipped(tmp_path, line, reason):
    path = tmp_path / "docs.jsonl"
    path.write_bytes(b'{"id": "a"}\n' + line + b'\n{"id": "z"}\n')
    with pytest.raises(CollectionError) as caught:
        read(path)
    assert caught.value.message.startswith(f"{path}:2: ")
    assert reason in caught.value.message
    source = open_collection(path, on_error="skip")
    for _ in range(2):  # problems are those of one reading, not of all
        assert [d.id for d in source.documents()] == ["a", "z"]
        assert source.problems.count == 1
    assert reason in source.problems.reasons[0]


def test_a_whole_number_beyond_float64_is_text(tmp_path):
    path = tmp_path / "docs.jsonl"
    path.write_text(f'{{"id": {10**400}, "title": {10**401}, "text": {-(10**402)}}}')
    (document,) = read(path)
    assert (document.id, document.title, document.text) == (
        str(10**400), str(10**401), str(-(10**402)),
    )  # fmt: skip


@pytest.mark.parametrize("name", ["id", "title", "text"])
def test_a_whole_number_with_too_many_digits_is_refused(name):
    record = {"id": "a", name: 10**5000}
    with pytest.raises(CollectionError, match=f"'{name}' is a whole number with too many digits"):
        as_document(record)
    source = open_collection([{"id": "z"}, record], on_error="skip")
    assert [document.id for document in source.documents()] == ["z"]


@pytest.mark.parametrize("name", ["docs.jsonl", "docs.json"])
@pytest.mark.parametrize(
    ("value", "step"),
    [("9" * 5000, "write it as a text, in quotes"), ("[" * 100_000, "flatten them")],
)
def test_limits_of_the_decoder_are_errors_with_a_step(tmp_path, name, value, step):
    path = tmp_path / name
    path.write_text(f'[{{"id": "a", "n": {value}')
    if name == "docs.jsonl":
        path.write_text(f'{{"id": "a", "n": {value}}}\n')
    with pytest.raises(CollectionError, match=step):
        list(open_collection(path).documents())


@pytest.mark.parametrize("number", ["Infinity", "-Infinity", "1e999"])
def test_an_array_skips_only_the_element_with_a_number_that_json_lacks(tmp_path, number):
    path = tmp_path / "docs.json"
    path.write_text(f'[{{"id": "a"}},\n{{"id": "b", "n": {number}}},\n{{"id": "c"}}]')
    with pytest.raises(
        CollectionError, match=r"docs\.json:2: the field 'n' contains NaN or an infinite"
    ):
        read(path)
    source = open_collection(path, on_error="skip")
    assert [document.id for document in source.documents()] == ["a", "c"]
    assert source.problems.count == 1


def test_only_the_first_reasons_are_kept(tmp_path):
    path = tmp_path / "docs.jsonl"
    path.write_text("{\n" * 100)
    source = open_collection(path, on_error="skip")
    assert list(source.documents()) == []
    assert (source.problems.count, len(source.problems.reasons)) == (100, 5)


def test_gzip_is_known_by_its_bytes_and_may_be_cut_short(tmp_path):
    lines = [json.dumps({"id": n, "text": f"{n * 7919 % 104729:x} " * 9}) for n in range(5000)]
    packed = gzip.compress("\n".join(lines).encode())
    path = tmp_path / "docs.jsonl"
    path.write_bytes(packed)
    assert len(read(path)) == 5000
    path.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(CollectionError, match=r"docs.jsonl:\d+: the gzip data is cut short"):
        read(path)
    source = open_collection(path, on_error="skip")
    whole = [d.id for d in source.documents()]
    assert whole == [str(n) for n in range(len(whole))]
    assert len(whole) > 1000
    assert source.problems.count == 1
    path.write_bytes(packed[:-6] + b"\0\0\0\0\0\0")
    with pytest.raises(CollectionError, match="damaged"):
        read(path)


def test_memory_does_not_grow_with_the_file(tmp_path):
    path = tmp_path / "docs.jsonl.gz"
    with gzip.open(path, "wt", compresslevel=1) as stream:
        for number in range(1_000):
            stream.write(json.dumps({"id": str(number), "text": f"{number} " * 2_000}) + "\n")
    source = open_collection(path)
    tracemalloc.start()
    count = sum(1 for _ in source.documents())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 1_000
    assert peak < 4 * 2**20  # some 8 MB of text have passed; the ids are 0.8 MB


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30)
IDS = st.lists(TEXT.filter(str.strip), min_size=1, max_size=6, unique=True)
ROWS = IDS.flatmap(
    lambda ids: st.tuples(*[st.tuples(st.just(name), TEXT, TEXT, TEXT) for name in ids])
)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("round-trip")


@given(rows=ROWS, packed=st.booleans(), ascii_only=st.booleans())
def test_jsonl_round_trip(scratch, rows, packed, ascii_only):
    path = scratch / "docs.jsonl"
    body = "".join(
        json.dumps(
            dict(zip(("id", "title", "text", "x"), row, strict=True)), ensure_ascii=ascii_only
        )
        + "\n"
        for row in rows
    ).encode()
    path.write_bytes(gzip.compress(body) if packed else body)
    found = [(d.id, d.title, d.text, d.metadata["x"]) for d in read(path)]
    assert found == list(rows)


@given(rows=ROWS)
def test_csv_round_trip(scratch, rows):
    assume(all(text not in {"NA", "NULL", "NaN", "nan", "None"} for _, _, text, _ in rows))
    path = scratch / "docs.csv"
    out = io.StringIO(newline="")
    csv.writer(out, quoting=csv.QUOTE_ALL).writerows([("id", "title", "text", "x"), *rows])
    path.write_bytes(out.getvalue().encode())
    found = [(d.id, d.title, d.text, d.metadata["x"]) for d in read(path)]
    assert found == list(rows)


def test_csv_and_tsv(tmp_path):
    table = tmp_path / "docs.csv"
    table.write_bytes(
        b'\xef\xbb\xbfID,Title,text,Year\r\n1,"a, b","two\r\nlines",1999\r\n\r\n2,,,\r\n'
    )
    one, two = read(table)
    assert (one.id, one.title, one.text) == ("1", "a, b", "two\r\nlines")
    assert one.metadata == {"Year": "1999"}
    assert (two.text, two.origin) == ("", f"{table}:5")
    tabs = tmp_path / "docs.dat"
    tabs.write_text('id\ttext\n1\t"open, but no quoting here\n')
    assert open_collection(tabs).format == "tsv"
    assert read(tabs)[0].text == '"open, but no quoting here'


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (b"b,x,y", "3 cells under a header of 2: no column for 'y'; a cell with ',' needs quotes"),
        (b"b", "1 cells under a header of 2: none for column 'text' after 'b'"),
        (b",x", "id is blank"),
        (b"a,x", "used before"),
        (b"b,\0", "column 'text' contains a NUL byte"),
        (b'b,"x"y', "broken CSV"),
    ],
)
def test_csv_bad_rows_are_named_or_skipped(tmp_path, row, reason):
    path = tmp_path / "docs.csv"
    path.write_bytes(b"id,text\na,x\n" + row + b"\nz,x\n")
    with pytest.raises(CollectionError, match=f"docs.csv:3: .*{reason}"):
        read(path)
    source = open_collection(path, on_error="skip")
    assert [d.id for d in source.documents()] == ["a", "z"]
    assert source.problems.count == 1


def test_csv_with_an_open_quote_ends_with_one_problem(tmp_path):
    path = tmp_path / "docs.csv"
    path.write_text('id,text\na,x\nb,"open\n' + "y,z\n" * 10)
    with pytest.raises(CollectionError, match=r"docs.csv:3: broken CSV"):
        read(path)
    source = open_collection(path, on_error="skip")
    assert [d.id for d in source.documents()] == ["a"]
    assert source.problems.count == 1


def test_csv_fields_may_be_long_but_not_endless(tmp_path, monkeypatch):
    path = tmp_path / "docs.csv"
    path.write_text("id,text\na," + "x" * 200_000 + '\nb,"open\n' + "y,z\n" * 200_000)
    monkeypatch.setattr("klsa_search.collection.csv_files.LONGEST_FIELD", 250_000)
    before = csv.field_size_limit(131_072)
    try:
        with pytest.raises(CollectionError, match=r"docs.csv:3: a field of more than 250,000"):
            read(path)
        source = open_collection(path, on_error="skip")
        assert [d.id for d in source.documents()] == ["a"]
        assert source.problems.count == 1
    finally:
        csv.field_size_limit(before)


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ("id,colour", "no column 'title' or 'text'"),
        ("id,id,text", "columns 1 and 2 have the same name 'id'"),
    ],
)
@pytest.mark.parametrize("on_error", ["stop", "skip"])
def test_a_wrong_header_always_stops(tmp_path, header, reason, on_error):
    path = tmp_path / "docs.csv"
    path.write_text(f"{header}\n1,2,3\n")
    with pytest.raises(CollectionError, match=reason):
        read(path, on_error=on_error)


def test_python_objects():
    source = open_collection([{"id": 1, "text": "x", "k": 2}, Document(id="b")])
    assert [(d.id, d.text, d.metadata) for d in source.documents()] == [
        ("1", "x", {"k": 2}),
        ("b", "", {}),
    ]
    with pytest.raises(CollectionError, match="document 2: neither"):
        list(open_collection([{"id": 1}, {}]).documents())
    with pytest.raises(CollectionError, match="document 1: is of type int"):
        list(open_collection([3]).documents())
    assert list(open_collection([]).documents()) == []
