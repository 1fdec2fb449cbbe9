"""Identifiers are found by their parts, in code and in texts about it."""

import re

import pytest

from klsa_search import build
from klsa_search.analysis.searched_text import (
    are_code,
    pairs_in_identifiers,
    parts_and_summaries,
    parts_of_identifiers,
)
from klsa_search.core.field_weights import SearchedFields
from klsa_search.indexing.rewrite import refit
from klsa_search.indexing.verify import verify_deep

CODE = {
    "camel": "call getUserName before logout",
    "snake": "call get_user_name after login",
    "error": "raise HTTPServerError(code)",
    "digits": "parseJSON2Map(text) converts",
    "prose": "a name for the server of a user",
}


@pytest.fixture(scope="module", params=["built", "added", "partitions"])
def index(request, tmp_path_factory):
    documents = [{"id": name, "text": text} for name, text in CODE.items()]
    home = tmp_path_factory.mktemp("home")
    if request.param == "partitions":
        opened = build(documents, name="code", home=home, partitions=2, workers=1, ranker="bm25")
    else:
        first = documents if request.param == "built" else documents[:3]
        opened = build(first, name="code", home=home, ranker="bm25")
        if request.param == "added":
            opened.add(documents[3:])
    yield opened
    opened.close()


def test_identifiers_are_found_by_their_parts(index):
    assert index.settings.identifiers == "parts"
    for query, expected in (
        ("user name", {"camel", "snake", "prose"}),
        ("getUserName", {"camel", "snake"}),
        ("get_user_name", {"camel", "snake"}),
        ("http server error", {"error"}),
        ("http_server_error", {"error"}),
        ("HTTPServerError", {"error"}),
        ("json map", {"digits"}),
        ("parse_json_2_map", {"digits"}),
    ):
        assert {hit.id for hit in index.search(query, match="all")} >= expected, query


def test_an_identifier_as_typed_comes_first(index):
    assert index.search("getUserName")[0].id == "camel"


def test_snippets_show_only_the_text(index):
    assert {hit.id: hit.snippet for hit in index.search("user name")}["camel"] == CODE["camel"]


def test_prose_has_no_parts_of_identifiers(index_of):
    documents = [{"id": "1", "text": "a farm of an old man " * 9 + "by the name of McDonald"}]
    index = index_of(documents)
    assert index.settings.identifiers == "pairs"
    assert index.search("donald").total == 0
    index = index_of(documents, identifiers="parts")
    assert index.search("donald")[0].id == "1"
    verify_deep(index.path.parent)


@pytest.fixture(scope="module", params=[1, pytest.param(2, marks=pytest.mark.slow)])
def prose(request, tmp_path_factory):
    texts = {
        "camel": "Call getUserName before the logout",
        "lower": "The userName is shown in the header",
        **{f"user{number}": "A story of a user and the name of a thing" for number in range(40)},
    }
    documents = [{"id": name, "text": text} for name, text in texts.items()]
    home = tmp_path_factory.mktemp("home")
    options = {"ranker": "bm25", "partitions": request.param, "workers": 1}
    with build(documents[:-1], name="prose", home=home, **options) as opened:
        opened.add([documents[-1], {"id": "new", "text": "setUserName sets it"}])
        yield opened


def test_identifiers_in_prose_are_found_by_two_parts(prose):
    assert prose.settings.identifiers == "pairs"
    for query in ("user name", "user names", "username", "UserName"):
        found = prose.search(query)
        assert {hit.id for hit in found[:3]} == {"camel", "lower", "new"}
        assert found.interpretation.variants == (
            {query: query.replace(" ", "")} if " " in query else {}
        )


def test_the_setting_turns_them_off(tmp_path):
    documents = [{"id": name, "text": text} for name, text in CODE.items()]
    with build(documents, name="code", home=tmp_path, identifiers="off") as index:
        assert {hit.id for hit in index.search("json map")} == set()
        with refit(index, identifiers="parts") as rebuilt:
            assert {hit.id for hit in rebuilt.search("json map")} == {"digits"}


def test_each_part_counts_once():
    assert parts_of_identifiers("getUser setUser2 user") == "get set 2"
    assert parts_of_identifiers("plain words only") == ""
    assert parts_of_identifiers("a" * 30 + "B1" * 30) == ""
    assert pairs_in_identifiers("getUserName getUserName2 iPhone 14 LibreOffice") == (
        "getUser UserName Name2"
    )
    assert pairs_in_identifiers("plain words, 10mm D2XS2 and iPhone") == ""


def test_names_of_code_are_counted():
    assert are_code(["def read_file(path): return path"])
    assert not are_code(["the function of the heart (and of the lungs)"])
    assert not are_code([])


def test_the_part_of_identifiers_is_not_a_field():
    fields = SearchedFields.of("title^2,author,text").with_identifiers("parts")
    assert fields.derived == "parts"
    assert (fields.names[0], fields.names[-1]) == ("title", "text")
    assert (fields.searched, fields.others) == (("title", "author", "text"), ("author",))


def test_summaries_of_docstrings_count_twice_in_code(index_of):
    body = "for line in log: rotate(line, rotate.today(), rotate.size)"
    records = [
        {
            "id": "said",
            "text": 'def keepSmall(log):\n    """Rotate a log."""\n    keep(log, log.size, 3)',
        },
        {"id": "done", "text": f"def keepSmall(log):\n    {body}"},
    ]
    scores = {}
    for identifiers in ("parts", "off"):
        index = index_of(records, ranker="bm25", identifiers=identifiers)
        hits = {hit.id: hit.score for hit in index.search("rotate")}
        scores[identifiers] = hits["said"] / hits["done"]
    assert scores["parts"] > scores["off"]


@pytest.mark.parametrize(
    ("text", "derived"),
    [
        ("'''A b'''\n  r'''C'''", "A b|C"),
        ("x = f('''A b''')\ny = f('''C''')", None),
        ('x = 1 # use """ for text\n"""A"""', "A"),
        ('x = \'"""\', \'\\\'"""\'\n"""A"""', "A"),
        ('x = """\nSELECT\n"""\nb = 1\n"""A"""', "A"),
        ('x = ["", "it\'s"]\n"""A \\""" b"""', 'A \\""" b'),
        ('"""A\n"b" c"""', 'A\n"b" c'),
        ("'''A \"\"\" b''' c", 'A """ b'),
        ("f() + '''not closed", None),
        ("f('text', '')", None),
        ("''' A\n    b. C\n  \n  D.\n'''", " A\n    b."),
        ("'''A\n  \n  B.'''", "A"),
        ("''''''", ""),
        ("Reads all of a file by open(). Closes it again.", "Reads all of a file by open()."),
        ("long " * 100, None),
    ],
)
def test_summaries_begin_docstrings(text, derived):
    parts = re.split(r"\nx{256}\n", parts_and_summaries(f"title\n{text}"))
    assert parts[1:] == ([] if derived is None else derived.split("|"))


def test_phrases_do_not_cross_docstrings(index):
    text = 'def runThing():\n    """Alpha omega."""\n    x = 1\n"""Sigma tau."""'
    index.add([{"id": "two", "text": text}])
    for phrase, found in (("alpha omega", 1), ("omega sigma", 0), ("thing alpha", 0)):
        assert len(index.search(f'"{phrase}"').interpretation.phrases) == found, phrase
    index.delete(["two"])
