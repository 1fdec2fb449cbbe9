"""documents.db gives back what went in."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klsa_search.collection.model import Document
from klsa_search.errors import DocumentNotFound, IndexDamaged, StoreError
from klsa_search.store import DocumentReader, DocumentWriter
from klsa_search.store.documents import DOCUMENTS

text = st.text(st.characters(exclude_categories=["Cs"]))
metadata = st.dictionaries(
    st.text(max_size=5), st.one_of(st.none(), st.integers(), text, st.lists(st.booleans()))
)


def stored(path, documents):
    with DocumentWriter(path) as writer:
        writer.extend(documents)
    return DocumentReader(path)


@settings(max_examples=30)
@given(contents=st.lists(st.tuples(text, text, metadata), max_size=8))
def test_what_goes_in_comes_out(tmp_path_factory, contents):
    documents = [
        Document(id=f"d/{number}", title=title, text=body, metadata=extra)
        for number, (title, body, extra) in enumerate(contents)
    ]
    reader = stored(tmp_path_factory.mktemp("store"), documents)
    assert reader.at(range(len(documents))) == documents
    assert reader.all_ids() == [document.id for document in documents]
    assert [reader.get(document.id) for document in documents] == documents
    reader.close()


def test_order_and_repeats_of_positions_are_kept_past_a_batch(tmp_path):
    with DocumentWriter(tmp_path) as writer:
        for begin in range(0, 2500, 1000):
            writer.extend(Document(id=str(n)) for n in range(begin, min(begin + 1000, 2500)))
    reader = DocumentReader(tmp_path)
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


WRITING = """
import resource, sys
from pathlib import Path
from klsa_search.collection.model import Document
from klsa_search.errors import StoreError
from klsa_search.store import DocumentWriter
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
try:
    with DocumentWriter(Path(sys.argv[1])) as writer:
        for begin in range(0, 4000, 100):
            some = range(begin, begin + 100)
            writer.extend(Document(id=str(n), text="wing " * 100) for n in some)
except StoreError as error:
    print(error.message)
"""


@pytest.mark.parametrize("room", [0, 4096, 10_000, 1_000_000, 2_000_000])
def test_a_disk_that_is_full_is_named_wherever_it_fills_up(tmp_path, room):
    """Files that may grow no further fail as a full disk does: at the opening too."""
    command = [sys.executable, "-c", WRITING, str(tmp_path), str(room)]
    said = subprocess.check_output(command, text=True)
    assert said.startswith(f"{tmp_path / DOCUMENTS} cannot be written (")
    assert "make room" in said
    assert said.count("\n") == 1


def test_a_folder_that_lets_nothing_in_is_named(tmp_path):
    (tmp_path / DOCUMENTS).mkdir()
    with pytest.raises(StoreError, match=r"documents\.db cannot be written .*owns its folder"):
        DocumentWriter(tmp_path)


def test_a_store_that_cannot_be_opened_is_damage(tmp_path):
    with pytest.raises(IndexDamaged, match=r"documents\.db cannot be read .*check its mode"):
        DocumentReader(tmp_path)
