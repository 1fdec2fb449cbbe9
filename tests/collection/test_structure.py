"""The structure of document files: headings, paragraphs, lists, tables, code and pages."""

import io
import zipfile
from textwrap import dedent

import pytest

from klsa_search.analysis.passages import cut
from klsa_search.collection import open_collection
from klsa_search.collection.files.content import CELL, ITEM, SectionBuilder

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"

STRUCTURED = """\
First.

Second
line.
- one
- two

a | b
1 | 2

## Use

```
if x:
    run()
```

### On Windows

Third."""


def text_of(folder, name, data):
    """Return the text of a file, read as a folder with this file."""
    (folder / name).write_bytes(data)
    [document] = open_collection(folder).documents()
    return document.text


def test_markdown(tmp_path):
    source = """\
        # Pump

        *First*.

        Second
        line.

        * one
        * [two](u)

        | a | b |
        |---|---|
        | 1 | 2 |

        Use
        ---

        ```python
        if x:
            run()
        ```
        ### On Windows
        Third.
        """
    assert text_of(tmp_path, "a.md", dedent(source).encode()) == STRUCTURED


@pytest.mark.parametrize("piece", ["<", "<a ", "<!--"])
def test_html_in_markdown_is_read_in_linear_work(tmp_path, piece):
    """A pattern that reads on from each `<` would take minutes."""
    source = f"<div>{piece * 200_000}\n\nPump <b>leaks</b>"
    assert "Pump leaks" in text_of(tmp_path, "a.md", source.encode())


def test_html(tmp_path):
    source = (
        b"<title>Pump</title><h1>Pump</h1><p>First.<p>Second<br>line.<ul><li>one<li><p>two</p></ul>"
        b"<table><tr><th>a<th>b<tr><td><p>1</p><td><div>2</div></table><h2>Use</h2>"
        b"<pre><code>if <b>x</b>:\n    run()\n</code></pre><h3>On\nWindows</h3>Third."
    )
    assert text_of(tmp_path, "a.html", source) == STRUCTURED


def test_tables_of_pages_keep_their_paragraphs(tmp_path):
    page = b"<table><tr><td><p>First.</p><p>Second.</p><td><ul><li>one<li>two</ul></table>"
    assert text_of(tmp_path, "a.html", page) == "First.\n\nSecond.\n\n- one\n- two"


def test_nested_lists(tmp_path):
    page = b"<ul><li>one<ul><li>two</ul><li>three<p>more</ul>after"
    assert text_of(tmp_path, "a.html", page) == "- one\n- two\n- three\nmore\n\nafter"


def test_rst(tmp_path):
    source = """\
        ****
        Pump
        ****

        First.

        Second
        line.

        Use
        ===

        Run::

            if x:
                run()

        .. code-block:: python
           :linenos:

           y = 1

        On Windows
        ----------
        Third.
        """
    assert text_of(tmp_path, "a.rst", dedent(source).encode()) == (
        "First.\n\nSecond\nline.\n\n## Use\n\nRun:\n\n```\nif x:\n    run()\n```\n\n"
        "```\ny = 1\n```\n\n### On Windows\n\nThird."
    )


def word(text, style="", more=""):
    """Return a paragraph of a Word document."""
    styled = f'<w:pStyle w:val="{style}"/>' if style else ""
    return f"<w:p><w:pPr>{styled}{more}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"


def test_docx(tmp_path):
    row = "<w:tr><w:tc>{}</w:tc><w:tc>{}</w:tc></w:tr>"
    numbered = "<w:numPr><w:numId w:val='1'/></w:numPr>"
    body = (
        word("Pump", "t")
        + (word("First.") + word("Second.") + word("one", more=numbered))
        + (word("two", more=numbered) + word("After."))
        + f"<w:tbl>{row.format(word('a'), word('b'))}"
        + f"{row.format(word('1') + word('2'), word('3'))}</w:tbl>"
        + (word("Use", "h2") + word("Run.") + word("On Windows", "h3") + word("Third."))
    )
    styles = "".join(
        f'<w:style w:styleId="{style}"><w:name w:val="{name}"/></w:style>'
        for style, name in (("t", "Title"), ("h2", "heading 2"), ("h3", "Heading 3"))
    )
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as packed:
        for name, xml in (
            ("word/document.xml", f'<w:d xmlns:w="{WORD}"><w:body>{body}</w:body></w:d>'),
            ("word/styles.xml", f'<w:styles xmlns:w="{WORD}">{styles}</w:styles>'),
        ):
            packed.writestr(name, xml)
    assert text_of(tmp_path, "a.docx", made.getvalue()) == (
        "First.\n\nSecond.\n- one\n- two\n\nAfter.\na | b\n\n1\n\n2 | 3\n\n## Use\n\nRun."
        "\n\n### On Windows\n\nThird."
    )


def presentation():
    """Return a presentation of two slides; the first has a title, a list, a table and notes."""
    a = "http://schemas.openxmlformats.org/drawingml/2006/main"
    p = "http://schemas.openxmlformats.org/presentationml/2006/main"
    r = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"

    def shape(kind, *texts):
        place = f"<p:ph {kind}/>" if kind is not None else ""
        lines = "".join(f"<a:p><a:r><a:t>{text}</a:t></a:r></a:p>" for text in texts)
        kinds = f"<p:nvSpPr><p:nvPr>{place}</p:nvPr></p:nvSpPr>"
        return f"<p:sp>{kinds}<p:txBody>{lines}</p:txBody></p:sp>"

    def part(body):
        return f'<p:x xmlns:a="{a}" xmlns:p="{p}" xmlns:r="{r}">{body}</p:x>'

    def links(**targets):
        return "".join(
            f'<R Id="{key}" Type="{r}/{target.split("/")[-2][:-1]}" Target="{target}"/>'
            for key, target in targets.items()
        ).join(["<Rs>", "</Rs>"])

    cells = "".join(f"<a:tc><a:p><a:r><a:t>{text}</a:t></a:r></a:p></a:tc>" for text in "ab")
    parts = {
        "ppt/presentation.xml": part("<p:sldId r:id='b'/><p:sldId r:id='a'/>"),
        "ppt/_rels/presentation.xml.rels": links(a="slides/slide1.xml", b="/ppt/slides/slide2.xml"),
        "ppt/slides/slide1.xml": part(shape(None, "Second.") + shape('type="sldNum"', "2")),
        "ppt/slides/slide2.xml": part(
            shape('type="title"', "The", "pump")
            + shape('idx="1"', "leaks", "hums")
            + f"<a:tbl><a:tr>{cells}</a:tr></a:tbl>"
        ),
        "ppt/slides/_rels/slide2.xml.rels": links(n="../notesSlides/notesSlide1.xml"),
        "ppt/notesSlides/notesSlide1.xml": part(shape('type="body"', "Say it.")),
    }
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as packed:
        for name, xml in parts.items():
            packed.writestr(name, xml)
    return made.getvalue()


def test_pptx(tmp_path):
    assert text_of(tmp_path, "a.pptx", presentation()) == (
        "# The pump\n\n- leaks\n- hums\na | b\n\nSay it.\n\fSecond."
    )
    sections = open_collection(tmp_path, sections=True).documents()
    assert [document.title for document in sections] == ["a: slide 1", "a: slide 2"]


def pdf(*pages):
    """A file with pages of lines: size of the font, distance from the top, text."""
    count = len(pages)
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(count))
    objects = [
        "<</Type/Catalog/Pages 2 0 R>>",
        f"<</Type/Pages/Kids[{kids}]/Count {count}>>",
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    for number, lines in enumerate(pages):
        stream = "".join(
            f"BT /F1 {size} Tf 72 {800 - top} Td ({text}) Tj ET\n" for size, top, text in lines
        )
        objects += [
            f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents {5 + 2 * number} 0 R"
            "/Resources<</Font<</F1 3 0 R>>>>>>",
            f"<</Length {len(stream)}>>\nstream\n{stream}\nendstream",
        ]
    made = "%PDF-1.4\n" + "".join(
        f"{number} 0 obj\n{body}\nendobj\n" for number, body in enumerate(objects, start=1)
    )
    return f"{made}trailer\n<</Size {len(objects) + 1}/Root 1 0 R>>\n%%EOF\n".encode()


def test_pdf(tmp_path):
    data = pdf(
        [
            (20, 60, "The pump"),
            (10, 100, "It leaks, and"),
            (10, 112, "it hums."),
            (10, 124, "All day."),
            (10, 150, "It is old."),
        ],
        [],
        [
            (14, 60, "Noise on the"),
            (14, 76, "second floor"),
            (10, 100, "It knocks at night, and nobody sleeps."),
            (14, 130, "1 . . . . . . 2"),
        ],
    )
    text = text_of(tmp_path, "a.pdf", data)
    assert text == (
        "# The pump\n\nIt leaks, and\nit hums.\nAll day.\n\nIt is old.\n\f\n\f"
        "## Noise on the second floor\n\nIt knocks at night, and nobody sleeps.\n\n1 . . . . . . 2"
    )
    assert [(passage.heading, passage.page) for passage in cut(text, 14)] == [
        ("The pump", 1),
        ("The pump › Noise on the second floor", 3),
    ]


@pytest.mark.parametrize(("lines", "text"), [(30, "# The pump\n\n"), (1, "The pump\n")])
def test_a_pdf_with_a_line_that_ends_off_the_page(tmp_path, lines, text):
    body = [(10, 100 + 12 * number, "It leaks, and it hums. " * 4) for number in range(lines)]
    data = pdf([(20, 60, "The pump"), *body, (10, 500, f"{'w' * 72} end")])
    found = text_of(tmp_path, "a.pdf", data)
    assert found.startswith(f"{text}It leaks")
    assert found.endswith("end") == (lines > 1)


def test_running_titles_of_a_pdf_are_not_headings(tmp_path):
    body = "It leaks all day, and it hums all night. " * 2
    data = pdf(*[[(14, 40, "The pump"), (10, 80, body)]] * 3)
    assert text_of(tmp_path, "a.pdf", data) == "\n\f".join([f"The pump\n{body.strip()}"] * 3)


@pytest.mark.parametrize("kind", ["plain", "html"])
def test_a_forwarded_message_is_a_section(tmp_path, kind):
    data = (
        "Subject: Pump\nContent-Type: multipart/mixed; boundary=x\n\n"
        "--x\nContent-Type: text/plain\n\nSee below.\n"
        "--x\nContent-Type: message/rfc822\n\n"
        f"Subject: It leaks\nContent-Type: text/{kind}\n\nAll day.\n--x--\n"
    )
    assert text_of(tmp_path, "a.eml", data.encode()) == "See below.\n\n# It leaks\n\nAll day."


def test_items_and_cells_without_text_are_left_out():
    builder = SectionBuilder()
    builder.add(f"{CELL}a{CELL} {CELL}\n{ITEM}{ITEM}\n\n{ITEM} \n{ITEM}b{CELL}\n{CELL}c{ITEM}")
    assert builder.sections()[0].text == "a\n\n- b\nc"


def test_code_with_fences_is_between_longer_fences():
    builder = SectionBuilder()
    builder.add_code("```\n\n  x\n```\n")
    [section] = builder.sections()
    assert section.text == "````\n```\n\n  x\n```\n````"
    assert cut(section.text, 100)[0].heading == ""


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.csv", b'id,text\n1,"one\n\ftwo"\n'),
        ("a.jsonl", b'{"id": "1", "text": "one\\n\\ftwo"}\n'),
        ("a.txt", b"one\n\ftwo\n"),
    ],
)
def test_form_feeds_are_kept(tmp_path, name, data):
    assert text_of(tmp_path, name, data) == "one\n\ftwo"
