"""XML as feeds, search engines, shops and wikis write it."""

import tracemalloc

import pytest

import klsa_search as klsa
from klsa_search.collection import open_collection
from klsa_search.errors import CollectionError

RSS = """<?xml version="1.0"?>
<rss version="2.0" xmlns:dc="http://purl.org/dc/elements/1.1/"><channel><title>News</title>
<item><title>Pump</title><guid isPermaLink="false">1</guid><dc:creator>Ann</dc:creator>
<category>a</category><category>b</category><description>The pump &amp; more</description></item>
<item><title>Valve</title><guid>2</guid><description>Stuck</description></item></channel></rss>"""
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom"><title>F</title><link rel="a" href="b"/>
<link rel="c" href="d"/><entry><id>1</id><title>Pump</title><author><name>Ann</name></author>
<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">The <b>pump</b> leaks</div>
</content></entry></feed>"""
SOLR = """<add><doc><field name="id">1</field><field name="title">Pump</field>
<field name="text">It leaks</field></doc><doc><field name="id">2</field>
<field name="title">Valve</field><field name="text">Stuck</field></doc></add>"""
ANSWER = """<response><lst name="responseHeader"><int name="status">0</int></lst><result><doc>
<str name="id">1</str><arr name="title"><str>Pump</str></arr><str name="text">It leaks</str>
</doc><doc><str name="id">2</str><arr name="title"><str>Valve</str></arr>
<arr name="text"><str>Stuck</str></arr></doc></result></response>"""
ROWS = """<?xml version="1.0" encoding="utf-8"?><posts>
<row Id="1" Title="Pump?" Body="How to fix it" /><row Id="2" Body="Replace it" /></posts>"""
WIKI = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.10/" xml:lang="en">
<siteinfo><namespaces><namespace key="0" case="x">a</namespace></namespaces></siteinfo>
<page><title>Pump</title><id>1</id><revision><id>5</id><text xml:space="preserve">It moves
water</text></revision></page></mediawiki>"""
SHOP = """<?xml version="1.0" encoding="{}"?><shop><products><product id="1"><name>Café</name>
<description>A <b>fine</b> pump</description><price currency="EUR">12.5</price></product>
<product id="2"><name>Valve</name></product></products></shop>"""


def read(path, **reading):
    source = open_collection(path, **reading)
    return [(d.id, d.title, d.text, dict(d.metadata)) for d in source.documents()], source


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (
            RSS,
            [
                (
                    "1",
                    "Pump",
                    "The pump & more",
                    {"guid.isPermaLink": "false", "creator": "Ann", "category": ["a", "b"]},
                ),
                ("2", "Valve", "Stuck", {}),
            ],
        ),
        (
            ATOM,
            [("1", "Pump", "The pump leaks", {"author": {"name": "Ann"}, "content.type": "xhtml"})],
        ),
        (ANSWER, [("1", "Pump", "It leaks", {}), ("2", "Valve", "Stuck", {})]),
        (SOLR, [("1", "Pump", "It leaks", {}), ("2", "Valve", "Stuck", {})]),
        (ROWS, [("1", "Pump?", "How to fix it", {}), ("2", "", "Replace it", {})]),
        (WIKI, [("1", "Pump", "It moves\nwater", {"revision": {"id": "5"}})]),
        (
            SHOP.format("utf-8"),
            [
                ("1", "Café", "A fine pump", {"price": "12.5", "price.currency": "EUR"}),
                ("2", "Valve", "", {}),
            ],
        ),
    ],
    ids=["rss", "atom", "answer", "solr", "rows", "wiki", "shop"],
)
def test_the_repeated_element_is_a_document(tmp_path, content, expected):
    path = tmp_path / "x.xml"
    path.write_text(content, encoding="utf-8")
    found, source = read(path)
    assert source.format == "xml"
    assert found == expected
    assert any("as a document" in note for note in source.notes)


@pytest.mark.parametrize("encoding", ["iso-8859-1", "windows-1252", "utf-16"])
def test_the_declared_encoding_is_used(tmp_path, encoding):
    path = tmp_path / "x.xml"
    path.write_bytes(SHOP.format(encoding).encode(encoding))
    assert read(path)[0][0][1] == "Café"


def test_a_large_file_is_read_to_its_end(tmp_path):
    path = tmp_path / "x.xml"
    rows = (f"<row><id>{number}</id><text>{'word ' * 40}</text></row>" for number in range(4_000))
    path.write_text(f"<?xml version='1.0'?><rows>{''.join(rows)}</rows>")
    assert sum(1 for _ in open_collection(path).documents()) == 4_000


@pytest.mark.slow
def test_elements_outside_documents_take_no_memory(tmp_path):
    path = tmp_path / "x.xml"
    items = "<b><title>x</title></b><b><title>y</title></b>"
    nested = f"<c>{'<d/>' * 2**10}</c>" * 2**5
    path.write_text(f"<?xml version='1.0'?><a>{items}{'<x/>' * 2**17}{nested}</a>")
    documents = open_collection(path).documents()
    next(documents)
    tracemalloc.start()
    try:
        assert [document.title for document in documents] == ["y"]
        assert tracemalloc.get_traced_memory()[1] < 2**23
    finally:
        tracemalloc.stop()


def test_documents_before_a_fault_are_read(tmp_path):
    path = tmp_path / "x.xml"
    path.write_text("<?xml version='1.0'?><a><b><title>x</title></b><b><title>y</title></b><b>")
    collection = open_collection(path, on_error="skip")
    assert [document.title for document in collection.documents()] == ["x", "y"]
    assert "no element found" in collection.problems.reasons[0]


def test_feeds_in_a_folder_are_tables_and_settings_are_not_read(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "feed.rss").write_text(RSS)
    (folder / "note.md").write_text("# Note")
    settings = "<a><setting>1</setting><value>2</value></a><a><setting>2</setting></a>"
    (folder / "pom.xml").write_text(f"<?xml version='1.0'?><project>{settings}</project>")
    with klsa.build(folder, name="folder", home=tmp_path / "home") as index:
        assert {hit.id for hit in index.search("pump valve note")} == {
            "feed.rss#1",
            "feed.rss#2",
            "note.md",
        }
        assert index.search("pump", filter="creator = Ann").total == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("<?xml version='1.0'?><a><b><title>x</title></b><b></a>", "invalid XML .mismatched tag"),
        ("<?xml version='1.0'?><a><b><title>x</title></b>", "invalid XML .no element found"),
        ("<?xml version='1.0' encoding='klingon'?><a/>", "convert it to UTF-8"),
        ("<?xml version='1.0'?><a><p>text</p><p>text</p></a>", "no element is repeated"),
        ("<?xml version='1.0'?><a><b><c>1</c></b><b><c>2</c></b></a>", "no column 'title' or"),
        (
            "<!DOCTYPE x [<!ENTITY a 'aaaaaaaaaa'>"
            + "".join(
                f"<!ENTITY {new} '{f'&{old};' * 20}'>"
                for old, new in zip("abcde", "bcdef", strict=True)
            )
            + "]><x><d><title>&f;</title></d><d><title>b</title></d></x>",
            "invalid XML .limit on input amplification",
        ),
    ],
)
def test_what_cannot_be_read_is_an_error(tmp_path, content, message):
    path = tmp_path / "x.xml"
    path.write_text(content)
    with pytest.raises(CollectionError, match=message):
        read(path)


@pytest.mark.parametrize("encoding", ["gbk", "Shift_JIS", "windows-1252", "utf-16", "big5"])
def test_an_encoding_that_expat_does_not_know_is_used(tmp_path, encoding):
    word = "水" if encoding != "windows-1252" else "Öl"
    rows = "".join(f"<row><id>{n}</id><text>{word} {n}</text></row>" for n in (1, 2))
    text = f"<?xml version='1.0' encoding='{encoding}'?><rows>{rows}</rows>"
    path = tmp_path / "rows.xml"
    path.write_bytes(text.encode(encoding))
    assert [each.text for each in open_collection(path).documents()] == [f"{word} 1", f"{word} 2"]


def test_bytes_that_the_declared_encoding_does_not_fit_are_refused(tmp_path):
    path = tmp_path / "rows.xml"
    path.write_bytes(b"<?xml version='1.0' encoding='gbk'?><a><b><text>\xff</text></b></a>")
    with pytest.raises(CollectionError, match="cannot be decoded"):
        list(open_collection(path, format="xml").documents())
