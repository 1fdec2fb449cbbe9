"""Query files with lines of ID, tab and text."""

import pytest

from klsa_search.collection.queries import read_query_lines
from klsa_search.errors import CollectionError


def written(tmp_path, content):
    path = tmp_path / "queries.tsv"
    path.write_bytes(content)
    return path


def test_order_tabs_and_blank_lines(tmp_path):
    path = written(tmp_path, b"\xef\xbb\xbfb\twing flow\r\n\n 7 \ta\tb\n\xc3\xa9\t\n")
    found = [(query.id, query.text) for query in read_query_lines(path)]
    assert found == [("b", "wing flow"), ("7", "a\tb"), ("é", "")]
    assert read_query_lines(written(tmp_path, b"")) == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"1\tx\nwing flow\n", r":2: no tab"),
        (b"\twing\n", r":1: the query id is blank"),
        (b"1\tx\n1\ty\n", r":2: the query id '1' is used before"),
        (b"1\t\xff\n", r":1: the line .*correct it"),
    ],
)
def test_a_bad_line_is_named(tmp_path, content, message):
    with pytest.raises(CollectionError, match=message):
        read_query_lines(written(tmp_path, content))


def test_no_such_file(tmp_path):
    with pytest.raises(CollectionError, match="cannot be read"):
        read_query_lines(tmp_path / "none.tsv")
