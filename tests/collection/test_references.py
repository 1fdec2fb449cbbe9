"""Bibliographies of reference managers and libraries."""

import pytest

from klsa_search.collection import open_collection
from klsa_search.errors import CollectionError

RIS = """TY  - JOUR
ID  - smith2020
AU  - Smith, Ann
AU  - Bob, C.
TI  - Pumps that leak
AB  - We study pumps
  that leak.
Y1  - 2020/03/05/
KW  - oil
ER  -

TY  - BOOK
ID  - cid
T1  - Valves
ER  -
"""
MEDLINE = """PMID- smith2020
TI  - Pumps that leak
AB  - We study pumps
      that leak.
AU  - Smith, Ann
AU  - Bob, C.
DP  - 2020/03/05
MH  - oil

PMID- cid
TI  - Valves
"""
ENDNOTE = """%0 Journal Article
%T Pumps that leak
%A Smith, Ann
%A Bob, C.
%X We study pumps
that leak.
%8 2020/03/05
%K oil

%0 Book
%T Valves
"""
BIBTEX = r"""% of pumps
@string{place = "Bonn"}
@article{smith2020,
  author = {Smith, Ann and Bob, C.},
  title = {{P}umps that \emph{leak}},
  abstract = "We study pumps {that leak}.",
  date = 2020/03/05,
  keywords = {oil}
}
@comment{x, title = {y}}
@book(cid, title = {Valves}, address = place # ", {\"U}ber \& caf{\'e}")
"""


def read(path, content, **reading):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return list(open_collection(path, **reading).documents())


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.ris", RIS), ("a.txt", RIS.replace("\n", "\r\n")), ("a.nbib", MEDLINE), ("a.enw", ENDNOTE),
     ("a.bib", BIBTEX), ("b", "\ufeff" + BIBTEX)],
)  # fmt: skip
def test_references_are_documents(tmp_path, name, content):
    first, other = read(tmp_path / name, content)
    assert (first.title, other.title) == ("Pumps that leak", "Valves")
    assert first.text == "We study pumps that leak."
    assert first.metadata["author"] == ["Smith, Ann", "Bob, C."]
    assert (first.metadata["date"], first.metadata["keywords"]) == ("2020/03/05", ["oil"])
    assert [first.id, other.id] == (["1", "2"] if name == "a.enw" else ["smith2020", "cid"])


def test_tex_is_text(tmp_path):
    assert read(tmp_path / "a.bib", BIBTEX)[1].metadata["address"] == "Bonn, Über & café"
    latin = BIBTEX.replace("Valves", "Ventile für Öl").encode("cp1252")
    assert read(tmp_path / "a.bib", latin)[1].title == "Ventile für Öl"


def test_references_without_ids_are_numbered(tmp_path):
    first, other = read(tmp_path / "a.ris", RIS.replace("ID  - cid\n", ""))
    assert [first.id, other.id, first.metadata["reference"]] == ["1", "2", "smith2020"]


def test_keys_that_are_not_used_are_reported(tmp_path):
    (tmp_path / "a.ris").write_text(RIS.replace("ID  - cid\n", ""))
    collection = open_collection(tmp_path / "a.ris")
    list(collection.documents())
    assert any("1 of 2 references have no key" in note for note in collection.notes)


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (BIBTEX.split(" and ")[0], r"a\.bib:3: .*no end; close its brace"),
        ("x\n" + RIS, r"a\.bib:1: no reference begins"),
    ],
)
def test_faults_name_the_line(tmp_path, content, fault):
    with pytest.raises(CollectionError, match=fault):
        read(tmp_path / "a.bib", content)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.py", "@dataclass(frozen=True)\nclass Pump: ..."),
        ("a.css", "@media (width > 1px) {}"),
        ("a.java", "@Test{a, b}"),
        ("a.txt", "@Ann (hello, world)"),
        ("a.txt", "TY - the hotel was fine"),
    ],
)
def test_code_and_prose_are_no_references(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    [document] = open_collection(tmp_path).documents()
    assert document.id == name


def test_bibliographies_of_a_folder_are_read(tmp_path):
    for name, content in (("a.ris", RIS), ("b.bib", BIBTEX), ("c.md", "# Notes")):
        (tmp_path / name).write_text(content)
    ids = [document.id for document in open_collection(tmp_path).documents()]
    assert ids == ["a.ris#smith2020", "a.ris#cid", "b.bib#smith2020", "b.bib#cid", "c.md"]


def test_formats_have_their_tags(tmp_path):
    medline = """PMID- 1
IS  - 1234-5678 (Electronic)
IP  - 3
TI  - Pumps
FAU - Smith, Ann
AU  - Smith A
LID - e12 [pii]
LID - 10.1/x [doi]
OT  - valves
MH  - oil
"""
    assert read(tmp_path / "a.nbib", medline)[0].metadata == {
        "author": ["Smith, Ann"], "doi": "10.1/x", "issn": "1234-5678 (Electronic)", "issue": "3",
        "keywords": ["oil", "valves"],
    }  # fmt: skip
    ris = """TY  - JOUR
TI  - Pumps
N2  - Pumps leak.
AB  - Pumps leak.
DA  - 2020/03/05/
PY  - 2020///
Y1  - 2020
UR  - https://a.org/b/
"""
    [document] = read(tmp_path / "a.ris", ris)
    assert document.text == "Pumps leak."
    assert document.metadata == {
        "date": "2020/03/05", "type": "JOUR", "url": "https://a.org/b/", "year": "2020",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.ris", "TY  - JOUR\nAB  - \nPumps move\nCO2 - or water\n%A %B\nUS - based.\nER  - \n"),
        ("a.nbib", "PMID- 1\nAB  - Pumps move\n  CO2 - or water\n  %A %B\n  US - based.\n"),
        ("a.enw", "%0 Book\n%X\nPumps move\nCO2 - or water\n %A %B\nUS - based.\n%+ Bonn\n"),
    ],
)  # fmt: skip
def test_continued_lines_are_no_fields(tmp_path, name, content):
    assert read(tmp_path / name, content)[0].text == "Pumps move CO2 - or water %A %B US - based."


def skipped(path, content):
    path.write_text(content)
    collection = open_collection(path, on_error="skip")
    return [document.id for document in collection.documents()], collection.problems.reasons


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("a.ris", RIS.replace("ER  -\n\n", "ER  -\nProvided by ACME\n(R)\n"), 11),
        ("a.nbib", MEDLINE.replace("\n\n", "\n\nProvided by ACME\n(R)\n"), 10),
        ("a.bib", BIBTEX.replace("@comment", "@book{b,\n title = {Oil,\n}\n@comment"), 10),
        ("a.bib", BIBTEX.replace("@comment", "@book{b, title = {A}}, year = 1}\n@comment"), 10),
        ("a.bib", BIBTEX.replace("@comment", "@book{b, title = {A} {B}, year = 1}\n@comment"), 10),
    ],
)
def test_faults_leave_other_references(tmp_path, name, content, line):
    ids, [reason] = skipped(tmp_path / name, content)
    assert ids == ["smith2020", "cid"]
    assert f"{name}:{line}: " in reason
