"""Columns by name, numbers as IDs, JSON arrays, streams and compressed files."""

import gzip
import io
import json
import sys
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klsa_search.collection import lines, open_collection
from klsa_search.errors import CollectionError

NAMED = {"id": "ticket", "title": "subject", "text": ["body", "notes"]}
ROWS = [
    {"ticket": "7", "subject": "Pump", "body": "It leaks.", "notes": "Again.", "text": "t"},
    {"ticket": "8", "subject": "Fan", "body": "It hums.", "notes": "", "text": "u"},
]
CSV = "ticket,subject,body,notes,text\n7,Pump,It leaks.,Again.,t\n8,Fan,It hums.,,u\n"


def zipped(**files):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as packed:
        for name, data in files.items():
            packed.writestr(name, data)
    return made.getvalue()


def zstd(data):
    if sys.version_info >= (3, 14):
        from compression import zstd as packer
    else:
        from backports import zstd as packer
    return packer.compress(data)


def written(folder, name, data):
    path = folder / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def ids(source):
    return [document.id for document in source.documents()]


@pytest.mark.parametrize("kind", ["csv", "json", "jsonl", "tsv", "records"])
def test_columns_are_those_that_are_named_and_others_are_metadata(tmp_path, kind):
    source = {
        "csv": CSV,
        "tsv": CSV.replace(",", "\t"),
        "json": json.dumps(ROWS, indent=1),
        "jsonl": "\n".join(map(json.dumps, ROWS)),
        "records": ROWS,
    }[kind]
    if kind != "records":
        source = written(tmp_path, f"a.{kind}", source)
    one, two = open_collection(source, columns=NAMED).documents()
    assert (one.id, one.title, one.text) == ("7", "Pump", "It leaks.\n\nAgain.")
    assert (two.id, two.title, two.text) == ("8", "Fan", "It hums.")
    assert one.metadata == {"text": "t"}


@pytest.mark.parametrize("name", ["a.csv", "a.json"])
def test_a_named_column_that_no_record_has_is_an_error(tmp_path, name):
    path = written(tmp_path, name, CSV if name == "a.csv" else json.dumps(ROWS))
    with pytest.raises(CollectionError, match=r"no .*column 'bdy'.*'subject'"):
        ids(open_collection(path, columns={**NAMED, "text": ["body", "bdy"]}, on_error="skip"))


@pytest.mark.parametrize("kind", ["csv", "json", "records"])
def test_a_role_without_a_column(tmp_path, kind):
    rows = [
        {"id": "7", "title": "Pump", "text": "It leaks", "Betreff": "a"},
        {"id": "8", "title": "Fan", "text": "It hums", "Betreff": "b"},
    ]
    table = "".join(f"{','.join(row)}\n" for row in [list(rows[0]), *(r.values() for r in rows)])
    source = {"csv": table, "json": json.dumps(rows)}.get(kind, rows)
    if kind != "records":
        source = written(tmp_path, f"a.{kind}", source)

    def read(columns):
        opened = open_collection(source, columns=columns)
        first, _ = opened.documents()
        assert opened.options == {"columns": columns}
        assert open_collection(source, **opened.options).options == opened.options
        return first.id, first.title, first.text, set(first.metadata)

    assert read({"title": None}) == ("7", "", "It leaks", {"title", "Betreff"})
    assert read({"text": None}) == ("7", "Pump", "", {"text", "Betreff"})
    assert read({"id": None}) == ("1", "Pump", "It leaks", {"id", "Betreff"})
    named = read({"text": ["Betreff"], "title": None})
    assert named == ("7", "", "a", {"title", "text"})


BAD_COLUMNS = [{"body": "x"}, {"id": ""}, {"text": ["a", 3]}, {"id": ["a"]}, {"text": ""}]


@pytest.mark.parametrize("columns", BAD_COLUMNS)
def test_columns_that_make_no_sense_are_refused(columns):
    with pytest.raises(CollectionError, match="columns = "):
        open_collection(ROWS, columns=columns)


def test_a_format_without_columns_says_so(tmp_path):
    path = written(tmp_path, "a.txt", "text")
    with pytest.raises(CollectionError, match="format text has no columns"):
        open_collection(path, format="text", columns=NAMED)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.csv", "title,text\na,b\nc,d\n"),
        ("a.json", '[{"title": "a"}, {"title": "c"}]'),
        ("a.jsonl", '{"title": "a"}\n{"title": "c"}\n'),
    ],
)
def test_documents_without_ids_are_numbered_with_a_notice(tmp_path, name, data):
    path = written(tmp_path, name, data)
    source = open_collection(path)
    for _ in range(2):
        assert ids(source) == ["1", "2"]
        assert source.numbered == [str(path)]
    written(tmp_path, f"b{name[1:]}", data)
    assert ids(open_collection(tmp_path)) == ["1", "2", "3", "4"]
    with pytest.raises(CollectionError, match="ticket"):
        ids(open_collection(path, columns={"id": "ticket"}))


def test_judged_documents_are_never_numbered(tmp_path):
    written(tmp_path, "corpus.jsonl", '{"text": "a"}\n')
    with pytest.raises(CollectionError, match="neither '_id' nor 'id'"):
        ids(open_collection(tmp_path))


@given(
    st.lists(
        st.dictionaries(st.text(max_size=9), st.integers() | st.text(max_size=20)), max_size=9
    ),
    st.sampled_from([None, 1]),
    st.integers(1, 40),
)
def test_arrays_are_read_as_json_reads_them(tmp_path_factory, records, indent, chunk):
    from klsa_search.collection import json_files

    records = [{**record, "n": number} for number, record in enumerate(records)]
    path = tmp_path_factory.mktemp("array") / "a.json"
    path.write_text(json.dumps(records, indent=indent, ensure_ascii=False), errors="surrogatepass")
    before, json_files.CHUNK = json_files.CHUNK, chunk
    try:
        found = [element for _, element in json_files.elements(path)]
    except CollectionError:
        assert any(0xD800 <= ord(c) < 0xE000 for c in path.read_text(errors="surrogateescape"))
    else:
        assert found == records
    finally:
        json_files.CHUNK = before


@pytest.mark.parametrize(
    ("data", "reason", "before"),
    [
        ('[{"id": 1}', ":1: invalid JSON: the array is cut short", 1),
        ('[{"id": 1},\n{"id": 2', ":2: invalid JSON .*cut short|:2: invalid JSON", 1),
        ('[{"id": 1}\n{"id": 2}]', ":2: invalid JSON .*','", 1),
        ('[{"id": 1}, 3]', ":1: a int, not a JSON object", 1),
        ('{"id": 1}x', "invalid JSON", 0),
    ],
)
def test_broken_arrays_are_named_or_end_there(tmp_path, data, reason, before):
    path = written(tmp_path, "a.json", data)
    with pytest.raises(CollectionError, match=reason):
        ids(open_collection(path))
    source = open_collection(path, on_error="skip")
    assert len(ids(source)) == before
    assert source.problems.count == 1


@pytest.mark.parametrize("pack", [gzip.compress, zstd, lambda data: zipped(a=data)])
def test_a_file_that_is_unpacked_to_too_much_is_read_up_to_there(tmp_path, monkeypatch, pack):
    monkeypatch.setattr(lines, "LARGEST_UNPACKED", 2**16)
    monkeypatch.setattr(lines, "_GREATEST_RATIO", 0)
    path = tmp_path / "a.jsonl"
    path.write_bytes(pack(b'{"id": "1", "text": "pump"}\n' + b"\n" * 2**18))
    source = open_collection(path, on_error="skip")
    assert [each.id for each in source.documents()] == ["1"]
    assert "is too large (unpacked more than" in source.problems.reasons[0]


@pytest.mark.parametrize("pack", [gzip.compress, zstd, lambda data: zipped(a=data)])
def test_compression_is_detected_by_the_first_bytes(tmp_path, pack):
    packed = pack(b'{"id": "a"}\n' * 2)
    source = open_collection(written(tmp_path, "packed", packed), on_error="skip")
    assert (source.format, ids(source), source.problems.count) == ("jsonl", ["a"], 1)
    written(tmp_path, "packed", packed[:-9])
    with pytest.raises(CollectionError, match=r"cut short or damaged|unknown format"):
        ids(open_collection(tmp_path / "packed"))


def test_an_archive_of_several_files_is_refused(tmp_path):
    path = written(tmp_path, "a.csv.zip", zipped(a="id,text\n", b="id,text\n"))
    with pytest.raises(CollectionError, match="archive of 2 files; unpack it"):
        ids(open_collection(path))


def test_a_stream_is_read_as_a_file_and_can_be_read_again():
    source = open_collection(io.BytesIO(b"id,text\n1,a\n2,b\n"))
    assert (source.name, source.format, source.address, source.root) == ("stdin", "csv", None, None)
    assert ids(source) == ids(source) == ["1", "2"]
    with pytest.raises(CollectionError, match="unknown format"):
        open_collection(io.BytesIO(b"prose"))
    with pytest.raises(CollectionError, match="cannot be read as text"):
        open_collection(io.BytesIO(b"prose"), format="text")


@pytest.mark.parametrize(
    ("header", "columns"),
    [
        ("Product name,review_text,stars", {"title": "Product name", "text": ["review_text"]}),
        ("postTitle,postBody,stars", {"title": "postTitle", "text": ["postBody"]}),
        (
            "user-name,item-name,full-description",
            {"title": "item-name", "text": ["full-description"]},
        ),
        ("product name,item name,full text", {"text": ["full text"]}),
        ("user_name,body,stars", {"text": ["body"]}),
        ("file_name,body,stars", {"text": ["body"]}),
        ("headline,alt_text,stars", {"title": "headline"}),
    ],
)
def test_two_words_of_a_name_tell_what_a_column_has(tmp_path, header, columns):
    path = tmp_path / "x.csv"
    path.write_text(f"{header}\nPump,it leaks,3\n", "utf-8")
    source = open_collection(path)
    assert len(list(source.documents())) == 1
    assert source.options["columns"] == columns


PROSE = ["The pump leaks at the valve", "It hums all night, which is loud", "Neither starts now"]


@pytest.mark.parametrize(
    ("header", "rows", "text"),
    [
        ("review,sentiment", [f'"{one}",positive' for one in PROSE], ["review"]),
        ("title,plot,year", [f'Pump,"{one}",1999' for one in PROSE], ["plot"]),
        ("prompt,completion", [f'"{a}","{a}, so"' for a in PROSE], ["prompt", "completion"]),
        ("备注,类型", ["水泵漏水需要更换阀门,泵", "风扇整夜发出很大的噪音,扇"], ["备注"]),
        ("备注,类型", [f"{text * 9_999},泵" for text in ("水泵，第3章。", "风扇，4。")], ["备注"]),
        ("title,body,description", [f'Pump,"{a}","{a}!"' for a in PROSE], ["body", "description"]),
        ("title,Body (HTML)", [f'Pump,"<p>{a}</p>"' for a in PROSE], ["Body (HTML)"]),
    ],
)
def test_columns_of_prose_are_texts_if_no_column_is_named_for_them(tmp_path, header, rows, text):
    path = tmp_path / "x.csv"
    path.write_text("\n".join([header, *rows]), "utf-8")
    source = open_collection(path)
    assert len(list(source.documents())) == len(rows)
    assert source.options["columns"]["text"] == text


@pytest.mark.parametrize(
    "values",
    [
        ["Ann Bee, Carl Dee", "Eve Fox", "Gil Hay"],
        ["Health and safety at work"] * 3,
        ["https://example.com/a-b-c-d-e", "https://example.com/f-g-h-i-j"],
        ["2024/03/01 10:00:00 AM GMT+1", "2024/03/02 11:30:00 AM GMT+1"],
        ["/srv/data/a b c.log", "C:\\Users\\a\\b c.log"],
        ["a=1 b=2 c=3 d=4 e=5", "a=2 b=3 c=4 d=5 e=6"],
        ["12 x 30 mm M8", "14 x 40 mm M10"],
        ["dGhlIHB1bXAgbGVha3Mg+b/lIGF0", "bm90aGluZyB3b3JrcyBhdCBhbGwg"],
        ["It leaks", "Stuck again"],
        ["red green blue", "blue green"],
        [["Tom Fox", "Helen Hay", "Jo Bee"], ["Ann Dee", "Eve Gil", "Jo Bee"]],
        [["kitchen", "cups and mugs", "gift ideas"], ["garden", "pots and bowls", "gift ideas"]],
        ["", ""],
    ],
)
def test_names_links_codes_and_repeated_values_are_not_texts(tmp_path, values):
    path = tmp_path / "x.json"
    path.write_text(json.dumps([{"title": "Pump", "other": value} for value in values]))
    source = open_collection(path)
    assert not any(document.text for document in source.documents())
    assert not source.notes


def test_long_names_of_columns_may_have_short_texts(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("title,description_for_the_shop\nMug,It holds one cup of tea\n")
    source = open_collection(path)
    assert [one.text for one in source.documents()] == ["It holds one cup of tea"]


def test_ids_beside_prose_may_be_numbers_and_a_named_id_stays(tmp_path):
    path = tmp_path / "x.json"
    path.write_text(json.dumps([{"data": {"id": 7, "note": text}} for text in PROSE[:1]]))
    assert [one.id for one in open_collection(path).documents()] == ["7"]
    rows = [{"note": PROSE[0]}, {"code": "b", "note": PROSE[1]}]
    path.write_text(json.dumps(rows))
    with pytest.raises(CollectionError, match="no 'code' is given"):
        list(open_collection(path, columns={"id": "code"}).documents())


def test_a_table_of_very_many_columns_is_refused_in_linear_time(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(",".join("1" * 60_000))  # minutes, if each name were looked for in the others
    with pytest.raises(CollectionError, match="no column 'title' or 'text'") as refused:
        list(open_collection(path).documents())
    assert len(refused.value.message) < 1000


def test_a_table_without_header_is_no_prose(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("\n".join(f'{at},"{text}"' for at, text in enumerate(PROSE)))
    with pytest.raises(CollectionError, match="if this line is a document, add one above it"):
        list(open_collection(path).documents())
    for columns in ({"title": "review"}, {"text": None, "title": "stars"}):
        path.write_text("review,stars\n" + "\n".join(f'"{text}",3' for text in PROSE))
        assert not any(one.text for one in open_collection(path, columns=columns).documents())


@pytest.mark.parametrize("header", ["id,alt text,alt_html", "id,user_name,error_message"])
def test_a_name_for_texts_behind_other_words_is_none(tmp_path, header):
    path = tmp_path / "x.csv"
    path.write_text(f"{header}\n1,a photo,hello\n", "utf-8")
    with pytest.raises(CollectionError, match="no column 'title' or 'text'"):
        list(open_collection(path).documents())
    path.write_text(f"{header},title\n1,a photo,hello,Pump\n", "utf-8")
    (document,) = open_collection(path).documents()
    assert (document.title, document.text) == ("Pump", "")
    assert set(document.metadata) == {*header.split(",")} - {"id"}
