"""Front matter and wiki links of Markdown files."""

import pytest

import klsa_search as klsa
from klsa_search.collection import open_collection

YAML = """---
title: "Pump: how to fix"
tags: [hardware, urgent]
draft: true
date: 2024-03-05
Aliases:
  - p1
owner: {name: Ann}
lang: de
weight:
---
See the hose.
"""
TOML = """+++
title = "Pump: how to fix"
tags = ["hardware", "urgent"]
draft = true
date = 2024-03-05
aliases = ["p1"]
lang = "de"
[owner]
name = "Ann"
+++
See the hose.
"""


def read(tmp_path, content):
    (tmp_path / "note.md").write_text(content)
    (document,) = open_collection(tmp_path).documents()
    return document


@pytest.mark.parametrize("content", [YAML, TOML, YAML.replace("\n", "\r\n")])
def test_fields_of_front_matter_are_metadata(tmp_path, content):
    document = read(tmp_path, content)
    assert (document.title, document.text) == ("Pump: how to fix", "See the hose.")
    assert document.metadata == {
        "tags": ["hardware", "urgent"],
        "draft": True,
        "date": "2024-03-05",
        "aliases": ["p1"],
        "owner": {"name": "Ann"},
        "language": "de",
        "kind": "markdown",
        "path": "note.md",
    }


@pytest.mark.parametrize(
    "content",
    [
        "---\nrelease_year: 1990\nversion: 1.10\nApp Version: 2\nversions: [1.9, 1.10]\n"
        "app: {release: 3.0}\nn: 1.10\n---\nA",
        '+++\nrelease_year = 1990\nversion = 1.10\n"App Version" = 2\nversions = [1.9, 1.10]\n'
        "app.release = 3.0\nn=1.10\n+++\nA",
    ],
)
def test_versions_stay_as_they_are_written(tmp_path, content):
    metadata = read(tmp_path, content).metadata
    assert {name: metadata[name] for name in metadata.keys() - {"kind", "path"}} == {
        "version": "1.10",
        "app version": "2",
        "release_year": 1990,
        "versions": ["1.9", "1.10"],
        "app": {"release": "3.0"},
        "n": "1.10",
    }


def test_versions_of_a_language_are_filtered_as_they_are_written(tmp_path):
    vault = tmp_path / "vault"
    vault.mkdir()
    for version in ("3.1", "3.10", "3.9"):
        (vault / f"{version}.md").write_text(f"---\npython: {version}\n---\nThe hose of a valve.\n")
    index = klsa.build(vault, name="vault", home=tmp_path / "index")
    found = index.search("hose", filter="python = 3.10", facets=["python"])
    assert [hit.id for hit in found.hits] == ["3.10.md"]


def test_digits_that_are_no_number_of_yaml_stay_as_they_are(tmp_path):
    metadata = read(
        tmp_path,
        "---\nsku: 00123\nat: 12:30\nn: -5\nm: 0\nx: 0x1f\ncountry: NO\nphone: +49301\n"
        "python: 3.10\nratio: 1.5\ndraft: True\n---\nBody.",
    ).metadata
    assert {name: metadata[name] for name in metadata.keys() - {"kind", "path"}} == {
        "sku": "00123",
        "at": "12:30",
        "n": -5,
        "m": 0,
        "x": 31,
        "country": "NO",
        "phone": "+49301",
        "python": "3.10",
        "ratio": 1.5,
        "draft": True,
    }


def test_no_and_yes_are_truth_values_unless_they_are_words(tmp_path):
    document = read(
        tmp_path,
        "---\ndraft: no\ntoc: Yes\ncomments: off\ncountry: NO\nlang: no\ntags: [on, off]\n"
        "title: No\nflags: {pinned: on}\n---\nBody.",
    )
    metadata = document.metadata
    assert document.title == "No"
    assert {name: metadata[name] for name in metadata.keys() - {"kind", "path"}} == {
        "draft": False,
        "toc": True,
        "comments": False,
        "country": "NO",
        "language": "no",
        "tags": ["on", "off"],
        "flags": {"pinned": True},
    }


def test_fields_are_filtered(tmp_path):
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "a.md").write_text(YAML)
    (vault / "b.md").write_text("# Valve\n\nThe hose of the valve.\n")
    index = klsa.build(vault, name="vault", home=tmp_path / "index")
    wanted = "tags = urgent AND owner.name = Ann AND date < 2025-01-01"
    assert [hit.id for hit in index.search("hose", filter=wanted).hits] == ["a.md"]


@pytest.mark.parametrize(
    ("content", "title", "text"),
    [
        ("---\ntitle: a: b: [c\n---\nBody.", "a: b: [c", "Body."),
        ("+++\ntitle = x\n+++\nBody.", "x", "Body."),
        ("---\n---\nBody.", "note", "Body."),
        ("---\nA paragraph.\n\n---\nBody.", "note", "A paragraph.\n\nBody."),
        ("Body.\n\n---\ntitle: no\n---\n", "note", None),
        ("---\nn: .nan\ninf: .inf\n---\nBody.", "note", "Body."),
        ("---\na: &a [x]\nb: [*a, *a]\n---\nBody.", "note", "Body."),
    ],
)
def test_invalid_front_matter_stays_text(tmp_path, content, title, text):
    document = read(tmp_path, content)
    assert document.title == title
    assert text is None or document.text == text


@pytest.mark.parametrize(
    ("content", "is_noted"),
    [("tags:\n\t- a\nowner: Ann", True), ("owner: Ann", False), ("A paragraph.", False)],
)
def test_invalid_front_matter_is_noted(tmp_path, content, is_noted):
    (tmp_path / "note.md").write_text(f"---\n{content}\n---\nBody.")
    source = open_collection(tmp_path)
    assert len(list(source.documents())) == 1
    assert any("front matter is not valid YAML" in note for note in source.notes) == is_noted


@pytest.mark.parametrize(
    ("link", "text"),
    [
        ("[[valve]]", "valve"),
        ("[[valve|the valve note]]", "the valve note"),
        ("[[valve#Seat]]", "valve > Seat"),
        ("[[#Seat]]", "Seat"),
        ("[[valve#^3f2a]]", "valve"),
        ("![[plan.png]]", "plan.png"),
        ("`[[valve]]`", "[[valve]]"),
        ("a[[1]]b", "a1b"),
    ],
)
def test_wiki_links_are_text(tmp_path, link, text):
    assert read(tmp_path, f"See {link}.").text == f"See {text}."


def test_wiki_links_in_fields_are_their_labels(tmp_path):
    front = '---\nup: "[[Valves]]"\nparts: ["[[seat|Seat of valve]]"]\n---\nBody.'
    metadata = read(tmp_path, front).metadata
    assert (metadata["up"], metadata["parts"]) == ("Valves", ["Seat of valve"])


@pytest.mark.parametrize(
    "code", ["", "import A from 'a';\nimport {\n  B,\n} from 'b';\n\nexport const c = 1;\n\n"]
)
def test_imports_of_mdx_are_no_text(tmp_path, code):
    (tmp_path / "a.mdx").write_text(f"---\nslug: x\n---\n{code}# Pump\n\nimport it now.\n")
    (document,) = open_collection(tmp_path).documents()
    assert (document.title, document.text) == ("Pump", "import it now.")


def test_broken_front_matter_with_many_blanks_is_read_in_linear_time(tmp_path):
    blanks = " " * 2**18
    document = read(tmp_path, f"---\nparts: [\nowner: 'Ann{blanks}B' {blanks}\n---\nBody.")
    assert document.metadata["owner"] == f"Ann{blanks}B"


def test_code_and_text_of_mdx_remain(tmp_path):
    text = "# Pump\n\n```\nimport A from 'a';\n```\n\nexport it\nnow.\n"
    (tmp_path / "a.mdx").write_text(text)
    (document,) = open_collection(tmp_path).documents()
    assert document.text == "```\nimport A from 'a';\n```\n\nexport it\nnow."


def test_tags_with_commas_are_a_list(tmp_path):
    document = read(tmp_path, "---\ntags: hardware, urgent\nowner: Ann, Bob\n---\nSee the hose.\n")
    assert document.metadata["tags"] == ["hardware", "urgent"]
    assert document.metadata["owner"] == "Ann, Bob"


@pytest.mark.parametrize("text", ["{% raw %} hose", '{"a": 1} hose', "{} hose", '["a"]'])
def test_other_braces_are_text(tmp_path, text):
    assert read(tmp_path, text).text.startswith(text[:2])


@pytest.mark.parametrize(
    "content",
    [
        "<!-- licence\ntitle: x -->\n# Pump\nIt leaks.\n",
        "---\n\n# Pump\nIt leaks.\n",
        "Pump\n====\nIt leaks.\n",
    ],
)
def test_titles_of_other_kinds_are_read(tmp_path, content):
    document = read(tmp_path, content)
    assert (document.title, document.text) == ("Pump", "It leaks.")


@pytest.mark.parametrize(
    "content",
    [
        "It leaks.\n\n# Pump\n",
        "    code\n\n# Pump\n",
        "<p>It leaks</p>\n\n# Pump\n",
    ],
)
def test_a_later_heading_is_no_title(tmp_path, content):
    assert read(tmp_path, content).title == "note"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.org", "#+TITLE: Pump\n* Head\nleaks"),
        ("a.adoc", "= Pump\n:author: Ann\n\nleaks"),
        ("a.tex", "% \\title{Old}\n\\documentclass{a}\\title{Pump}\n\\section{Head}\nleaks"),
        ("Pump.tex", "\\title{On \\emph{valves}}\nleaks"),
    ],
)
def test_titles_of_org_asciidoc_and_tex(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    (document,) = open_collection(tmp_path).documents()
    assert document.title == "Pump"
