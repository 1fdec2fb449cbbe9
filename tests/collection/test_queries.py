import pytest

from klsa_search.collection import read_queries
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
