"""Invalid documents are refused before anything else sees them."""

import math

import numpy as np
import pytest

from klsa_search.collection import Document, open_collection
from klsa_search.errors import CollectionError

CYCLE = {}
CYCLE["self"] = CYCLE


def nested(levels):
    value = [] if levels % 2 else {}
    for level in range(1, levels):
        value = {"in": value} if level % 2 else [value]
    return value


BAD = [
    (Document(id=1), "the id is of type int, not str"),
    (Document(id="1", text=None), "the text is of type NoneType, not str"),
    (Document(id="1", title=b"bytes"), "the title is of type bytes, not str"),
    (Document(id="1", metadata=None), "the metadata is of type NoneType, not a mapping"),
    ({"id": "1", "days": object()}, "is not JSON"),
    ({"id": "1", "n": {"a": 1, 2: 3}}, "is not JSON"),
    ({"id": "1", "n": CYCLE}, "is not JSON"),
    ({"id": "1", "n": nested(100)}, "the metadata is nested more than 100 levels deep"),
    ({"id": "1", "note": "bad \ud83d half"}, "the metadata contains U+D83D, half of a character"),
    ({"id": "1", "bad \ud83d half": 1}, "the metadata contains U+D83D, half of a character"),
]


@pytest.mark.parametrize(("record", "reason"), BAD)
def test_unstorable_documents_are_named_or_skipped(record, reason):
    records = [{"id": "a"}, record, {"id": "z"}]
    with pytest.raises(CollectionError, match=r"^document 2: ") as caught:
        list(open_collection(records).documents())
    assert reason in caught.value.message
    source = open_collection(records, on_error="skip")
    assert [document.id for document in source.documents()] == ["a", "z"]
    assert source.problems.count == 1


def test_half_a_character_in_a_file(tmp_path):
    path = tmp_path / "docs.jsonl"
    path.write_text('{"id": "a"}\n{"id": "1", "text": "good", "note": "bad \\ud83d half"}\n')
    with pytest.raises(CollectionError, match=r"docs.jsonl:2: the metadata contains U\+D83D"):
        list(open_collection(path).documents())
    source = open_collection(path, on_error="skip")
    assert [document.id for document in source.documents()] == ["a"]


@pytest.mark.parametrize("number", [math.inf, -math.inf, np.float64("inf")])
def test_numbers_that_json_lacks_are_refused_by_field(number):
    for record, name in [
        ({"id": "2", "m": 1, "n": number}, "the field 'n'"),
        ({"id": "2", "n": {"x": [number]}}, "the field 'n'"),
        ({"id": "2", "title": number}, "document 2: 'title' is"),
    ]:
        with pytest.raises(CollectionError, match=r"document 2: .*not valid") as caught:
            list(open_collection([{"id": "1"}, record]).documents())
        assert name in caught.value.message
        source = open_collection([{"id": "1"}, record], on_error="skip")
        assert [document.id for document in source.documents()] == ["1"]


def test_json_values_pass_unchanged():
    metadata = {"n": [1, None, {"x": "é\0"}], "f": np.float64(0.5)}
    metadata["deep"] = nested(99)
    (document,) = open_collection([{"id": "1", **metadata}]).documents()
    assert document.metadata == metadata
