"""Documents are read as written; damage is named."""

import contextlib
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klsa_search import _native
from klsa_search.analysis.segmentation import all_characters
from klsa_search.collection.model import Document
from klsa_search.errors import DocumentNotFound, IndexDamaged
from klsa_search.storage import documents
from klsa_search.storage.arrays import open_array
from klsa_search.storage.documents import (
    KEYS,
    DocumentReader,
    DocumentWriter,
    RecordsPart,
    read_in_pieces,
)
from tests.support.waiting import PATIENCE

text = st.text(st.characters(exclude_categories=["Cs"]))
metadata = st.dictionaries(
    st.text(max_size=5), st.one_of(st.none(), st.integers(), text, st.lists(st.booleans()))
)


def stored(path, documents):
    with DocumentWriter(path) as writer:
        writer.extend(documents)
    return DocumentReader.open(path)


@given(contents=st.lists(st.tuples(text, text, metadata), max_size=8))
def test_stored_documents_are_read_back(tmp_path_factory, contents):
    documents = [
        Document(id=f"d/{number}", title=title, text=body, metadata=extra)
        for number, (title, body, extra) in enumerate(contents)
    ]
    reader = stored(tmp_path_factory.mktemp("store"), documents)
    assert reader.at(range(len(documents))) == documents
    assert reader.ids(reader.live_doc_ids()) == [document.id for document in documents]
    assert [reader.get(document.id) for document in documents] == documents


@pytest.mark.parametrize("size", [1, 100, 2**22])
def test_documents_are_read_in_pieces(tmp_path, monkeypatch, size):
    monkeypatch.setattr(documents, "_PIECE", size)
    some = [Document(id=f"d{number}", text="x" * number * 7) for number in range(9)]
    reader = stored(tmp_path, some)
    pieces = [list(piece.live_documents()) for piece in read_in_pieces(tmp_path)]
    assert [document for piece in pieces for document in piece] == some
    assert [document.id for document in some] == reader.ids(range(9))
    assert (len(pieces) > 1) == (size < 2**22)


def test_order_and_repeats_of_positions_are_kept_past_a_batch(tmp_path):
    with DocumentWriter(tmp_path) as writer:
        for begin in range(0, 2500, 1000):
            writer.extend(Document(id=str(n)) for n in range(begin, min(begin + 1000, 2500)))
    reader = DocumentReader.open(tmp_path)
    wanted = [2499, 0, 7, 7, *range(1200)]
    assert reader.ids(wanted) == [str(number) for number in wanted]
    assert [document.id for document in reader.at(wanted)] == [str(number) for number in wanted]


def test_an_unknown_id_is_named(tmp_path):
    with pytest.raises(DocumentNotFound, match="'x'"):
        stored(tmp_path, []).get("x")


def test_threads_may_share_a_reader(tmp_path):
    reader = stored(tmp_path, [Document(id=str(number)) for number in range(100)])
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda number: reader.ids([number]), list(range(100)) * 5))
    assert found == [[str(number)] for number in list(range(100)) * 5]


def test_a_record_is_the_document_without_its_text(tmp_path):
    documents = [Document(id="a", title="Ä", text="wing"), Document(id="b", metadata={"year": 1})]
    reader = stored(tmp_path, documents)
    assert [record[:3] for record in reader.records([1, 0])] == [
        ("b", "", {"year": 1}),
        ("a", "Ä", {}),
    ]
    assert [reader.text(position) for position in (0, 1)] == ["wing", ""]
    assert texts_of(*arrays_of(tmp_path)) == ["wing", ""]


def arrays_of(folder):
    return open_array(folder, "documents"), open_array(folder, "documents_starts")


def texts_of(content, starts):
    """The texts of records as the snippets read them."""
    codes = _native.DocumentBytes([(np.zeros(0, np.uint8), np.zeros(len(starts), np.int64))])
    records = _native.Records(_native.DocumentBytes([(content, starts)]))
    finder = _native.PassageFinder(records, codes, np.zeros(0, np.int32), 1)
    chosen = range(len(starts) - 1)
    passages, _, _ = finder.passages(chosen, [], [], 100_000, all_characters())
    return passages


@pytest.mark.parametrize("parts", [0, -1, -(2**63)])
def test_documents_without_parts_are_refused(parts):
    nothing = _native.DocumentBytes([(np.zeros(0, np.uint8), np.zeros(1, np.int64))])
    with pytest.raises(ValueError, match="parts: a document has at least one"):
        _native.PassageFinder(_native.Records(nothing), nothing, np.zeros(0, np.int32), parts)


def test_a_position_beyond_the_last_is_not_a_document(tmp_path):
    reader = stored(tmp_path, [Document(id="a")])
    with pytest.raises(IndexError):
        reader.at([1])


@given(changes=st.lists(st.tuples(st.integers(0, 79), st.integers(0, 255)), max_size=4))
def test_a_damaged_record_is_named_or_read(tmp_path, changes):
    """Whatever its bytes are: nothing outside of the file is looked at."""
    written = [Document(id=str(n), title="wing", text="flow", metadata={"n": n}) for n in range(3)]
    folder = tmp_path / "store"
    if not folder.exists():
        folder.mkdir()
        stored(folder, written)
    content, starts = open_array(folder, "documents").copy(), open_array(folder, "documents_starts")
    for place, value in changes:
        content[place] = value
    damaged = DocumentReader((RecordsPart(content, starts),), folder / "documents.npy")
    for position in range(3):
        with contextlib.suppress(IndexDamaged):
            damaged.document(position)
    with contextlib.suppress(ValueError):  # not UTF-8, or a zero byte
        assert len(texts_of(content, starts)) == 3


@pytest.mark.parametrize("begin", [-5, -(2**62), 2**62, 10**9])
def test_a_place_outside_of_the_records_is_damage(tmp_path, begin):
    stored(tmp_path, [Document(id="a", text="wing"), Document(id="b")])
    content, starts = arrays_of(tmp_path)
    starts = starts.copy()
    starts[1] = begin
    damaged = DocumentReader((RecordsPart(content, starts),), tmp_path / "documents.npy")
    with pytest.raises(IndexDamaged, match=r"cannot read `.*documents\.npy`"):
        damaged.document(1)
    assert texts_of(content, starts)[1] == ""


WRITING = """
import resource, sys
from pathlib import Path
from klsa_search.collection.model import Document
from klsa_search.errors import StoreError
from klsa_search.storage.documents import DocumentWriter
for room in sys.argv[2:]:
    folder = Path(sys.argv[1]) / room
    folder.mkdir()
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(room), resource.RLIM_INFINITY))
    try:
        with DocumentWriter(folder) as writer:
            for begin in range(0, 4000, 100):
                some = range(begin, begin + 100)
                writer.extend(Document(id=str(n), text="wing " * 100) for n in some)
    except StoreError as error:
        print(error.message)
    except OSError as error:
        print(error)
"""


def test_a_disk_that_is_full_is_named_wherever_it_fills_up(tmp_path):
    """Files that may grow no further fail as a full disk does: at the opening too."""
    rooms = ["0", "10000", "1000000"]
    command = [sys.executable, "-c", WRITING, str(tmp_path), *rooms]
    told = subprocess.check_output(command, text=True, timeout=PATIENCE).splitlines()
    for room, said in zip(rooms, told, strict=True):
        path = rf"/{room}/documents(_starts|_keys)?\.npy"
        assert re.fullmatch(rf"\[Errno 27\] File too large: '.*{path}'", said)


def test_documents_that_cannot_be_opened_are_damage(tmp_path):
    stored(tmp_path, [Document(id="a")])
    for name in (KEYS, "documents"):
        path = tmp_path / f"{name}.npy"
        path.write_bytes(b"\xff" * 8192)
        with pytest.raises(IndexDamaged, match=rf"cannot read .*{name}\.npy.*klsa-index repair"):
            DocumentReader.open(tmp_path)
        path.unlink()
        with pytest.raises(IndexDamaged, match=rf"cannot read .*{name}\.npy"):
            DocumentReader.open(tmp_path)


def test_ids_with_equal_keys_are_told_apart(tmp_path, monkeypatch):
    """The upper half of a hash is all that a key has of it."""
    monkeypatch.setattr(documents, "id_hash", lambda id_: len(id_) << 32)
    reader = stored(tmp_path, [Document(id=id_) for id_ in ("b", "a", "cc", "c")])
    assert [reader.find(id_) for id_ in ("a", "b", "c", "cc", "d", "dd", "ddd", "")] == [
        1, 0, 3, 2, None, None, None, None,
    ]  # fmt: skip
