"""Data sets of ir_datasets, and objects of the same shape."""

import sys
from typing import NamedTuple

import pytest

from klsa_search import build
from klsa_search.collection import Document, Judgement, Topic, open_collection
from klsa_search.errors import CollectionError, FetchError, MissingExtra


class Paper(NamedTuple):
    doc_id: str
    title: str
    text: str
    year: int
    authors: tuple[str, ...]

    def default_text(self):
        return f"{self.title} {self.text}"


class Asked(NamedTuple):
    query_id: str
    text: str


class Judged(NamedTuple):
    query_id: str
    doc_id: str
    relevance: int
    iteration: str


class Papers:
    def docs_iter(self):
        yield Paper("1", "Wings", "Lift of slender wings.", 1957, ("A", "B"))
        yield Paper("2", "", "Heat in thin plates.", 1958, ())

    def queries_iter(self):
        yield Asked("q", "slender wings")

    def qrels_iter(self):
        yield Judged("q", "1", 2, "0")
        yield Judged("q", "2", -1, "0")


def test_whatever_has_docs_iter_is_a_source():
    papers = open_collection(Papers())
    assert (papers.name, papers.format) == ("irds:Papers", "irds")
    first, second = papers.documents()
    assert first == Document(
        id="1",
        title="Wings",
        text="Lift of slender wings.",
        metadata={"year": 1957},
        origin="document 1",
    )
    assert (second.title, second.text) == ("", "Heat in thin plates.")
    assert papers.queries() == [Topic(id="q", text="slender wings")]
    assert papers.judgements() == [
        Judgement(query_id="q", document_id="1", grade=2, gain=2),
        Judgement(query_id="q", document_id="2", grade=-1, gain=0),
    ]


def test_one_without_queries_has_none():
    class Bare:
        docs_iter = Papers().docs_iter

    bare = open_collection(Bare())
    assert (len(list(bare.documents())), bare.queries(), bare.judgements()) == (2, [], [])


def test_an_index_is_built_from_ir_datasets(tmp_path):
    index = build(Papers(), name="papers", home=tmp_path)
    assert [hit.id for hit in index.search("wings", filter="year = 1957")] == ["1"]
    index.close()


def test_a_data_set_by_its_name(tmp_path, monkeypatch):
    sets = pytest.importorskip("ir_datasets", reason="needs the extra irds")
    (tmp_path / "docs.tsv").write_text("1\tslender wings\n2\tthin plates\n")
    (tmp_path / "queries.tsv").write_text("q\twings\n")
    made = sets.create_dataset(
        docs_tsv=str(tmp_path / "docs.tsv"), queries_tsv=str(tmp_path / "queries.tsv")
    )
    monkeypatch.setattr(sets, "load", {"small": made}.__getitem__)
    small = open_collection("irds:small")
    assert [each.text for each in small.documents()] == ["slender wings", "thin plates"]
    assert (small.queries(), small.judgements()) == ([Topic(id="q", text="wings")], [])
    with pytest.raises(CollectionError, match="no data set 'none'"):
        open_collection("irds:none")


def test_without_the_extra_a_name_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "ir_datasets", None)
    with pytest.raises(MissingExtra, match=r"klsa-search\[irds\]"):
        open_collection("irds:cranfield")


@pytest.mark.parametrize(
    "failure", [RuntimeError("All download sources failed"), ConnectionError("no route to host")]
)
def test_a_failed_download_of_a_data_set_says_what_failed(failure):
    class Failing:
        def dataset_id(self):
            return "some/set"

        def docs_iter(self):
            raise failure

    with pytest.raises(FetchError, match=rf"`irds:some/set` \({failure}\); check the network"):
        list(open_collection(Failing()).documents())
