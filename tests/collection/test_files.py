"""Common file formats: what is read of each, and how damaged files are handled."""

import gzip
import io
import json
import random
import sys
import zipfile
from pathlib import Path

import pytest

from klsa_search.collection import open_collection
from klsa_search.collection.files import formats
from klsa_search.errors import CollectionError, MissingExtra

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
SLIDES = "http://schemas.openxmlformats.org/presentationml/2006/main"
LINKS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
DUBLIN = 'xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:dcterms="http://purl.org/dc/terms/"'


def archive(**parts):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, text in parts.items():
            packed.writestr(name.replace("__", "/").replace("_DOT_", "."), text)
    return made.getvalue()


def pdf(*pages, title="Pump report"):
    """A file with a line of Helvetica a page."""
    count = len(pages)
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(count))
    objects = [
        "<</Type/Catalog/Pages 2 0 R>>",
        f"<</Type/Pages/Kids[{kids}]/Count {count}>>",
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    for number, text in enumerate(pages):
        stream = f"BT /F1 12 Tf 72 700 Td ({text}) Tj ET" if text else ""
        objects += [
            f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents {5 + 2 * number} 0 R"
            "/Resources<</Font<</F1 3 0 R>>>>>>",
            f"<</Length {len(stream)}>>\nstream\n{stream}\nendstream",
        ]
    objects.append(f"<</Title({title})/Author(Ann)/CreationDate(D:20240229120000Z)>>")
    made, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, start=1):
        places.append(len(made))
        made += f"{number} 0 obj\n{body}\nendobj\n".encode()
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    size = len(objects) + 1
    return (
        made
        + (
            f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer\n"
            f"<</Size {size}/Root 1 0 R/Info {size - 1} 0 R>>\nstartxref\n{len(made)}\n%%EOF\n"
        ).encode()
    )


def docx(body):
    return archive(
        word__document_DOT_xml=f'<w:document xmlns:w="{WORD}"><w:body>{body}</w:body></w:document>',
        word__styles_DOT_xml=f'<w:styles xmlns:w="{WORD}"><w:style w:styleId="berschrift1">'
        '<w:name w:val="heading 1"/></w:style></w:styles>',
        docProps__core_DOT_xml=f"<c {DUBLIN}><dc:title>Pump report</dc:title>"
        "<dc:creator>Ann</dc:creator><dcterms:created>2024-02-29T12:00:00Z</dcterms:created></c>",
    )


def paragraph(text, style=""):
    styled = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{styled}<w:r><w:t>{text}</w:t></w:r></w:p>"


DOCX = docx(
    paragraph("Leaks", "berschrift1")
    + paragraph("The pump leaks.")
    + "<w:p><w:r><w:delText>gone</w:delText></w:r></w:p>"
    + paragraph("Noise", "berschrift1")
    + paragraph("It hums.")
)
EPUB = archive(
    mimetype="application/epub+zip",
    **{
        "META-INF__container_DOT_xml": "<container xmlns='urn:c'><rootfiles><rootfile"
        " full-path='OPS/book.opf'/></rootfiles></container>",
        "OPS__book_DOT_opf": f"<package xmlns='urn:p' {DUBLIN}><metadata>"
        "<dc:title>Pump report</dc:title><dc:language>en</dc:language></metadata><manifest>"
        "<item id='b' href='two.xhtml' media-type='application/xhtml+xml'/>"
        "<item id='a' href='o%20ne.xhtml' media-type='application/xhtml+xml'/></manifest>"
        "<spine><itemref idref='a'/><itemref idref='b'/></spine></package>",
        "OPS__o ne_DOT_xhtml": "<?xml version='1.0' encoding='utf-8'?><html><body>"
        "<h1>Leaks</h1><p>The pump leaks.</p></body></html>",
        "OPS__two_DOT_xhtml": "<html><body><h1>Noise</h1><p>It hums.</p></body></html>",
    },
)
HTML = (
    b"<html lang=en><head><title>Pump\n report</title><meta name=author content=Ann>"
    b"<meta property='article:published_time' content='2024-02-29'><style>p {}</style></head>"
    b"<body><nav>Home</nav><script>let x = '<p>'</script><!-- no --><h1>Leaks</h1>"
    b"<p>The <b>pump</b>\nleaks.<table><tr><td>1<td>2</table><h2>Noise</h2>It&nbsp;hums."
)
MAIL = (
    b"From: Ann <ann@x.org>\nTo: Bo <bo@x.org>\nSubject: =?utf-8?q?Caf=C3=A9?= pump\n"
    b"Date: Thu, 29 Feb 2024 12:00:00 +0100\nMIME-Version: 1.0\n"
    b"Content-Type: multipart/mixed; boundary=x\n\n"
    b"--x\nContent-Type: text/plain; charset=latin-1\n\nIt leaks, \xe9.\n"
    b"--x\nContent-Type: text/plain\nContent-Disposition: attachment\n\nsecret\n--x--\n"
)
MARKDOWN = (
    b"---\ntitle: 'Pump report'\ndate: 2024-02-29\nlang: en\n---\n# Leaks\n\nThe [pump](u) *leaks*."
    b"\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n## Noise\n\n```\nx = 1\n```\n<!-- no -->\n"
)
RST = (
    b":orphan:\n\n=====\nLeaks\n=====\n\n.. toctree::\n   :hidden:\n\n   other\n\n"
    b"The :ref:`pump <p>` ``leaks``.\n\n.. _p:\n\nNoise\n-----\n\n"
    b".. image:: hum.png\n   :width: 10\n\n.. note:: It hums.\n"
)

NOTEBOOK = json.dumps(
    {
        "nbformat": 4,
        "cells": [
            {"cell_type": "markdown", "source": ["# Leaks\n", "\n", "The *pump* leaks."]},
            {"cell_type": "code", "source": "x = 1\n", "outputs": [{"text": ["noise"]}]},
            {"cell_type": "raw", "source": "no"},
            {"cell_type": "markdown", "source": "## Noise\nIt hums."},
        ],
    }
).encode()
OPEN = "urn:oasis:names:tc:opendocument:xmlns"
ODT = archive(
    content_DOT_xml=f'<o:d xmlns:o="{OPEN}:office:1.0" xmlns:t="{OPEN}:text:1.0" '
    f'xmlns:b="{OPEN}:table:1.0"><o:body><o:text><t:table-of-content><t:p>Leaks 1</t:p>'
    '</t:table-of-content><t:h t:outline-level="1">Leaks</t:h><t:p>The <t:span>pump</t:span>'
    "<t:s/>leaks.<o:annotation><t:p>no</t:p></o:annotation></t:p><t:list><t:list-item><t:p>one"
    "</t:p></t:list-item><t:list-item><t:p>two</t:p></t:list-item></t:list><b:table><b:table-row>"
    "<b:table-cell><t:p>1</t:p></b:table-cell><b:table-cell><t:p>2</t:p></b:table-cell>"
    '</b:table-row></b:table><t:h t:outline-level="2">Noise</t:h><t:p>It hums.</t:p></o:text>'
    "</o:body></o:d>",
    meta_DOT_xml=f'<m xmlns:m="{OPEN}:meta:1.0" {DUBLIN}><dc:title>Pump report</dc:title>'
    "<m:initial-creator>Ann</m:initial-creator><m:creation-date>2024-02-29T12:00:00"
    "</m:creation-date></m>",
)
DOCBOOK = b"""<?xml version="1.0"?>
<!DOCTYPE book PUBLIC "-//OASIS//DTD DocBook XML V4.5//EN" "http://docbook.org/x.dtd" [
<!ENTITY product "pump">]>
<book lang="en"><bookinfo><title>Pump report</title><author><firstname>Ann</firstname>
<surname>Bee</surname></author><pubdate>2024-02-29</pubdate></bookinfo>
<chapter><title>Leaks</title><para>The &product; <emphasis>leaks</emphasis>&nbsp;.
</para><itemizedlist><listitem><para>one</para></listitem><listitem><para>two</para></listitem>
</itemizedlist><programlisting>x  =  1</programlisting><indexterm><primary>no</primary></indexterm>
<informaltable><tgroup><tbody><row><entry>1</entry><entry><para>2</para></entry></row></tbody>
</tgroup></informaltable><section><title>Noise</title><para>It hums.</para></section></chapter>
</book>"""


def write(folder, **files):
    for name, data in files.items():
        (folder / name.replace("_", ".")).write_bytes(data)
    return folder


def read(source, **options):
    return list(open_collection(source, **options).documents())


@pytest.mark.parametrize(
    ("name", "data", "title", "text", "metadata"),
    [
        ("a.pdf", pdf("It leaks.", "It hums."), "Pump report", "It leaks.\n\fIt hums.",
         {"author": "Ann", "date": "2024-02-29", "kind": "pdf"}),
        ("a.docx", DOCX, "Pump report", "# Leaks\n\nThe pump leaks.\n\n# Noise\n\nIt hums.",
         {"author": "Ann", "date": "2024-02-29T12:00:00Z", "kind": "docx"}),
        ("a.epub", EPUB, "Pump report", "# Leaks\n\nThe pump leaks.\n\n# Noise\n\nIt hums.",
         {"language": "en", "kind": "epub"}),
        ("a.html", HTML, "Pump report",
         "# Leaks\n\nThe pump leaks.\n\n1 | 2\n\n## Noise\n\nIt hums.",
         {"author": "Ann", "date": "2024-02-29", "language": "en", "kind": "html"}),
        ("a.eml", MAIL, "Café pump", "It leaks, é.",
         {"author": "Ann <ann@x.org>", "to": "Bo <bo@x.org>", "kind": "mail",
          "date": "2024-02-29T12:00:00+01:00"}),
        ("a.md", MARKDOWN, "Pump report",
         "# Leaks\n\nThe pump leaks.\n\na | b\n1 | 2\n\n## Noise\n\n```\nx = 1\n```",
         {"date": "2024-02-29", "language": "en", "kind": "markdown"}),
        ("a.rst", RST, "Leaks", "The pump leaks.\n\n## Noise\n\nIt hums.", {"kind": "rst"}),
        ("a.ipynb", NOTEBOOK, "Leaks",
         "The pump leaks.\n\n```\nx = 1\n```\n\n## Noise\n\nIt hums.", {"kind": "notebook"}),
        ("a.odt", ODT, "Pump report",
         "# Leaks\n\nThe pump leaks.\n- one\n- two\n\n1 | 2\n\n## Noise\n\nIt hums.",
         {"author": "Ann", "date": "2024-02-29T12:00:00", "kind": "odt"}),
        *((name, DOCBOOK, "Pump report",
           "## Leaks\n\nThe pump leaks.\n- one\n- two\n\n```\nx  =  1\n```\n\n1 | 2\n\n"
           "### Noise\n\nIt hums.",
           {"author": "Ann Bee", "date": "2024-02-29", "language": "en", "kind": "docbook"})
          for name in ("a.docbook", "a.xml")),
        ("README", b"It leaks.", "README", "It leaks.", {"kind": "text"}),
        ("a.log", b"12:00 It leaks.", "a", "12:00 It leaks.", {"kind": "text"}),
        ("a.py", b"def f():\n    return 1\n", "a.py", "def f():\n    return 1", {"kind": "code"}),
        ("a.txt", b"It  leaks.\n", "a", "It  leaks.", {"kind": "text"}),
    ],
)  # fmt: skip
def test_each_format_gives_title_text_and_metadata(tmp_path, name, data, title, text, metadata):
    (tmp_path / name).write_bytes(data)
    [document] = read(tmp_path)
    assert (document.id, document.title, document.text) == (name, title, text)
    assert document.metadata == {**metadata, "path": name}


def test_sections_become_documents_with_an_option(tmp_path):
    write(tmp_path, a_pdf=pdf("It leaks.", "It hums."), b_md=MARKDOWN, c_txt=b"plain")
    found = [(d.id, d.title, d.text) for d in read(tmp_path, sections=True)]
    assert found == [
        ("a.pdf#1", "Pump report: page 1", "It leaks."),
        ("a.pdf#2", "Pump report: page 2", "It hums."),
        ("b.md#1", "Pump report: Leaks", "The pump leaks.\n\na | b\n1 | 2"),
        ("b.md#2", "Pump report: Noise", "```\nx = 1\n```"),
        ("c.txt#1", "c", "plain"),
    ]
    with pytest.raises(CollectionError, match="has no sections"):
        open_collection(write(tmp_path / "..", x_jsonl=b'{"id": "1"}') / "x.jsonl", sections=True)


@pytest.mark.parametrize("name", ["a.b.mbox", "a.b.MBOX.gz"])
def test_an_mbox_is_a_document_a_message(tmp_path, name):
    messages = b"From a\nSubject: one\n\nfirst\n>From here\n\nFrom b\n\nsecond\n"
    (tmp_path / name).write_bytes(gzip.compress(messages) if name.endswith("gz") else messages)
    one, two = read(tmp_path / name)
    assert (one.id, one.title, one.text) == (f"{name}#1", "one", "first\nFrom here")
    assert (two.id, two.title, two.text) == (f"{name}#2", "a.b", "second")


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<p>caf\xe9".encode("latin-1"), "café"),
        ("<meta charset=koi8-r><p>да".encode("koi8-r"), "да"),
        ("<p>да".encode("utf-16"), "да"),
        ("<meta charset=no-such><p>да".encode(), "да"),
        (b"", ""),
    ],
)
def test_pages_are_read_in_what_they_are_written_in(tmp_path, page, text):
    assert read(write(tmp_path, a_html=page))[0].text == text


def test_unreadable_files_are_counted_by_kind_and_reason(tmp_path):
    write(tmp_path, a_txt=b"plain", b_pdf=pdf("x")[:100], c_pdf=pdf("x")[:90], d_pdf=pdf(""))
    write(tmp_path, e_docx=DOCX[:-30], f_html=b"<div>x" * 2000, g_txt=b"ok\n\0\n", h_xyz=b"?")
    with pytest.raises(CollectionError, match=r"b.pdf:1: is damaged \(.*--on-error skip"):
        read(tmp_path)
    source = open_collection(tmp_path, on_error="skip")
    assert [document.id for document in source.documents()] == ["a.txt"]
    assert source.problems.kinds == {
        ".pdf: is damaged": 2,
        ".pdf: contains no text": 1,
        ".docx: is damaged": 1,
        ".html: is nested too deep": 1,
        ".txt: contains data that is not text": 1,
    }
    assert "g.txt:2: " in source.problems.reasons[-1]
    assert source.unread.kinds == {".xyz": 1}


def test_without_the_extra_its_kinds_are_named_as_not_read(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "lxml", None)
    write(tmp_path, a_txt=b"plain", b_pdf=pdf("x"), c_docx=DOCX)
    source = open_collection(tmp_path)
    assert [document.id for document in source.documents()] == ["a.txt", "c.docx"]
    assert source.unread.kinds == {".pdf": 1}
    with pytest.raises(MissingExtra, match=r"klsa-search\[files\]"):
        open_collection(tmp_path / "b.pdf")
    (tmp_path / "a.txt").unlink()
    (tmp_path / "c.docx").unlink()
    with pytest.raises(MissingExtra, match=r"klsa-search\[files\]"):
        open_collection(tmp_path)


PPTX = archive(
    ppt__presentation_DOT_xml=f'<p:x xmlns:p="{SLIDES}" xmlns:r="{LINKS}">'
    '<p:sldId r:id="a"/></p:x>',
    ppt___rels__presentation_DOT_xml_DOT_rels='<R><R Id="a" Type="slide" Target="s.xml"/></R>',
    ppt__s_DOT_xml=f'<p:x xmlns:p="{SLIDES}"/>',
)

VTT = b"""WEBVTT - pumps

STYLE
::cue { color: red }

NOTE of the editor

intro
00:00:01.000 --> 00:00:04.000 align:start
<v Ann>Close the <b>valve</b> &amp;
wait.

00:04.000 --> 00:06.000
wait.
3 - 2 --> 1
"""
SRT = b"""1\r
00:00:01,000 --> 00:00:04,000\r
{\\an8}<i>Close the valve</i> &amp;\r
wait.\r
\r
2\r
00:00:04,000 --> 00:00:06,000\r
3 - 2 --> 1\r
"""


@pytest.mark.parametrize(("name", "content"), [("a.vtt", VTT), ("a.srt", SRT)])
def test_subtitles_are_their_text(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    (document,) = open_collection(tmp_path / name).documents()
    assert document.text == "Close the valve &\nwait.\n3 - 2 --> 1"
    assert document.metadata["kind"] == "subtitles"


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("a.srt", "1\n00:00:01,000 --> 00:00:02,000\nif a < b and c > d\n- I <3 you\n", None),
        ("a.srt", "1\n00:00:01,000-->00:00:02,000\nif a < b and c > d\n   \n2\n"
         "00:00:03,000\t-->  00:00:04,000\n- I <3 you\n", None),
        ("a.srt", "00:00:01 --> 00:00:02\nif a < b and c > d\n\n2\n0:03.5 --> 0:04.5\n"
         "<00:00:03.500>- I <c.red><3</c> you\n", None),
        ("a.vtt", "WEBVTT\n\nNOTE x\ny\n  \n00:01.000-->00:02.000\nif a < b and c > d\n\n"
         "4\n00:03.000 --> 00:04.000\n- I <3 you\n\nSTYLE\nx\n", None),
        ("a.srt", "1\n00:00:01,000 --> 00:00:02,000\nOne\n\nNOTE that well\n",
         "One\nNOTE that well"),
        ("a.srt", "1\n00:00:01,000 --> 00:00:02,000\n1984\n2 --> 1\n", "1984\n2 --> 1"),
    ],
)  # fmt: skip
def test_subtitles_keep_what_is_spoken(tmp_path, name, content, text):
    (tmp_path / name).write_text(content, "utf-8")
    (document,) = open_collection(tmp_path / name).documents()
    assert document.text == (text or "if a < b and c > d\n- I <3 you")
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(content.encode()))
    (document,) = open_collection(tmp_path / f"{name}.gz").documents()
    assert document.text == (text or "if a < b and c > d\n- I <3 you")


WHOLE = {
    "docbook": DOCBOOK,
    "docx": DOCX,
    "eml": MAIL,
    "epub": EPUB,
    "html": HTML * 20,
    "ipynb": NOTEBOOK,
    "mbox": b"From a\n" + MAIL,
    "md": MARKDOWN * 10,
    "odt": ODT,
    "pdf": pdf(*["It leaks."] * 5),
    "pptx": PPTX,
    "rst": RST * 10,
    "vtt": VTT * 10,
}


def test_every_parsed_format_is_tried_damaged():
    parsed = {each.name for each in formats.FORMATS if each.is_sandboxed}
    assert {formats.format_of(Path(f"a.{suffix}")).name for suffix in WHOLE} == parsed, (
        "add a sample to WHOLE"
    )


@pytest.fixture(scope="module")
def damaged(tmp_path_factory):
    """21 files of each format, cut short, a bit turned, many bits turned; and their documents."""
    folder, chance = tmp_path_factory.mktemp("damaged"), random.Random(0)
    for suffix, whole in WHOLE.items():
        for number in range(21):
            data = bytearray(whole)
            if number % 3 == 0:
                del data[chance.randrange(len(data)) :]
            else:
                for _ in range(1 if number % 3 == 1 else 30):
                    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            (folder / f"{number:02}.{suffix}").write_bytes(data)
    source = open_collection(folder, format="text", on_error="skip")
    return source, list(source.documents())


def test_damaged_files_are_read_or_refused(damaged):
    """No crash, no other error, the same each time."""
    source, found = damaged
    files = {document.id.partition("#")[0] for document in found}
    empty = 7  # of the mailboxes may contain no message
    assert len(files) + source.problems.count >= 21 * len(WHOLE) - empty
    assert found == list(source.documents())


@pytest.mark.parametrize("piece", ["<!--", "<a ", '<a href="', "</", "<![CDATA[", "<b><p>", "&#"])
def test_pages_that_other_parsers_never_finish_are_read(tmp_path, piece):
    assert len(read(write(tmp_path, a_html=piece.encode() * 50_000))) == 1
