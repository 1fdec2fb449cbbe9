"""An index as a document store of Haystack."""

import pytest

from klsa_search.indexing import refit

pytest.importorskip("haystack", reason="needs Haystack: pip install 'klsa-search[haystack]'")

from haystack import Document, Pipeline
from haystack.dataclasses import ByteStream, SparseEmbedding
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.document_stores.types import DuplicatePolicy
from haystack.errors import FilterError
from haystack.testing.document_store import DocumentStoreBaseTests

from klsa_search.connect.haystack import KlsaDocumentStore, KlsaRetriever

from .conftest import MANUAL

pytestmark = pytest.mark.external

DOCUMENTS = [
    Document(id="heat", content="An engine that overheats has lost coolant.", meta={"year": 2021}),
    Document(id="tyre", content="Bald tyres slip on wet roads.", meta={"year": 2018}),
    Document(id="grip", content="Wet roads ask for longer distances.", meta={"title": "Grip"}),
]


@pytest.fixture
def document_store(tmp_path):
    return KlsaDocumentStore(str(tmp_path / "index" / "store"))


class TestStore(DocumentStoreBaseTests):
    """Haystack's own tests of a document store."""

    @pytest.fixture
    def document_store(self, tmp_path):
        return KlsaDocumentStore(str(tmp_path / "index" / "store"))

    def test_write_documents(self, document_store):
        """The default refuses documents that are there."""
        assert document_store.write_documents(DOCUMENTS) == 3
        with pytest.raises(DuplicateDocumentError):
            document_store.write_documents(DOCUMENTS[:1])


def test_a_document_comes_back_as_it_was(document_store):
    whole = [
        Document(
            content=None,
            blob=ByteStream(b"bytes", mime_type="text/plain"),
            embedding=[0.5, 1.0],
            sparse_embedding=SparseEmbedding([1], [0.5]),
            meta={"title": "T", "text": "other", "nested": {"a": [1]}, "none": None},
        ),
        Document(content="", meta={"title": 3, "id": "inner"}),
        Document(content="x", meta={"title": ""}),
    ]
    document_store.write_documents(whole)
    assert document_store.filter_documents() == whole


def test_policies_hold_within_one_call(document_store):
    twice = [Document(id="1", content="a"), Document(id="1", content="b")]
    with pytest.raises(DuplicateDocumentError):
        document_store.write_documents(twice)
    assert document_store.count_documents() == 0
    assert document_store.write_documents(twice, policy=DuplicatePolicy.SKIP) == 1
    assert document_store.filter_documents()[0].content == "a"
    assert document_store.write_documents(twice, policy=DuplicatePolicy.OVERWRITE) == 1
    assert document_store.filter_documents()[0].content == "b"


def test_a_retriever_searches_filters_and_scores(document_store):
    retriever = KlsaRetriever(document_store, top_k=2)
    assert retriever.run("roads") == {"documents": []}
    document_store.write_documents(DOCUMENTS)
    found = retriever.run("wet roads")["documents"]
    assert {each.id for each in found} == {"tyre", "grip"}
    assert found[0].score > found[1].score > 0
    assert next(each for each in found if each.id == "grip").meta == {"title": "Grip"}
    old = {"field": "meta.year", "operator": "<", "value": 2020}
    assert [each.id for each in retriever.run("wet roads", filters=old)["documents"]] == ["tyre"]
    assert len(retriever.run("wet roads", top_k=1)["documents"]) == 1


def test_the_first_documents_are_learnt_from_and_later_ones_by_a_refit(document_store):
    document_store.write_documents(DOCUMENTS)
    index = document_store.index()
    assert (index.drift.added, len(index)) == (0, 3)
    document_store.write_documents([Document(id="horn", content="A horn is silent.")])
    assert document_store.index().drift.added == 1
    refit(document_store.path).close()
    assert document_store.index().drift.added == 0
    assert KlsaRetriever(document_store).run("horn")["documents"][0].id == "horn"


def test_declared_fields_are_columns_from_the_first_document_on(tmp_path):
    store = KlsaDocumentStore(str(tmp_path / "store"), fields=["year:number"])
    store.write_documents([Document(content="a", meta={"year": "2021"})])
    recent = {"field": "meta.year", "operator": ">=", "value": 2020}
    assert len(store.filter_documents(recent)) == 1


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"field": "meta.mixed", "operator": "==", "value": 1}, "declare it"),
        ({"field": "meta.mixed.part", "operator": "==", "value": 1}, "declare it"),
        ({"field": "meta.title", "operator": "==", "value": "T"}, "not filterable"),
        ({"field": "content", "operator": "==", "value": "T"}, "not filterable"),
        ({"field": "meta.word", "operator": ">", "value": "2024-01-01"}, "not a bound"),
        ({"field": "meta.word", "operator": "~", "value": "x"}, "operators are: =="),
    ],
)
def test_unsupported_filters_are_errors(document_store, given, said):
    document_store.write_documents(
        [
            Document(content="a", meta={"mixed": 1, "word": "x"}),
            Document(content="b", meta={"mixed": [[1]]}),
        ]
    )
    with pytest.raises(FilterError, match=said):
        document_store.filter_documents(given)


def test_values_of_another_type_equal_none(document_store):
    document_store.write_documents(DOCUMENTS)
    for value in ("2021", True, [2021]):
        given = {"field": "meta.year", "operator": "==", "value": value}
        assert document_store.filter_documents(given) == []
    none = {"field": "meta.year", "operator": "in", "value": [2018, None]}
    assert [each.id for each in document_store.filter_documents(none)] == ["tyre", "grip"]
    nowhere = {"field": "meta.nowhere", "operator": "!=", "value": 1}
    assert len(document_store.filter_documents(nowhere)) == 3


def test_a_pipeline_is_written_down_and_read_again(document_store):
    document_store.write_documents(DOCUMENTS)
    pipeline = Pipeline()
    pipeline.add_component("retriever", KlsaRetriever(document_store, parameters={"alpha": 0.5}))
    ours = ["klsa_search.connect.haystack"]
    again = Pipeline.loads(pipeline.dumps(), allowed_modules=ours)
    given = {"retriever": {"query": "coolant"}}
    assert again.run(given) == pipeline.run(given)


def test_passages_within_a_number_of_tokens(tmp_path):
    store = KlsaDocumentStore(str(tmp_path / "manual"), settings={"passages": 60})
    meta = {"title": "Manual", "kind": "book"}
    store.write_documents([Document(id="manual", content=MANUAL["text"], meta=meta)])
    retriever = KlsaRetriever(store, max_tokens=300, filters=FILTER_OF_MANUAL)
    first = retriever.run("narwhal valve")["documents"][0]
    begin, end = first.meta["span"]
    assert (first.id, first.content) == (f"manual#{begin}-{end}", MANUAL["text"][begin:end])
    assert first.meta == meta | {
        "document_id": "manual", "span": [begin, end], "page": 3, "heading": "Chapter 2"
    }  # fmt: skip
    assert KlsaRetriever.from_dict(retriever.to_dict()).max_tokens == 300


FILTER_OF_MANUAL = {"field": "meta.kind", "operator": "==", "value": "book"}
