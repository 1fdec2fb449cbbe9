"""An index measured by its own judgements."""

import pytest

from klsa_search import build
from klsa_search.errors import CollectionError
from klsa_search.evaluation.systems import compare_rankers, index_judgements

TEXTS = {"a": "Coolant leaks.", "b": "The pump leaks.", "c": "Wet roads.", "d": "A hose."}


@pytest.fixture
def index(tmp_path):
    documents = [{"id": id_, "text": text} for id_, text in TEXTS.items()]
    index = build(documents, name="one", home=tmp_path, dimensions=2)
    yield index
    index.close()


def test_rankers_are_compared_on_the_judgements_of_the_index(index):
    for query, id_, grade in (("leaks", "b", 1), ("leaks", "a", 0), ("roads", "c", 1)):
        index.judge(query, id_, grade)
    queries, judgements, gone = index_judgements(index)
    assert [(query.id, query.text) for query in queries] == [("1", "leaks"), ("2", "roads")]
    measured, compared = compare_rankers(index, queries, judgements, ["bm25", "rm3"])
    first = [hit.id for hit in index.search("leaks", ranker="bm25").hits]
    assert measured["bm25"].queries["1"]["map"] == 1 / (1 + first.index("b"))
    assert measured["bm25"].queries["2"]["map"] == 1
    assert compared.baseline == "bm25"
    assert gone == 0


def test_deleted_documents_are_left_out_and_counted(index):
    with pytest.raises(CollectionError, match="has no judgements"):
        index_judgements(index)
    index.judge("leaks", "a", 1)
    index.judge("roads", "c", 1)
    index.delete(["c"])
    queries, judgements, gone = index_judgements(index)
    assert ([each.document_id for each in judgements], gone) == (["a"], 1)
    measured, _ = compare_rankers(index, queries, judgements, ["bm25"])
    assert list(measured["bm25"].queries) == ["1"]
    index.delete(["a"])
    with pytest.raises(CollectionError, match="only 2 of deleted documents"):
        index_judgements(index)
