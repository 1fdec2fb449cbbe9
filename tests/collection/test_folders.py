"""Folders, TREC files, format detection and sidecar files."""

import gzip

import pytest

from klsa_search.collection import COLLECTIONS, FORMATS, open_collection, read_qrels, read_topics
from klsa_search.errors import CollectionError

TREC = """<DOC>
<DOCNO> FT-1 </DOCNO>
<DATE>930101</DATE>
<HEADLINE>Tea &amp; biscuits</HEADLINE>
<TEXT>
<P>First, 3 < 4.
<P>Second.
</TEXT>
<BYLINE>By <B>A</B></BYLINE>
</DOC>
<doc> <docno>2</docno> Loose <b>words</b>, no frame. </doc>
"""
TOPICS = """<top>
<num> Number: 301
<title> International Organized Crime

<desc> Description:
Which groups?
<narr> Narrative: none
</top>
<top><num> Number: 302 <title> Topic: <desc> Description: Only described. </top>
"""


def ids(source, **options):
    return [document.id for document in open_collection(source, **options).documents()]


def test_trec_documents(tmp_path):
    path = tmp_path / "ft.z"
    path.write_bytes(gzip.compress(TREC.encode()))
    source = open_collection(path)
    one, two = source.documents()
    assert source.format == "trec"
    assert (one.id, one.title, one.origin) == ("FT-1", "Tea & biscuits", f"{path}:1")
    assert one.text.split() == ["First,", "3", "<", "4.", "Second."]
    assert one.metadata == {"date": "930101", "byline": "By  A"}
    assert (two.id, two.title, two.text.split()) == (
        "2",
        "",
        ["Loose", "words", ",", "no", "frame."],
    )
    assert two.metadata == {}


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (b"<DOC>\n<DOCNO>b</DOCNO>\n", "without </DOC>"),
        (b"<DOC>\n<TEXT>x</TEXT>\n</DOC>\n", "0 DOCNO"),
        (b"<DOC>\n<DOCNO></DOCNO>\n</DOC>\n", "id is blank"),
        (b"<DOC>\n<DOCNO>b</DOCNO><TEXT>\xff</TEXT>\n</DOC>\n", "not UTF-8"),
    ],
)
def test_trec_bad_records_are_named_or_skipped(tmp_path, record, reason):
    good = b"<DOC>\n<DOCNO>%s</DOCNO>\n</DOC>\n"
    path = tmp_path / "ft"
    path.write_bytes(good % b"a" + record + good % b"z")
    with pytest.raises(CollectionError, match=f"ft:4: .*{reason}"):
        ids(path)
    source = open_collection(path, on_error="skip")
    assert [d.id for d in source.documents()] == ["a", "z"]
    assert source.problems.count == 1


def test_trec_folder_with_topics_and_qrels(tmp_path):
    (tmp_path / "disk" / "ft").mkdir(parents=True)
    (tmp_path / "disk" / "ft" / "ft1").write_text(TREC)
    (tmp_path / "README.txt").write_text("about")
    (tmp_path / "topics.301-302.txt").write_text(TOPICS)
    (tmp_path / "qrels.txt").write_text("301 0 FT-1 2\n301 0 2 -1\n")
    source = open_collection(tmp_path)
    assert source.format == "trec"
    assert [d.id for d in source.documents()] == ["FT-1", "2"]
    assert [(q.id, q.text) for q in source.queries()] == [
        ("301", "International Organized Crime"),
        ("302", "Only described."),
    ]
    assert [(j.document_id, j.grade, j.gain) for j in source.judgements()] == [
        ("FT-1", 2, 2),
        ("2", -1, 0),
    ]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("nothing", "no <top>"),
        ("<top>\n<title> x\n</top>", ":1: the query id is blank"),
        ("<top><num> 1</top>\n<top><num> 1</top>", ":2: the query id '1' is used before"),
    ],
)
def test_bad_topics(tmp_path, content, reason):
    (tmp_path / "topics").write_text(content)
    with pytest.raises(CollectionError, match=reason):
        read_topics(tmp_path / "topics")


def test_bad_qrels(tmp_path):
    path = tmp_path / "qrels"
    for content, reason in [
        ("1 0 a 1\n\n1 a\n", ":3: 2 columns"),
        ("1 0 a x\n", ":1: the grade 'x'"),
        ("1 0 a 0.5\n", ":1: the grade '0.5' is not a whole number .* such as 1 and 2 for 0.5"),
        ("1 0 a 1e2\n", ":1: the grade '1e2'"),
        ("1 0 a nan\n", ":1: the grade 'nan'"),
        ("1 0 a 1_0\n", ":1: the grade '1_0'"),
        ("1 0 a 12345678901\n", ":1: the grade '12345678901'"),
        ("1 0 a 1\n1 0 a 2\n", "judged twice"),
    ]:
        path.write_text(content)
        with pytest.raises(CollectionError, match=reason):
            read_qrels(path)
    path.write_text("1 0 a 1\n1 0 a 1\n")
    assert len(read_qrels(path)) == 1


def write_beir(folder, packed=False):
    body = b'{"_id": "d 1", "title": "t", "text": "x", "metadata": {"url": "u"}}\n{"_id": "d2"}\n'
    name = "corpus.jsonl.gz" if packed else "corpus.jsonl"
    (folder / name).write_bytes(gzip.compress(body) if packed else body)
    (folder / "queries.jsonl").write_text('{"_id": "q1", "text": "what"}\n')
    (folder / "qrels").mkdir()
    for split, grade in (("dev", 1), ("test", 2)):
        (folder / "qrels" / f"{split}.tsv").write_text(
            f"query-id\tcorpus-id\tscore\nq1\td 1\t{grade}\n"
        )


@pytest.mark.parametrize("packed", [False, True])
def test_beir(tmp_path, packed):
    write_beir(tmp_path, packed)
    source = open_collection(tmp_path)
    assert source.format == "beir"
    first, _ = source.documents()
    assert (first.id, first.metadata) == ("d 1", {"url": "u"})
    assert [(q.id, q.text) for q in source.queries()] == [("q1", "what")]
    (line,) = source.judgements()
    assert (line.query_id, line.document_id, line.grade, line.gain) == ("q1", "d 1", 2, 2)
    (tmp_path / "qrels" / "test.tsv").unlink()
    assert source.judgements()[0].grade == 1


def test_grades_may_be_written_with_zeros_after_the_point(tmp_path):
    path = tmp_path / "qrels.txt"
    path.write_text("1 0 a 1.0\n1 0 b 2.00\n1 0 c -1.0\n1 0 d 3.\n1 0 e +2\n")
    assert [judgement.grade for judgement in read_qrels(path)] == [1, 2, -1, 3, 2]


def test_queries_are_strict(tmp_path):
    write_beir(tmp_path)
    (tmp_path / "queries.jsonl").write_text('{"_id": "q", "text": "a"}\n{"_id": "q"}\n')
    with pytest.raises(CollectionError, match=r"queries.jsonl:2: .*used before"):
        open_collection(tmp_path, on_error="skip").queries()


def test_a_folder_of_parts_has_judgements_next_to_it(tmp_path):
    (tmp_path / "b.jsonl").write_text('{"id": "2"}\n')
    (tmp_path / "a.jsonl").write_text('{"id": "1"}\n')
    (tmp_path / "README.md").write_text("# About")
    (tmp_path / "queries.jsonl").write_text('{"id": "q", "text": "w"}\n')
    (tmp_path / "qrels.tsv").write_text("q\t1\t1\n")
    source = open_collection(tmp_path)
    assert (source.format, [d.id for d in source.documents()]) == ("jsonl", ["1", "2"])
    assert (len(source.queries()), len(source.judgements())) == (1, 1)


def test_folder_of_text(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / ".hidden.md").write_text("no")
    (tmp_path / "z.txt").write_text("zed\n")
    (tmp_path / "a.md").write_text("# The title\n\nBody.\n")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\0")
    (tmp_path / "sub" / "b.rst.gz").write_bytes(gzip.compress("é".encode()))
    (tmp_path / "sub" / "empty.txt").write_text("")
    source = open_collection(tmp_path)
    assert source.format == "text"
    assert [(d.id, d.title, d.text) for d in source.documents()] == [
        ("a.md", "The title", "Body."),
        ("sub/b.rst.gz", "b", "é"),
        ("sub/empty.txt", "empty", ""),
        ("z.txt", "z", "zed"),
    ]
    (tmp_path / "k.txt").write_bytes("äöü\n".encode() + b"na\xefve\n")
    (tmp_path / "l.txt").write_bytes("sixteen".encode("utf-16"))
    (tmp_path / "m.txt.gz").write_bytes(gzip.compress(b"x" * 99)[:-9])
    with pytest.raises(CollectionError, match=r"k.txt:2: .*the line is not UTF-8"):
        ids(tmp_path)
    source = open_collection(tmp_path, on_error="skip")
    assert "sixteen" in [each.text for each in source.documents()]
    assert source.problems.count == 2


def test_one_text_file_needs_the_format_option(tmp_path):
    path = tmp_path / "note.txt"
    path.write_text("Some prose, with id, and text.\n")
    with pytest.raises(CollectionError, match=r"unknown format, it begins 'Some prose.*jsonl"):
        open_collection(path)
    assert ids(path, format="text") == ["note.txt"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "the file is empty"),
        (b"\x89PNG\0\0", "not UTF-8 text"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "or Outlook, .*: save it as XLSX, DOCX, PPTX or EML"),
        (b"BEGIN:VCALENDAR\r\n", "export it as CSV, or read it as text: --format text"),
        (b"BEGIN:VCARD\n", "it has contacts, .*: export them as CSV"),
        (b"window.YTD.tweets.part0 = [ {\n", "it is JavaScript: remove what stands before"),
        (b"Note: it leaks\n", "it begins 'Note: it leaks'; name its format .text reads it"),
        (b"SQLite format 3\0", "SQLite database, which is read as sqlite:FILE"),
    ],
)
def test_unrecognised_files_say_what_was_seen(tmp_path, content, reason):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(CollectionError, match=reason):
        open_collection(tmp_path / "x")


def test_yaml_is_told_by_its_suffix(tmp_path):
    (tmp_path / "x.yaml").write_text("id: 1")
    with pytest.raises(CollectionError, match=r"it is YAML, .*, or read it as text: --format text"):
        open_collection(tmp_path / "x.yaml")


def test_a_table_in_a_text_file_is_recognised_by_its_header(tmp_path):
    table = "Ticket ID\tSubject\tDescription\r\n1\tPump\tIt leaks\r\n2\tValve\tStuck\r\n"
    path = tmp_path / "Unicode Text.txt"
    for encoding in ("utf-8-sig", "utf-16"):
        path.write_bytes(table.encode(encoding))
        source = open_collection(path)
        assert [document.id for document in source.documents()] == ["1", "2"]
        assert f"{path}: read as a table; --format text reads it as text" in source.notes
    path.write_text("Key\tText\n1\tPump\n2\tValve\n")
    assert ids(path) == ["1", "2"]
    prose = "Body, text\nI came, I saw\nHe said, no\n"
    for content in (table.replace("Pump", "Pump; or\tnot"), prose):
        path.write_text(content)
        with pytest.raises(CollectionError, match="unknown format"):
            open_collection(path)


def test_names_and_values_in_text_files_are_no_tables(tmp_path):
    for name, end in (("a.txt", "author\tAnn\nyear\t2020\n"), ("b.txt", "author\tBob\n")):
        (tmp_path / name).write_text(f"title\tPump\n{end}")
    assert ids(tmp_path) == ["a.txt", "b.txt"]
    (tmp_path / "b.txt").write_text("title\ttext\n\nPump\tIt leaks\n")
    assert ids(tmp_path) == ["a.txt", "b.txt"]


def test_folders_without_documents_or_with_two_formats(tmp_path):
    with pytest.raises(CollectionError, match="no file of a known format"):
        open_collection(tmp_path)
    (tmp_path / "a.txt").write_text("prose")
    (tmp_path / "b").write_text("<DOC>\n<DOCNO>1</DOCNO>\n</DOC>\n")
    with pytest.raises(CollectionError, match=r"text \(a.txt\) and trec \(b\)"):
        open_collection(tmp_path)
    assert ids(tmp_path, format="trec") == ["1"]
    assert ids(tmp_path, format="text") == ["a.txt"]


def test_empty_is_a_value(tmp_path):
    (tmp_path / "a.jsonl").write_text("")
    assert ids(tmp_path / "a.jsonl") == []
    (tmp_path / "a.csv").write_text("id,text\n")
    assert ids(tmp_path / "a.csv") == []


def test_wrong_arguments(tmp_path):
    with pytest.raises(CollectionError, match="the collections are: cacm"):
        open_collection(tmp_path / "nowhere")
    with pytest.raises(CollectionError, match="format = 'yaml': must be 'beir', 'csv'"):
        open_collection(tmp_path, format="yaml")
    with pytest.raises(CollectionError, match="on_error = 'ignore'"):
        open_collection(tmp_path, on_error="ignore")
    with pytest.raises(CollectionError, match=r"no corpus.jsonl"):
        open_collection(tmp_path, format="beir")
    with pytest.raises(CollectionError, match="no SMART documents"):
        open_collection(tmp_path, format="smart")
    assert list(FORMATS) == sorted(FORMATS)
    assert list(COLLECTIONS) == sorted(COLLECTIONS)
