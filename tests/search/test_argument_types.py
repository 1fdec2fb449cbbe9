"""Public arguments of the wrong type are errors of the package, which name argument and value."""

import pytest

import klsa_search as klsa
from klsa_search.client import Client
from klsa_search.errors import ArgumentError, IndexNotFound, KlsaError
from klsa_search.storage.write_log import WriteLog

DOCUMENT = {"id": "42", "title": "Red bicycle", "text": "A bicycle"}


@pytest.fixture
def index(copy_of):
    return copy_of([DOCUMENT], name="shop")


@pytest.fixture(scope="module")
def shop(index_of):
    return index_of([DOCUMENT, {**DOCUMENT, "id": "43", "price": 5}], name="shop")


def calls(index):
    remote = Client("http://127.0.0.1:9").index("shop")
    return {
        "search_many": ("queries", lambda: index.search_many("car")),
        "rank_many": ("queries", lambda: index.rank_many("car")),
        "doc_ids": ("ids", lambda: index.doc_ids("42")),
        "document": ("id", lambda: index.document(3)),
        "documents": ("doc_ids", lambda: index.documents_at(["42"])),
        "documents of a text": ("doc_ids", lambda: index.documents_at("42")),
        "ids": ("doc_ids", lambda: index.ids([9999])),
        "ids of fractions": ("doc_ids", lambda: index.ids([0.5])),
        "is_quick": ("query", lambda: index.is_quick(5)),
        "ids of 70 bits": ("doc_ids", lambda: index.ids([2**70])),
        "hits": ("scores", lambda: index.hits([0], 5, ["red"])),
        "excerpt of a number": ("span", lambda: index.excerpt("42", span=5)),
        "excerpt of one end": ("span", lambda: index.excerpt("42", span=(5,))),
        "search": ("query", lambda: index.search(5)),
        "excerpt": ("id", lambda: index.excerpt(3)),
        "patch": ("changes", lambda: index.patch("42", "a")),
        "patch an ID": ("id", lambda: index.patch(42, {"a": 1})),
        "patch_many": ("changes", lambda: index.patch_many({"id": "42"})),
        "delete": ("ids", lambda: index.delete(5)),
        "delete a text": ("ids", lambda: index.delete("42")),
        "write": ("puts", lambda: index.write({"id": "a"})),
        "write mappings": ("puts", lambda: index.write([DOCUMENT])),
        "add": (None, lambda: index.add(5)),
        "rank": ("query", lambda: index.rank(5)),
        "scores": ("query", lambda: index.scores(None)),
        "explain": ("query", lambda: index.explain(5, "42")),
        "explain an ID": ("id", lambda: index.explain("red", 42)),
        "suggest": ("q", lambda: index.suggest(5)),
        "export": ("columns", lambda: index.export("red", "id")),
        "restricted": ("filter", lambda: index.restricted(5)),
        "put_rule": (None, lambda: index.put_rule("a")),
        "set_rules": (None, lambda: index.set_rules(5)),
        "delete_rule": (None, lambda: index.delete_rule(5)),
        "set_synonyms": (None, lambda: index.set_synonyms(5)),
        "judge": ("query", lambda: index.judge(5, "42", 1)),
        "build partitions": (
            "partitions",
            lambda: klsa.build([DOCUMENT], name="a", partitions="x"),
        ),
        "build no partition": (
            "partitions",
            lambda: klsa.build([DOCUMENT], name="a", partitions=0),
        ),
        "build workers": ("workers", lambda: klsa.build([DOCUMENT], name="a", workers="x")),
        "build vectors": ("vectors", lambda: klsa.build([DOCUMENT], name="a", vectors=5)),
        "build source": ("source", lambda: klsa.build(5, name="a")),
        "build name": ("name", lambda: klsa.build([DOCUMENT], name=None)),
        "build home": ("home", lambda: klsa.build([DOCUMENT], name="a", home=5)),
        "build progress": ("progress", lambda: klsa.build([DOCUMENT], name="a", progress="yes")),
        "open_index": ("path", lambda: klsa.open_index(5)),
        "open_index embedders": ("embedders", lambda: klsa.open_index(index.path, embedders=5)),
        "open_index reranker": ("reranker", lambda: klsa.open_index(index.path, reranker=5)),
        "list_indexes": ("home", lambda: klsa.list_indexes(5)),
        "client add": ("documents", lambda: remote.add("42")),
        "client add texts": ("documents", lambda: remote.add(["42"])),
        "client add_file": (None, lambda: remote.add_file("nofile")),
        "client delete": ("ids", lambda: remote.delete("42")),
        "client patch": ("changes", lambda: remote.patch("42", "a")),
        "client patch_many": ("changes", lambda: remote.patch_many({"id": "42"})),
        "client document": ("id", lambda: remote.document(42)),
    }


@pytest.mark.parametrize("name", calls(None))
def test_wrong_types_are_errors_of_the_package(shop, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    argument, call = calls(shop)[name]
    with pytest.raises(KlsaError) as refused:
        call()
    assert refused.value.message.startswith(f"{argument or ''}")
    assert refused.value.field == argument or argument is None
    assert ";" in refused.value.message or ":" in refused.value.message


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda index: index.doc_ids("T001"), "ids = 'T001' is a text; give a list of texts"),
        (lambda index: index.rank_many(["a", 5]), "queries[1] = 5 is a whole number; give a text"),
        (lambda index: index.ids([True]), "doc_ids[0] = True is a bool; give a whole number"),
        (lambda index: index.search(5), "query = 5 is a whole number; give a text"),
        (lambda index: index.rank(5), "query = 5 is a whole number; give a text"),
        (lambda index: index.suggest(5), "q = 5 is a whole number; give a text"),
        (
            lambda index: index.ids([0, 99]),
            "doc_ids: 99 is not a doc id of index `shop`; give those that `live_doc_ids`, "
            "`doc_ids` and `rank` return",
        ),
    ],
)
def test_messages_name_argument_value_and_next_step(shop, call, message):
    with pytest.raises(ArgumentError) as refused:
        call(shop)
    assert refused.value.message == message


@pytest.mark.parametrize(
    ("source", "ids"),
    [
        (DOCUMENT, ["42"]),
        ({"_id": 42, "price": 3}, ["42"]),
        ({"42": "Red bicycle", "43": "Blue bicycle"}, ["42", "43"]),
        ({"42": {"text": "Red bicycle"}}, ["42"]),
        ({"id": ["42", "43"], "text": ["Red", "Blue"]}, ["42", "43"]),
    ],
)
def test_a_mapping_with_an_id_is_one_document(index, source, ids):
    index.delete(["42"])
    assert index.add(source) == len(ids)
    assert index.ids() == ids


def test_deleting_unknown_ids_writes_nothing(index):
    index.delete(["42"])
    before = WriteLog(index.path).last()
    assert index.delete(["42", "never"]) == 0
    assert WriteLog(index.path).last() == before


def test_an_index_opens_by_its_name_in_the_index_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    klsa.build([DOCUMENT], name="tickets").close()
    with klsa.open_index("tickets") as index:
        assert index.ids() == ["42"]
    with pytest.raises(IndexNotFound, match=r"did you mean `tickets`\?"):
        klsa.open_index("index/ticket")
    with pytest.raises(IndexNotFound, match=r"did you mean `tickets`\?"):
        klsa.open_index("ticket")
    with pytest.raises(IndexNotFound, match=r"is an index directory; .*: `index/tickets`"):
        klsa.open_index("index")
