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


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (BIBTEX.split(" and ")[0], r"a\.bib:3: .*no end; close its brace"),
        ("x\n" + RIS, r"a\.bib:1: no tag, as in"),
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
