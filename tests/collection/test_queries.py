import pytest

from klsa_search.collection import read_queries
from klsa_search.collection.queries import read_query_lines
from klsa_search.errors import CollectionError


def test_the_format_of_queries_is_detected_by_content(tmp_path):
    path = tmp_path / "asked"
    path.write_text('{"_id": "1", "text": "wet roads"}\n{"id": 2, "text": "tyres"}\n')
    assert [(q.id, q.text) for q in read_queries(path)] == [("1", "wet roads"), ("2", "tyres")]
    path.write_text("<top>\n<num> Number: 7\n<title> wet roads\n</top>\n")
    assert [(q.id, q.text) for q in read_queries(str(path))] == [("7", "wet roads")]


def test_a_file_that_is_neither(tmp_path):
    path = tmp_path / "asked"
    path.write_text("wet roads\n")
    with pytest.raises(CollectionError, match="is it a TREC topics file"):
        read_queries(path)


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
        (b"1\tx\n1\ty\n2\t\xff\n", r":2: the query id '1' is used before"),
    ],
)
def test_a_bad_line_is_named(tmp_path, content, message):
    with pytest.raises(CollectionError, match=message):
        read_query_lines(written(tmp_path, content))


def test_no_such_file(tmp_path):
    with pytest.raises(CollectionError, match="cannot be read"):
        read_query_lines(tmp_path / "none.tsv")
