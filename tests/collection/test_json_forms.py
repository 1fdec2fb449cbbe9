"""JSON as other programs write it."""

import json

import pytest

import klsa_search as klsa
from klsa_search.collection import open_collection
from klsa_search.errors import CollectionError

PUMP = {"id": "1", "title": "Pump", "text": "The pump leaks"}
VALVE = {"id": "2", "title": "Valve", "text": "It is stuck"}


def read(path):
    source = open_collection(path)
    return [(each.id, each.title, each.text) for each in source.documents()], source


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize(
    "around",
    [
        lambda rows: {"meta": {"n": 2}, "documents": rows},
        lambda rows: {"response": {"numFound": 2, "docs": rows}},
        lambda rows: {"hits": {"total": {"value": 2}, "hits": rows}, "tags": ["a", "b"]},
        lambda rows: {row["id"]: row for row in rows},
        lambda rows: {"query": {"pages": {row["id"]: row for row in rows}}},
        lambda rows: rows,
    ],
)
def test_a_list_of_documents_is_found_in_an_object(tmp_path, around, indent):
    path = tmp_path / "docs.json"
    path.write_text(json.dumps(around([PUMP, VALVE]), indent=indent))
    assert read(path)[0] == [("1", "Pump", "The pump leaks"), ("2", "Valve", "It is stuck")]


def test_objects_of_several_lines_may_follow_each_other(tmp_path):
    path = tmp_path / "docs.json"
    path.write_text("\ufeff" + "\n".join(json.dumps(each, indent=1) for each in (PUMP, VALVE)))
    assert [id_ for id_, _, _ in read(path)[0]] == ["1", "2"]
    path.write_text(json.dumps(PUMP, indent=1))
    assert [id_ for id_, _, _ in read(path)[0]] == ["1"]


def test_lists_of_texts_are_documents_or_one_text(tmp_path):
    path = tmp_path / "docs.json"
    path.write_text('["a pump", "b valve"]')
    assert read(path)[0] == [("1", "", "a pump"), ("2", "", "b valve")]
    path.write_text('[{"id": "1", "title": ["a", "b"], "text": ["a pump", null, 5]}]')
    assert read(path)[0] == [("1", "a, b", "a pump\n5")]
    path.write_text('{"a": "a pump", "b": "a valve"}')
    assert read(path)[0] == [("a", "", "a pump"), ("b", "", "a valve")]


def test_two_lists_are_named(tmp_path):
    path = tmp_path / "docs.json"
    path.write_text(json.dumps({"a": [PUMP], "b": {"c": [VALVE]}}))
    with pytest.raises(CollectionError, match=r"2 lists of objects: 'a', 'b\.c'; write one"):
        read(path)


def test_not_a_number_is_missing(tmp_path):
    path = tmp_path / "docs.jsonl"
    path.write_text('{"id": "1", "text": NaN, "n": NaN, "m": [1, NaN]}\n')
    (document,) = open_collection(path).documents()
    assert (document.text, document.metadata) == ("", {"n": None, "m": [1, None]})


@pytest.mark.parametrize(
    ("content", "remedy"),
    [
        ('{"id": "1", "text": "a",}\n', "remove the comma before '}'"),
        ('[{"id": "1", "tags": ["a", ]}]', "remove the comma before ']'"),
        ('[{"id": "1"}, // the first\n {"id": "2"}]', "remove the comment"),
        ('{\n  // who\n  "id": "1"\n}', "remove the comment"),
        ("[{'id': '1'}]", "use double quotes"),
        ("{'id': '1'}\n", "use double quotes"),
    ],
)
def test_what_is_not_quite_json_has_a_remedy(tmp_path, content, remedy):
    path = tmp_path / "docs.json"
    path.write_text(content)
    with pytest.raises(CollectionError, match=f"invalid JSON .*{remedy}"):
        read(path)


def test_a_build_without_texts_names_the_fields_that_have_them(tmp_path):
    path = tmp_path / "docs.jsonl"
    rows = [{"id": n, "x": {"abstract": "a long text", "code": "A1"}, "y": "b c"} for n in "123"]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    with pytest.raises(CollectionError, match=r"no document has a title or text; .*x\.abstract"):
        klsa.build(path, name="a", home=tmp_path / "index")
    assert not (tmp_path / "index" / "a" / "CURRENT").exists()
    named = {"text": "x.abstract"}
    assert len(klsa.build(path, name="a", home=tmp_path / "index", columns=named)) == 3
    # Codes are no texts, and documents of numbers alone may be meant.
    assert len(klsa.build([{"id": "1", "n": 5}], name="b", home=tmp_path / "index")) == 1
