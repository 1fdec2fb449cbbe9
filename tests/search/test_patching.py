"""Patches: changes of single fields, merged under the lock of the writer."""

import pickle
import threading
from contextlib import closing
from datetime import date
from decimal import Decimal

import pytest

from klsa_search import Document, open_index
from klsa_search.collection.mappings import merged
from klsa_search.errors import BadDocument, DocumentNotFound, StoreError
from klsa_search.storage.write_log import WriteLog
from tests.support.waiting import PATIENCE

BELT = {"id": "belt", "title": "Belt", "text": "A worn belt.", "year": 2020, "at": {"x": 1, "y": 2}}


@pytest.fixture
def index(copy_of):
    return copy_of([BELT, {"id": "horn", "text": "A silent horn."}], dimensions=2)


@pytest.mark.parametrize(
    ("metadata", "changes", "result"),
    [  # those of RFC 7396, appendix A, that are of objects
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        # `metadata`, as documents have it
        ({"a": 1, "b": 2}, {"metadata": {"a": None, "c": 3}}, {"b": 2, "c": 3}),
        ({"a": 1}, {"metadata": None, "b": 2}, {"b": 2}),
        ({"a": 1}, {"metadata": {"a": 2}, "a": 3}, {"a": 3}),
        ({"a": 1}, {"metadata": "text"}, {"a": 1, "metadata": "text"}),
    ],
)
def test_metadata_is_merged(metadata, changes, result):
    document = Document(id="1", title="t", text="x", metadata=metadata)
    before = repr(document)
    assert merged(document, changes) == Document(id="1", title="t", text="x", metadata=result)
    assert repr(document) == before


def test_title_and_text_are_replaced_or_removed():
    document = Document(id="1", title="t", text="x")
    assert merged(document, {"id": "1", "title": "u", "text": None}) == Document(id="1", title="u")
    assert merged(document, {"title": 7}).title == "7"
    nested: object = 1
    for _ in range(5000):
        nested = {"a": nested}
    for bad in ({"id": "2"}, {"_id": None}, {"title": ["t"]}, {"text": True}, {"a": nested}):
        with pytest.raises(BadDocument, match="document '1'"):
            merged(document, bad)


def test_a_patch_is_a_write_that_can_be_undone(index):
    result = index.patch("belt", {"text": "A squealing belt.", "year": None, "at": {"x": None}})
    assert (result.changed, result.deleted, result.log_position) == (1, 0, 1)
    patched = index.document("belt")
    assert (patched.title, patched.text) == ("Belt", "A squealing belt.")
    assert patched.metadata == {"at": {"y": 2}}
    assert [hit.id for hit in index.search("squealing", ranker="bm25").hits] == ["belt"]
    assert index.patch("belt", {"title": "Belt", "at": {}}).changed == 0
    assert len(WriteLog(index.path).batches()) == 1


def test_invalid_patches_are_refused(index):
    with pytest.raises(DocumentNotFound):
        index.patch("none", {"title": "x"})
    with pytest.raises(BadDocument):
        index.patch("belt", {"year": object()})
    with pytest.raises(StoreError, match="snapshot"):
        index.snapshot().patch("belt", {})
    assert WriteLog(index.path).batches() == []


def test_many_documents_are_patched_in_one_batch(index):
    before = index.document("belt")
    result = index.patch_many(
        [
            {"id": "belt", "year": 2021},
            {"_id": "horn", "text": "A loud horn.", "at": {"x": 3}},
            {"id": "belt", "at": {"x": None}},
        ]
    )
    assert (result.changed, result.deleted, result.log_position) == (2, 0, 2)
    assert index.document("belt").metadata == {"year": 2021, "at": {"y": 2}}
    assert index.document("belt").text == before.text
    assert index.document("horn") == Document(
        id="horn", text="A loud horn.", metadata={"at": {"x": 3}}
    )
    assert len(WriteLog(index.path).batches()) == 1
    again = [{"id": "horn", "at": {"x": 3}}, {"id": "belt", "year": 2022}]
    assert index.patch_many(again).changed == 1  # the other changes nothing
    assert index.patch_many([]).changed == 0


def test_unknown_ids_are_reported(index):
    deleted = index.delete(["none", "horn", "no", "none"])
    assert (deleted, deleted.unknown) == (1, ("none", "no"))
    assert pickle.loads(pickle.dumps(deleted)).unknown == deleted.unknown
    assert index.write((), ["horn"]).unknown == ("horn",)
    changes = [{"id": id_, "year": 1} for id_ in ("x", "belt", "y", "x")]
    with pytest.raises(DocumentNotFound, match="no documents 'x', 'y' in the index; check the IDs"):
        index.patch_many(changes)
    many = [{"id": str(number), "year": 1} for number in range(12)]
    with pytest.raises(DocumentNotFound, match="'9' and 2 more in the index"):
        index.patch_many(many)


@pytest.mark.parametrize(
    ("bad", "error", "says"),
    [
        ({"id": "none", "year": 1}, DocumentNotFound, "none"),
        ({"year": 1, "at": 2}, BadDocument, r"changes\[1\]: 'year', 'at' without an ID; add"),
        ({"id": "horn", "title": ["t"]}, BadDocument, "document 'horn'"),
    ],
)
def test_one_invalid_change_keeps_all_out(index, bad, error, says):
    with pytest.raises(error, match=says):
        index.patch_many([{"id": "belt", "year": 1}, bad])
    assert index.document("belt").metadata["year"] == 2020
    assert WriteLog(index.path).batches() == []


def test_concurrent_patches_lose_nothing(index):
    folder, failures = index.path.parent, []

    def patch(number):
        try:
            with closing(open_index(folder)) as another:
                for step in range(3):
                    another.patch("belt", {f"f{number}": {str(step): step}})
        except Exception as failure:  # noqa: BLE001 - reported by the test
            failures.append(failure)

    threads = [threading.Thread(target=patch, args=[number]) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert failures == []
    index.refresh()
    metadata = index.document("belt").metadata
    assert [metadata[f"f{n}"] for n in range(3)] == [{"0": 0, "1": 1, "2": 2}] * 3


def test_a_patch_of_contents_changes_the_text(index):
    index.patch("belt", {"contents": "A new belt."})
    assert (index.document("belt").text, "contents" in index.document("belt").metadata) == (
        "A new belt.", False,
    )  # fmt: skip


def test_a_patch_takes_the_values_that_documents_take(index):
    index.patch("belt", {"seen": date(2024, 3, 1), "price": Decimal("1.50")})
    metadata = index.document("belt").metadata
    assert (metadata["seen"], metadata["price"]) == ("2024-03-01", 1.5)
