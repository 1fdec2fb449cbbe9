"""documents.db gives back what went in."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klsa_search.collection.model import Document
from klsa_search.errors import DocumentNotFound
from klsa_search.store import DocumentReader, DocumentWriter

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
