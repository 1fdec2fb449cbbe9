import numpy as np
import pytest
from scipy import sparse

from klsa_search import build
from klsa_search.errors import QueryError
from klsa_search.mining import cluster
from klsa_search.mining.duplicates import duplicates, leaders_of


def test_the_copy_is_found_and_nothing_else(index):
    (group,) = duplicates(index)
    assert [(one.id, one.title) for one in group.documents] == [
        ("d5", "title 5"),
        ("d48", "title 5"),
    ]
    first, second = group.documents
    assert first.similarity == 1
    assert second.similarity == pytest.approx(1, abs=1e-3)


def test_every_member_is_near_the_first_of_its_group(index):
    groups = duplicates(index, 0.4)
    seen = [one.id for group in groups for one in group.documents]
    assert len(seen) == len(set(seen))
    assert "d49" not in seen
    for group in groups:
        assert len(group.documents) > 1
        assert min(one.similarity for one in group.documents) >= 0.4 - 1e-4
        ids = [one.id for one in group.documents]
        assert ids == [id_ for id_ in index.ids() if id_ in ids]


def test_a_hundred_copies_are_one_group(tmp_path):
    copied = "one note of a bird in the wood"
    texts = [copied] * 100 + [f"word{n} and other{n} of the wood" for n in range(50)]
    source = [{"id": str(n), "text": text} for n, text in enumerate(texts)]
    index = build(source, name="copies", home=tmp_path)
    (group,) = duplicates(index, 1.0)
    assert [one.id for one in group.documents] == [str(n) for n in range(100)]
    assert {round(one.similarity, 4) for one in group.documents} == {1.0}
    index.close()


def test_progress_reaches_all_documents(index):
    calls = []
    duplicates(index, progress=lambda *call: calls.append(call))
    assert calls[-1] == ("neighbours", 50, 50)


def test_a_threshold_outside_its_limits_is_named(indexes):
    for threshold in (0, -1, 1.5, float("nan"), "0.9", True, None):
        with pytest.raises(QueryError, match="threshold") as refused:
            duplicates(indexes["small"], threshold)
        assert refused.value.field == "threshold"


def test_a_document_without_a_title_is_called_by_its_beginning(tmp_path):
    texts = ["a bird in the wood", "a bird in the wood", "bread and yeast", "steel and stone"]
    source = [{"id": str(n), "text": text} for n, text in enumerate(texts)]
    index = build(source, name="untitled", home=tmp_path)
    (group,) = duplicates(index)
    assert [one.title for one in group.documents] == ["a bird in the wood"] * 2
    index.close()


@pytest.mark.parametrize("spectral", ["gvsm", "squashing"])
def test_an_index_of_copies_alone_is_one_group(tmp_path, spectral):
    """Every document is the mean of all: K is 0 throughout."""
    texts = ["a bird in the wood"] * 3
    source = [{"id": str(n), "text": text} for n, text in enumerate(texts)]
    index = build(source, name="copies", home=tmp_path, spectral=spectral)
    (group,) = duplicates(index, 1.0)
    assert [(one.id, one.similarity) for one in group.documents] == [("0", 1), ("1", 1), ("2", 1)]
    with pytest.raises(QueryError, match="0 documents of index `copies` with coordinates"):
        cluster(index, 1)
    index.close()


@pytest.mark.parametrize("texts", [["a bird"], ["", "", ""]])
def test_one_document_and_empty_ones_repeat_nothing(tmp_path, texts):
    source = [{"id": str(n), "text": text} for n, text in enumerate(texts)]
    index = build(source, name="none", home=tmp_path)
    assert duplicates(index) == ()
    index.close()


def test_a_group_contains_documents_near_its_first_only():
    """1 is near 0, 2 near 1 alone, 3 near 2: two groups."""
    pairs = sparse.csr_array(
        np.array([[1, 0.95, 0, 0], [0.95, 1, 0.95, 0], [0, 0.95, 1, 0.95], [0, 0, 0.95, 1]])
    )
    order = np.arange(4)
    assert leaders_of(pairs, 0.9, order).tolist() == [-1, 0, -1, 2]
    assert leaders_of(pairs, 0.96, order).tolist() == [-1, -1, -1, -1]
    assert leaders_of(pairs, 0.9, order[::-1]).tolist() == [1, -1, 3, -1]
    assert leaders_of(pairs, 0.9, np.array([1, 0, 2, 3])).tolist() == [1, -1, 1, -1]
