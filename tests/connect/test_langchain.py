"""An index as a retriever of LangChain."""

import asyncio

import pytest

import klsa_search as klsa
from klsa_search.errors import QueryError

pytest.importorskip(
    "langchain_core", reason="needs LangChain: pip install 'klsa-search[langchain]'"
)
pytest.importorskip("langchain_tests", reason="needs langchain-tests: make test-connect")

from langchain_tests.integration_tests import RetrieversIntegrationTests

from klsa_search.connect.langchain import KlsaRetriever

from .conftest import MANUAL

pytestmark = pytest.mark.external


@pytest.mark.asyncio
class TestStandard(RetrieversIntegrationTests):
    """LangChain's own tests of a retriever."""

    @pytest.fixture(autouse=True)
    def with_index(self, index):
        self.index = index

    @property
    def retriever_constructor(self):
        return KlsaRetriever

    @property
    def retriever_constructor_params(self):
        return {"index": self.index, "k": 2}

    @property
    def retriever_query_example(self):
        return "coolant"

    @pytest.fixture
    def retriever(self):
        return KlsaRetriever(**self.retriever_constructor_params)


def test_a_document_has_text_id_title_score_and_metadata(index):
    (found,) = KlsaRetriever(index=index, k=1).invoke("leaks stains")
    (hit,) = index.search("leaks stains", 1)
    assert (found.id, found.page_content) == ("leak", index.document("leak").text)
    assert found.metadata == {"year": 2024, "title": "", "score": hit.score}


def test_k_and_filter_of_a_call_beat_those_of_the_retriever(index):
    retriever = KlsaRetriever(index=index, k=1, filter="year < 2020")
    assert [each.id for each in retriever.invoke("coolant")] == ["pump"]
    other = {"field": "year", ">": 2020}
    found = [each.id for each in retriever.invoke("coolant", k=2, filter=other)]
    assert sorted(found) == ["heat", "leak"]
    again = asyncio.run(retriever.ainvoke("coolant", k=2, filter=other))
    assert [each.id for each in again] == found


def test_parameters_are_those_of_a_search(index):
    retriever = KlsaRetriever(index=index, parameters={"ranker": "bm25"})
    bm25 = [hit.id for hit in index.search("wet", ranker="bm25")]
    assert [each.id for each in retriever.invoke("wet")] == bm25
    with pytest.raises(QueryError, match="alpha"):
        KlsaRetriever(index=index, parameters={"alpha": 2}).invoke("wet")


def test_written_documents_are_found(index):
    retriever = KlsaRetriever(index=index)
    index.add([{"id": "horn", "text": "A horn that will not sound."}])
    assert [each.id for each in retriever.invoke("horn")][:1] == ["horn"]


def test_passages_within_a_number_of_tokens(tmp_path):
    index = klsa.build([MANUAL], name="manual", home=tmp_path, passages=60)
    retriever = KlsaRetriever(index=index, max_tokens=300)
    (first, *_) = found = retriever.invoke("narwhal valve")
    begin, end = first.metadata["span"]
    assert (first.id, first.page_content) == (f"manual#{begin}-{end}", MANUAL["text"][begin:end])
    assert first.metadata | {"score": 0} == {
        "title": "Manual", "score": 0, "document_id": "manual", "span": [begin, end], "page": 3,
        "heading": "Chapter 2",
    }  # fmt: skip
    assert asyncio.run(retriever.ainvoke("narwhal valve")) == found
    assert asyncio.run(retriever.ainvoke("narwhal valve", max_tokens=3)) == []
    index.close()
