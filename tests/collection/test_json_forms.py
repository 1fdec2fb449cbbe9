"""JSON as other programs write it."""

import json

import pytest

import klsa_search as klsa
from klsa_search.collection import open_collection
from klsa_search.errors import CollectionError

PUMP = {"id": "1", "title": "Pump", "text": "The pump leaks"}
VALVE = {"id": "2", "title": "Valve", "text": "It is stuck"}


def read(path, **options):
    source = open_collection(path, **options)
    return [(each.id, each.title, each.text) for each in source.documents()], source


@pytest.mark.parametrize(
    "around",
    [
        lambda rows: {"meta": {"n": 2}, "documents": rows},
        lambda rows: {"response": {"numFound": 2, "docs": rows}},
        lambda rows: {"message": "success", "data": rows},
        lambda rows: {"title": "Blog", "description": "of pumps", "items": rows},
        lambda rows: {"id": 7, "code": 0, "message": "ok", "data": {"total": 2, "list": rows}},
        lambda rows: {"page_text": "page 1 of 3", "job_content": "", "results": rows},
        lambda rows: {"hits": {"total": {"value": 2}, "hits": rows}, "tags": ["a", "b"]},
        lambda rows: {row["id"]: row for row in rows},
        lambda rows: {"query": {"pages": {row["id"]: row for row in rows}}},
        lambda rows: rows,
    ],
)
def test_a_list_of_documents_is_found_in_an_object(tmp_path, around):
    path = tmp_path / "docs.json"
    for indent in (None, 2):
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


def test_the_list_with_most_text_is_read_unless_another_is_named(tmp_path):
    cards = [{"id": n, "name": "Pump", "desc": "The pump leaks oil"} for n in ("c1", "c2")]
    actions = [{"id": "a1", "data": {"text": "a long comment, which is about one of the cards"}}]
    board = {"id": "b", "name": "Board", "actions": actions, "cards": cards}
    path = tmp_path / "board.json"
    for extra in (
        {},
        {"desc": "of pumps and of valves", "lists": [{"id": 1}], "members": [{"id": 2}]},
    ):
        path.write_text(json.dumps(board | extra))
        rows, source = read(path)
        assert [id_ for id_, _, _ in rows] == ["c1", "c2"]
        assert f"{path}: read the list 'cards' of an object" in source.notes
        assert any("--records actions reads that list instead" in note for note in source.notes)
        rows, source = read(path, records="actions")
        assert [id_ for id_, _, _ in rows] == ["a1"]
        assert source.options["records"] == "actions"
    with pytest.raises(CollectionError, match=r"no list of documents 'card'.*'actions', 'cards'"):
        read(path, records="card")
    path.write_text(json.dumps({"users": {"u1": {"name": "Ann"}}, "posts": {"p1": PUMP}}))
    assert read(path)[0] == [("1", "Pump", "The pump leaks")]
    assert read(path, records="users")[0][0][0] == "u1"
    path = tmp_path / "docs.jsonl"
    path.write_text(json.dumps(PUMP))
    with pytest.raises(CollectionError, match="jsonl has no lists to choose"):
        read(path, records="cards")


def test_records_need_a_single_object_with_lists(tmp_path):
    path = tmp_path / "posts.json"
    path.write_text(json.dumps([PUMP]))
    with pytest.raises(CollectionError, match="is no single object with lists; leave out records"):
        read(path, records="posts")
    path.write_text(json.dumps([{"name": "x", "notes": [PUMP]}, {"name": "y", "notes": [VALVE]}]))
    assert [title for _, title, _ in read(path)[0]] == ["x", "y"]


def test_a_list_is_named_in_python_and_in_one_line(tmp_path):
    content = {"data": {"cards": ["a", "b"]}}
    path = tmp_path / "board.json"
    path.write_text(json.dumps(content))
    for source in (path, content, path.read_bytes()):
        assert [text for _, _, text in read(source, records="data.cards")[0]] == ["a", "b"]
        with pytest.raises(CollectionError, match="no list of documents 'x'"):
            read(source, records="x")
    with pytest.raises(CollectionError, match="a list has no lists to choose"):
        read([PUMP], records="data.cards")


def test_short_messages_of_a_chat_are_its_text(tmp_path):
    path = tmp_path / "chats.json"
    chats = [{"name": "A", "messages": [{"text": "It leaks"}, {"text": "ok"}]}, {"name": "B"}]
    path.write_text(json.dumps(chats))
    assert read(path)[0] == [("1", "A", "It leaks\nok"), ("2", "B", "")]


def test_objects_of_like_objects_are_documents_by_id(tmp_path):
    path = tmp_path / "docs.json"
    rows = {name: {"q": f"Why does the pump {name} leak?", "n": 1} for name in ("p1", "p2")}
    path.write_text(json.dumps(rows))
    found = read(path)[0]
    assert found[1] == ("p2", "", "Why does the pump p2 leak?")


def test_the_messages_of_a_conversation_are_one_text(tmp_path):
    """As ChatGPT exports it."""

    def message(id_, text):
        return {"id": id_, "message": {"role": "user", "content": {"parts": [text, {"x": 1}]}}}

    talk = {"id": "k", "title": "Pump", "mapping": {"a": {"id": "a", "message": None}}}
    for id_, text in (("b", "Why does the pump leak today?"), ("c", "Tighten the gasket of it.")):
        talk["mapping"][id_] = message(id_, text)
    from_files = [documents_of(tmp_path, json.dumps(content)) for content in ([talk], talk)]
    for document, *_ in (*from_files, open_collection([talk]).documents()):
        assert document.text == "Why does the pump leak today?\nTighten the gasket of it."


def test_not_a_number_is_missing(tmp_path):
    path = tmp_path / "docs.jsonl"
    path.write_text('{"id": "1", "text": NaN, "n": NaN, "m": [1, NaN]}\n')
    (document,) = open_collection(path).documents()
    assert (document.text, document.metadata) == ("", {"n": None, "m": [1, None]})


@pytest.mark.parametrize(
    ("name", "content", "line", "ids"),
    [
        ("x.jsonl", '{"id": "1", "a": 1, "a": 2}\n{"id": "2", "text": "b"}\n', 1, ["2"]),
        ("x.jsonl", '{"id": "1", "m": {"a": 1, "a": 1}}\n{"id": "2", "text": "b"}\n', 1, ["2"]),
        ("x.json", '[{"id": "2", "text": "b"},\n{"id": "1", "a": 1, "a": 2}]', 2, ["2"]),
        ("x.json", '{\n"id": "1",\n"a": 1, "a": 2,\n"text": "b"}', 1, []),
    ],
)
def test_a_name_that_is_given_twice_is_refused(tmp_path, name, content, line, ids):
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(
        CollectionError, match=rf":{line}: the name 'a' is given twice in an object"
    ):
        read(path)
    skipping = open_collection(path, on_error="skip")
    assert [each.id for each in skipping.documents()] == ids
    assert skipping.problems.count == 1


@pytest.mark.parametrize(
    ("content", "remedy"),
    [
        ('{"id": "1", "text": "a",}\n', "remove the comma before '}'"),
        ('[{"id": "1", "tags": ["a", ]}]', "remove the comma before ']'"),
        ('[{"id": "1"}, // the first\n {"id": "2"}]', "remove the comment"),
        ('{\n  // who\n  "id": "1"\n}', "remove the comment"),
        ('{"id": "1"}\n{"id": "1"}{"id": "2"}\n', "write each object in a line of its own"),
        ('[{"id": "1"},\n{"id": "2", "te', "the file ends within a value"),
        ('[["1", "pump"]]', "write names and values"),
        ('[{"id": "1"} {"id": "2"}]', "expecting ','"),
        ("[{'id': '1'}]", "use double quotes"),
        ("{'id': '1'}\n", "use double quotes"),
    ],
)
def test_almost_valid_json_is_refused_with_a_remedy(tmp_path, content, remedy):
    path = tmp_path / "docs.json"
    path.write_text(content)
    with pytest.raises(CollectionError, match=remedy):
        read(path)


def test_a_build_without_texts_names_the_fields_that_have_them(tmp_path):
    path = tmp_path / "docs.jsonl"
    rows = [{"id": n, "x": {"remarks": "a long text", "code": "A1"}, "y": "b c"} for n in "123"]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    with pytest.raises(CollectionError, match=r"no document has a title or text; .*x\.remarks"):
        klsa.build(path, name="a", home=tmp_path / "index")
    assert not (tmp_path / "index" / "a" / "CURRENT").exists()
    named = {"text": "x.remarks"}
    assert len(klsa.build(path, name="a", home=tmp_path / "index", columns=named)) == 3
    # Codes are no texts, and documents of numbers alone may be meant.
    assert len(klsa.build([{"id": "1", "n": 5}], name="b", home=tmp_path / "index")) == 1


def documents_of(folder, text):
    path = folder / "docs.json"
    path.write_text(text)
    return list(open_collection(path).documents())


def test_types_of_mongodb_are_plain_values(tmp_path):
    typed = {
        "_id": {"$oid": "65f0"},
        "text": "pump",
        "on": {"$date": {"$numberLong": "1709285400000"}},
        "at": {"$date": "2024-03-01T09:30:00Z"},
        "n": [{"$numberLong": "5"}, {"$numberInt": "6"}, {"$numberDouble": "NaN"}],
        "price": {"$numberDecimal": "2.50"},
        "odd": {"$date": "x", "y": 1},
        "far": {"$numberLong": "x"},
    }
    plain = {
        "on": "2024-03-01T09:30:00+00:00",
        "at": "2024-03-01T09:30:00Z",
        "n": [5, 6, None],
        "price": "2.50",
        "odd": {"$date": "x", "y": 1},
        "far": {"$numberLong": "x"},
    }
    for text in (json.dumps(typed), json.dumps([typed], indent=1)):
        (document,) = documents_of(tmp_path, text)
        assert (document.id, dict(document.metadata)) == ("65f0", plain)


def test_bulk_requests_are_their_documents(tmp_path):
    lines = [
        {"index": {"_index": "x", "_id": "a1"}},
        {"title": "Pump", "body": "leaks"},
        {"delete": {"_id": "a2"}},
        {"create": {"_id": "a3"}},
        {"title": "Valve", "body": "stuck"},
        {"update": {"_id": "a1"}},
        {"doc": {"title": "Fan"}},
    ]
    path = tmp_path / "bulk.ndjson"
    path.write_text("\n".join(map(json.dumps, lines)))
    source = open_collection(path)
    found = [(document.id, document.title, document.text) for document in source.documents()]
    assert found == [("a1", "Pump", "leaks"), ("a3", "Valve", "stuck")]
    assert f"{path}: read as bulk requests of Elasticsearch" in source.notes
    assert f"{path}: left out delete requests, which have no whole document" in source.notes
    assert f"{path}: left out update requests, which have no whole document" in source.notes
    path.write_text("\n".join(json.dumps(line) for line in [{"index": {}}, {"text": "pump"}] * 2))
    assert [document.id for document in open_collection(path).documents()] == ["1", "2"]
    path.write_text('{"id": "1", "text": "pump"}\n{"index": {"of": "books"}}\n')
    with pytest.raises(CollectionError, match="neither '_id' nor 'id'"):
        list(open_collection(path).documents())


def test_the_list_with_texts_is_read(tmp_path):
    hits = [{"_id": "a1", "_source": {"title": "Pump", "body": "leaks"}}]
    answer = {"hits": {"hits": hits}, "aggregations": {"y": {"buckets": [{"key": 1}]}}}
    path = tmp_path / "answer.json"
    path.write_text(json.dumps(answer))
    source = open_collection(path)
    assert [document.text for document in source.documents()] == ["leaks"]
    unread = "the list 'aggregations.y.buckets' is not read; --records aggregations.y.buckets"
    assert any(unread in note for note in source.notes)
    board = {"id": "b", "name": "Board", "cards": [{"id": "c1", "name": "Pump", "desc": "leaks"}]}
    path.write_text(json.dumps(board))
    assert [document.id for document in open_collection(path).documents()] == ["c1"]


def test_arrays_one_after_another(tmp_path):
    one, other = [{"id": "1", "text": "pump"}], [{"id": "2", "text": "valve"}]
    pages = f"{json.dumps(one)}\n{json.dumps(other)}[]"
    assert [document.id for document in documents_of(tmp_path, pages)] == ["1", "2"]
    with pytest.raises(CollectionError, match=r":2: another array of texts; write one array"):
        documents_of(tmp_path, '["1", "pump"]\n["2", "valve"]')
    with pytest.raises(CollectionError, match=r":1: invalid JSON \(expecting '\['\)"):
        documents_of(tmp_path, '[{"id": "1", "text": "pump"}] x')
    with pytest.raises(
        CollectionError, match=r"\(expecting a value\); remove the comma before '\]'"
    ):
        documents_of(tmp_path, '[{"id": "1", "text": "pump"}, ]')


def test_ids_that_only_later_records_have_are_refused(tmp_path):
    with pytest.raises(CollectionError, match="has 'id', unlike the first record"):
        documents_of(tmp_path, '{"text": "pump"}\n{"id": "2", "text": "valve"}')


def test_beside_a_title_the_only_column_of_texts_is_used(tmp_path):
    (found,) = documents_of(tmp_path, '{"objectID": "a", "title": "Pump", "content": "leaks"}')
    assert (found.id, found.title, found.text) == ("a", "Pump", "leaks")
    (found,) = documents_of(
        tmp_path, '{"id": "a", "title": "Pump", "content": "leaks", "message": "x"}'
    )
    assert found.text == ""
    first, other = documents_of(
        tmp_path,
        '{"id": "a", "title": "Pump", "body": "leaks"}\n{"id": "b", "title": "T", "text": "own"}',
    )
    assert (first.text, other.text) == ("leaks", "own")


def test_an_id_outside_of_nested_texts_is_used(tmp_path):
    nodes = [{"node": {"id": n, "title": "Pump", "body": "leaks"}} for n in ("a", "b")]
    found = documents_of(tmp_path, json.dumps({"data": {"edges": nodes}}))
    assert [document.id for document in found] == ["a", "b"]
    row = {"id": "1", "node": {"id": "2", "body": "leaks"}}
    assert [document.id for document in documents_of(tmp_path, json.dumps(row))] == ["1"]


def test_texts_in_an_object_of_an_object_are_used(tmp_path):
    hits = [
        {"_id": "a1", "_source": {"doc": {"title": "Pump", "body": "It leaks"}, "n": 1}},
        {"_id": "a2", "_source": {"doc": {"title": "Valve", "body": "Stuck"}, "n": 2}},
    ]
    lines = "\n".join(map(json.dumps, hits))
    for name, content in (("x.jsonl", lines), ("x.json", json.dumps({"hits": {"hits": hits}}))):
        path = tmp_path / name
        path.write_text(content)
        source = open_collection(path)
        documents = list(source.documents())
        assert [(d.id, d.title, d.text) for d in documents] == [
            ("a1", "Pump", "It leaks"),
            ("a2", "Valve", "Stuck"),
        ]
        assert documents[0].metadata == {"_source": {"n": 1}}
        assert any("'_source.doc.body' as text" in note for note in source.notes)


def test_one_line_of_json_lines_is_one_document(tmp_path):
    path = tmp_path / "qa.jsonl"
    path.write_text('{"question": "How to fix?", "answer": "Turn it off"}\n')
    assert open_collection(path).format == "jsonl"
    assert len(list(open_collection(path).documents())) == 1
    path.write_text('[{"id": "1", "text": "pump"}]')
    assert open_collection(path).format == "json"


def test_an_error_names_the_texts_in_an_object(tmp_path):
    row = {"id": "1", "title": "Pump", "body": {"de": "leckt", "en": "leaks"}}
    with pytest.raises(CollectionError, match=r"'body' is an object.*fields: body\.de, body\.en"):
        documents_of(tmp_path, json.dumps(row))


@pytest.mark.parametrize(
    "text",
    [
        {"rendered": "a leak", "protected": False},  # WordPress
        {"storage": {"value": "a leak", "representation": "storage"}},  # Confluence
        {"S": "a leak"},  # DynamoDB
        ["a ", {"type": "bold", "text": "leak"}],  # Telegram
        {"contentType": "html", "content": "a leak"},  # Teams
        {"type": "doc", "content": [{"content": [{"text": "a"}, {"text": " leak"}]}]},  # Jira
        [{"type": "text", "text": {"content": "a leak"}, "plain_text": "a leak"}],  # Notion
        {"ops": [{"insert": "a leak"}, {"insert": {"image": "x.png"}}]},  # Quill
        {"model": "m", "choices": [{"message": {"role": "x", "content": "a leak"}}]},  # OpenAI
        {"stringValue": "a leak"},  # Firestore
    ],
)
def test_the_text_of_an_object_is_read(tmp_path, text):
    [document] = documents_of(tmp_path, json.dumps([{"id": "1", "text": text}]))
    assert document.text.split() == ["a", "leak"]


def paragraph(*texts):
    return {"type": "paragraph", "content": [{"type": "text", "text": text} for text in texts]}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ({"type": "doc", "content": [paragraph("The pu", "mp"), paragraph("leaks")]}, 2),
        ({"ops": [{"insert": "The pu"}, {"insert": "mp"}, {"insert": "\nleaks\n"}]}, 2),
        ({"ops": [{"insert": "The pump"}, {"insert": {"image": "x"}}, {"insert": "leaks"}]}, 2),
        ([{"text": {"content": text}, "plain_text": text} for text in ("The pu", "mp")], 1),
        (["The pu", {"type": "bold", "text": "mp"}], 1),
        ({"storage": {"value": "The pump"}, "view": {"value": "The pump"}}, 1),
        ({"attrs": {"value": "x"}, "alt_text": "y", "mime_content": "z", "Text": "The pump"}, 1),
        ({"blocks": [{"type": "header", "text": text} for text in ("The pump", "leaks")]}, 2),
        ([{"role": "user", "content": text} for text in ("The pump", "leaks")], 2),
    ],
)
def test_runs_of_a_text_are_joined_and_its_lines_are_not(tmp_path, text, expected):
    [document] = documents_of(tmp_path, json.dumps([{"id": "1", "text": text}]))
    assert document.text == "\n".join(["The pump", "leaks"][:expected])


def test_texts_that_are_repeated_stay(tmp_path):
    text = [{"text": text} for text in ("no", "no", "never")]
    [document] = documents_of(tmp_path, json.dumps([{"id": "1", "text": text}]))
    assert document.text == "no\nno\nnever"


@pytest.mark.parametrize("name", ["title", "text"])
def test_a_list_of_objects_without_a_text_is_an_error(tmp_path, name):
    with pytest.raises(CollectionError, match=f"one of its fields: {name}.lang"):
        documents_of(tmp_path, json.dumps([{"id": "1", "text": "a", name: [{"lang": "en"}]}]))


def test_other_objects_by_their_ids_stay_objects(tmp_path):
    row = {"id": "1", "text": "a", "nodes": {"a": {"id": "a"}}, "mapping": {"a": {"id": "b"}}}
    for rows in (documents_of(tmp_path, json.dumps([row])), open_collection([row]).documents()):
        (document,) = rows
        assert document.metadata == {"nodes": row["nodes"], "mapping": row["mapping"]}


def test_an_object_is_an_id_if_one_of_its_fields_is(tmp_path):
    row = {"id": {"kind": "video", "videoId": "v1"}, "title": "Pump", "text": "leaks"}
    assert documents_of(tmp_path, json.dumps(row))[0].id == "v1"
    with pytest.raises(CollectionError, match="'id' is an object, not a string"):
        documents_of(tmp_path, json.dumps(row | {"id": {"kind": "video"}}))


@pytest.mark.parametrize("end", ["", "\n", " \n\n"])
def test_objects_in_one_line_are_read(tmp_path, end):
    found = documents_of(tmp_path, f"{json.dumps(PUMP)}{json.dumps(VALVE)}{end}")
    assert [document.id for document in found] == ["1", "2"]


def test_a_column_of_texts_that_is_blank_is_not_the_text(tmp_path):
    rows = [{"id": n, "title": "Pump", "description": "", "encoded": "It leaks"} for n in (1, 2)]
    assert documents_of(tmp_path, json.dumps(rows))[0].text == "It leaks"
    rows = [{"id": n, "title": "Pump", "body": "", "x": f"It leaks for {n} days"} for n in (1, 2)]
    assert documents_of(tmp_path, json.dumps(rows))[0].text == "It leaks for 1 days"


TABLES = [
    {"id": {"0": "a", "1": "b"}, "text": {"0": "pump", "1": "valve"}},
    {"id": ["a", "b"], "text": ["pump", "valve"]},
    {"columns": ["id", "text"], "index": [0, 1], "data": [["a", "pump"], ["b", "valve"]]},
]
"""As pandas writes a data frame: to_json(), to_dict("list"), to_json(orient="split")."""


@pytest.mark.parametrize("table", TABLES)
def test_columns_of_a_data_frame_are_rows(tmp_path, table):
    from_file, from_python = documents_of(tmp_path, json.dumps(table)), open_collection(table)
    for documents in (from_file, from_python.documents()):
        assert [(row.id, row.text) for row in documents] == [("a", "pump"), ("b", "valve")]


def test_a_text_without_end_is_named_by_its_beginning(tmp_path):
    with pytest.raises(CollectionError, match="Unterminated string starting at column 18"):
        documents_of(tmp_path, '{"id":"1","text":"a"}\n{"id":"2","text":"val')


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("utf-16", '{"id": "1", "text": "Größe"}\r\n{"id": "2", "text": "水泵"}\r\n'),
        ("utf-16-le", '[{"id": "1", "text": "Größe"},\n {"id": "2", "text": "水泵"}]'),
        ("utf-16-be", '{"rows": [{"id": "1", "text": "Größe"},\n {"id": "2", "text": "水泵"}]}'),
    ],
)
def test_json_in_utf_16_is_read(tmp_path, encoding, text):
    path = tmp_path / "rows.json"
    path.write_bytes(text.encode(encoding))
    documents = list(open_collection(path).documents())
    assert [(each.id, each.text) for each in documents] == [("1", "Größe"), ("2", "水泵")]


def test_json_in_utf_16_that_is_cut_short_is_refused(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_bytes('{"id": "1", "text": "Größe"}\n{"id"'.encode("utf-16")[:-1])
    with pytest.raises(CollectionError, match=r"rows.jsonl:2: invalid UTF-16"):
        list(open_collection(path).documents())


def test_a_feed_is_its_items_and_a_post_is_not_its_comments(tmp_path):
    path = tmp_path / "docs.json"
    feed = {"title": "Blog", "description": "All posts", "items": []}
    for number, name in enumerate(("content_text", "content_html"), 1):
        feed["items"].append({"id": str(number), "title": name, name: "It leaks"})
    path.write_text(json.dumps(feed | {"items": feed["items"][:1]}))
    assert read(path)[0] == [("1", "content_text", "It leaks")]
    path.write_text(json.dumps(feed | {"items": feed["items"][1:]}))
    assert read(path)[0] == [("2", "content_html", "It leaks")]
    path.write_text(json.dumps({"id": "1", "body": "It leaks", "comments": [{"body": "so"}]}))
    assert read(path)[0] == [("1", "", "It leaks")]


@pytest.mark.parametrize(
    "record",
    [
        {"id": "1", "description": "order of pumps", "items": [{"description": "valve"}]},
        {
            "key": "1",
            "summary": "It leaks",
            "description": "water",
            "entries": [{"id": "x", "body": "seen"}, {"id": "y", "body": "mended"}],
        },
        {"id": "1", "description": "a trial", "results": [{"title": "A", "text": "fewer leaks"}]},
        {"id": "1", "message": "It leaks", "comments": {"data": [{"id": "x", "text": "so"}]}},
        {"id": "1", "message": "Your order is sent", "rows": [{"description": "pump"}]},
        {
            "id": "1",
            "title": "Leak",
            "description": "It leaks",
            **{name: [{"id": "x", "body": "so", "abstract": "it"}] for name in "abcd"},
        },
        {"id": "1", "message": "Why?\nIt leaks", "results": [{"id": "x", "text": "a seal"}]},
    ],
)
def test_an_object_with_id_and_text_is_a_document_whatever_lists_it_has(tmp_path, record):
    path = tmp_path / "docs.json"
    path.write_text(json.dumps(record))
    document = read(path)[0]
    text = record.get("description") or record["message"]
    assert [(id_, text) for id_, _, text in document] == [("1", text)]


@pytest.mark.parametrize(
    ("answer", "ids"),
    [
        ({"product": {"id": 5, "title": "Pump", "variants": [{"id": 6, "title": "Red"}]}}, ["5"]),
        ({"data": {"id": "5", "text": "leaks"}, "includes": {"users": [{"name": "Ann"}]}}, ["5"]),
        ({"status": "ok", "message": {"title": ["Pump"], "abstract": "leaks"}}, ["1"]),
        ({"data": {"id": "5", "name": "Tools"}, "items": [{"id": "6", "name": "Pump"}]}, ["6"]),
        ({"data": {"id": "5", "name": "Tools"}, "found": [{"id": "6", "text": "leaks"}]}, ["6"]),
        ({"data": {"id": "5", "name": "Ann", "posts": [{"id": "6", "text": "leaks"}]}}, ["6"]),
        (
            {
                "id": "5",
                "fields": {"summary": "Leak", "description": None, "comments": [{"body": "so"}]},
            },
            ["5"],
        ),
        ({"_id": "5", "_source": {"text": "leaks", "comments": [{"body": "so"}]}}, ["5"]),
        ({"id": 5, "content": {"rendered": "leaks"}, "_links": {"self": [{"href": "u"}]}}, ["5"]),
        ({"ok": "", "query": {"pages": {"5": {"title": "Pump", "extract": "x"}}}}, ["5"]),
        ({"n": 2, "result": {"uids": ["5"], "5": {"title": "A", "authors": [{"x": 1}]}}}, ["5"]),
        ({"n": 1, "event": {"before": {"title": "A"}, "after": {"title": "B"}}}, ["1"]),
        ({"id": "5", "description": "", "items": [{"id": "6", "description": "leaks"}]}, ["5"]),
        ({"id": 5, "message": "Fix it", "results": [{"id": 6, "text": "leaks"}]}, ["5"]),
        ({"success": True, "message": "OK", "data": {"id": 5, "text": "leaks"}}, ["5"]),
        (
            {
                "data": {"type": "a", "id": "5", "attributes": {"title": "Pump", "body": "leaks"}},
                "included": [{"type": "b", "id": "6", "attributes": {"body": "so"}}],
            },
            ["5"],
        ),
    ],
)
def test_answers_of_services(tmp_path, answer, ids):
    path = tmp_path / "docs.json"
    for indent in (None, 1):
        path.write_text(json.dumps(answer, indent=indent))
        assert [id_ for id_, _, _ in read(path)[0]] == ids


def test_columns_are_those_of_the_document_in_an_answer(tmp_path):
    ticket = {
        "id": 5,
        "subject": "Pump",
        "description": "leaks",
        "fields": [{"id": 6, "label": "x"}],
    }
    path = tmp_path / "docs.json"
    path.write_text(json.dumps({"ticket": ticket}))
    expected = [("5", "Pump", "leaks")]
    columns = {"title": "subject", "text": "description"}
    assert (read(path)[0], read(path, columns=columns)[0]) == (expected, expected)
    assert read(path, columns={"text": "label"})[0] == [("6", "", "x")]


def test_an_answer_is_the_same_document_in_a_folder(tmp_path):
    (tmp_path / "note.txt").write_text("a note")
    product = {"product": {"id": 5, "title": "Pump", "variants": [{"id": 6, "title": "Red"}]}}
    (tmp_path / "docs.json").write_text(json.dumps(product))
    assert [id_ for id_, _, _ in read(tmp_path)[0]] == ["docs.json#5", "note.txt"]


@pytest.mark.parametrize("size", [10, 2**17])
def test_an_object_in_one_long_line_is_read_as_in_a_short_one(tmp_path, size):
    path = tmp_path / "docs.json"
    rows = [PUMP, VALVE | {"note": "x" * size}]
    for around in ({"data": rows}, {row["id"]: row for row in rows}):
        path.write_text(json.dumps(around))
        assert [id_ for id_, _, _ in read(path)[0]] == ["1", "2"]
    for content in (PUMP | {"text": "leaks " * size, "comments": rows}, VALVE | {"parts": rows}):
        path.write_text(json.dumps(content))
        assert [id_ for id_, _, _ in read(path)[0]] == [content["id"]]
        path.write_text(f"{json.dumps(content)}\n{json.dumps(PUMP | {'id': '3'})}")
        assert read(path)[1].format == "jsonl"
        assert [id_ for id_, _, _ in read(path)[0]] == [content["id"], "3"]


def test_texts_of_objects_beside_titles_are_searched(tmp_path):
    path = tmp_path / "docs.json"
    article = {
        "title": "Normans",
        "paragraphs": [{"context": "They came from the north", "qas": []}],
    }
    path.write_text(json.dumps({"version": "2.0", "data": [article]}))
    (document,), source = read(path)
    assert document == ("1", "Normans", "They came from the north")
    assert "using column 'paragraphs.context' as text" in source.notes[-1]
    for row in ({"author": "A B"}, {"url": "x" * 99}, {"text": "It leaks", "note": "a b " * 9}):
        path.write_text(json.dumps([{"id": "1", "title": "Normans", **row}]))
        assert not any("--text" in note for note in read(path)[1].notes)


def test_an_object_with_texts_gives_its_id_and_title(tmp_path):
    post = {
        "id": "p1",
        "title": "Leak",
        "selftext": "My pump leaks oil at night",
        "selftext_html": "",
    }
    posts = [
        {"kind": "t3", "data": post | {"id": f"p{n}", "selftext_html": f"<p>It leaks oil {n}</p>"}}
        for n in range(3)
    ]
    posts[1]["data"]["selftext"] = "[removed]"
    posts[2]["data"]["selftext"] = "It is the valve, I think"
    path = tmp_path / "listing.json"
    path.write_text(json.dumps({"kind": "Listing", "data": {"after": None, "children": posts}}))
    documents, _ = read(path)
    assert documents[2] == ("p2", "Leak", "It is the valve, I think")


def test_messages_of_a_chat_are_one_text_if_one_is_a_sentence(tmp_path):
    contents = ["Why does it leak?", "The valve", "ok"]
    chat = [{"role": "user", "content": content} for content in contents]
    path = tmp_path / "chat.jsonl"
    path.write_text(json.dumps({"messages": chat}))
    assert read(path)[0] == [("1", "", "Why does it leak?\nThe valve\nok")]


def test_rtf_is_no_json(tmp_path):
    path = tmp_path / "a.rtf"
    path.write_text(r"{\rtf1\ansi It leaks\par}")
    with pytest.raises(CollectionError, match="it is RTF, which is not read: save it as DOCX"):
        open_collection(path)


@pytest.mark.parametrize("around", [{}, {"name": "cities", "crs": {"type": "name"}}])
def test_features_of_geojson_are_documents_with_their_names(tmp_path, around):
    path = tmp_path / "cities.geojson"
    features = [
        {"type": "Feature", "properties": {"name": name, "size": 2}, "geometry": None}
        for name in ("Paris", "Rome")
    ]
    path.write_text(json.dumps({"type": "FeatureCollection", **around, "features": features}))
    assert read(path)[0] == [("1", "Paris", ""), ("2", "Rome", "")]
    path.write_text("\n".join(map(json.dumps, features)))
    assert read(path)[0] == [("1", "Paris", ""), ("2", "Rome", "")]


@pytest.mark.parametrize(
    "record",
    [
        {"type": "object", "properties": {"name": {"type": "string"}}},
        {"id": "1", "user": {"name": "Ann"}, "geometry": None},
        {"type": "FeatureCollection", "title": "Pump"},
    ],
)
def test_other_properties_and_types_are_read_as_before(tmp_path, record):
    path = tmp_path / "docs.json"
    path.write_text(json.dumps(record))
    assert read(path)[0] == [("1", record.get("title", ""), "")]


@pytest.mark.parametrize(
    "record",
    [
        {"Id": "1", "Title": "Pump", "Text": "It leaks"},
        {"ID": "1", "Title": "Pump", "Description": "It leaks"},
        {"ID": 1, "TITLE": "Pump", "text": "It leaks"},
        {"id": "1", "Title": "Pump", "contents": "It leaks"},
    ],
)
def test_usual_names_may_have_capitals(tmp_path, record):
    path = tmp_path / "x.json"
    path.write_text(json.dumps([record]))
    assert read(path)[0] == [("1", "Pump", "It leaks")]


@pytest.mark.parametrize(
    ("content", "texts"),
    [
        ({"texts": ["It leaks", "Stuck"]}, ["It leaks", "Stuck"]),
        ({"n": 2, "results": ["It leaks", "Stuck"], "tags": ["a b"]}, ["It leaks", "Stuck"]),
        ({"text": "It leaks", "items": ["a b"]}, ["It leaks"]),
    ],
)
def test_a_list_of_texts_is_found_in_an_object(tmp_path, content, texts):
    path = tmp_path / "x.json"
    path.write_text(json.dumps(content))
    assert [text for _, _, text in read(path)[0]] == texts


@pytest.mark.parametrize("content", ["null", '"a text"', "5"])
def test_json_that_is_no_object_says_what_to_write(tmp_path, content):
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(CollectionError, match="write an array or lines of objects"):
        read(path)


def test_a_text_that_names_nothing_in_tables_is_a_text_in_json(tmp_path):
    path = tmp_path / "elements.jsonl"
    path.write_text(json.dumps({"id": "na", "title": "NA", "text": "None"}))
    assert read(path)[0] == [("na", "NA", "None")]
