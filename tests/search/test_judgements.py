"""Judgements of an index survive changes of its documents and generations."""

import pytest

from klsa_search.errors import DocumentNotFound, StoreError
from klsa_search.storage.judgements import Judgements
from klsa_search.storage.maintenance import copy_index

DOCUMENTS = [{"id": str(n), "text": f"A wing of kind {n}."} for n in range(6)]


@pytest.fixture
def index(copy_of):
    return copy_of(DOCUMENTS, name="wings", dimensions=3)


def grades(index):
    return {each.text: dict(each.grades) for each in index.judgements.queries()}


def test_documents_that_are_there_are_judged(index):
    before = index.search("wing").hits
    index.judge("wing", "1", 1)
    index.judge("wing", "1", 0)
    index.add([{"id": "new", "text": "A wing."}])
    index.judge("wing", "new", 2)
    assert grades(index) == {"wing": {"1": 0, "new": 2}}
    with pytest.raises(DocumentNotFound):
        index.judge("wing", "nobody", 1)
    index.delete(["new"])
    assert index.search("wing").hits == before  # it changes no ranking
    assert grades(index) == {"wing": {"1": 0, "new": 2}}


def test_a_copy_that_fails_leaves_nothing(index, tmp_path, monkeypatch):
    index.judge("wing", "1", 1)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("klsa_search.storage.maintenance.commit", full)
    with pytest.raises(StoreError, match="No space"):
        copy_index(tmp_path / "wings", tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
    assert len(Judgements(tmp_path / "wings").queries()) == 1
