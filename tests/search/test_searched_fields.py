"""Searched fields: any number of them, with weights; title and text are one case."""

import random

import numpy as np
import pytest

from klsa_search import build, open_index
from klsa_search.analysis.searched_text import field_text
from klsa_search.core.config import Settings
from klsa_search.core.field_weights import SearchedFields
from klsa_search.errors import SettingsError
from klsa_search.indexing import refit, verify_deep
from klsa_search.search.snippets import snippet
from klsa_search.storage.maintenance import undo_writes

WORDS = ["wing", "drag", "flow", "the", "heat", "layer", "jet", "nose", "cone", "tail"]
QUERIES = ("wing", "wing drag", "drag drag flow", "heat of the layer", "jet unheard")
THREE = "title^3,summary^2,text"


def documents(count=60, seed=5):
    chance = random.Random(seed)

    def words(most):
        return " ".join(chance.choices(WORDS, k=chance.randrange(most)))

    return [
        {"id": str(i), "title": words(4), "summary": words(8), "text": words(30)}
        for i in range(count)
    ]


def bm25(index):
    return np.array([index.scores(query, ranker="bm25") for query in QUERIES])


def files(index, *left_out):
    entries = index.manifest.files.items()
    return {name: entry.sha256 for name, entry in entries if not name.startswith(left_out)}


@pytest.fixture(scope="module")
def index(index_of):
    return index_of(documents(), search=THREE)


def test_title_and_text_are_the_default_to_the_bit(index_of):
    plain = index_of(documents(20))
    for search in (" text , title^2.0", {"text": 1, "title": 2}, ["title^2", "text"]):
        same = index_of(documents(20), search=search)
        assert same.settings == plain.settings
        assert same.manifest.fingerprint == plain.manifest.fingerprint
        assert files(same) == files(plain)


def test_fields_of_weight_1_are_one_text(tmp_path):
    given = documents()
    joined = [
        {"id": d["id"], "text": "\n".join((d["title"], d["summary"], d["text"]))} for d in given
    ]
    options = {"home": tmp_path, "pairs": 0.0}  # a pair of words lies within one field
    apart = build(given, name="apart", search="title,summary,text", **options)
    whole = build(joined, name="whole", **options)
    differ = ("documents", "forward", "fields")
    assert files(apart, *differ) == files(whole, *differ)
    for query in QUERIES:
        assert np.array_equal(apart.scores(query), whole.scores(query))


def test_a_weight_repeats_the_field_in_bm25_and_in_the_kernel(tmp_path, index):
    given = [{**d, "summary": [d["summary"]] * 2, "title": ""} for d in documents()]
    for each, d in zip(given, documents(), strict=True):
        each["text"] = "\n".join((d["title"], d["title"], d["title"], d["text"]))
    options = {"home": tmp_path, "pairs": 0.0}
    repeated = build(given, name="repeated", search="summary,text", **options)
    weighted = build(documents(), name="weighted", search=THREE, **options)
    differ = ("documents", "forward", "fields")
    assert files(weighted, *differ) == files(repeated, *differ)
    assert np.array_equal(bm25(weighted), bm25(index))


def test_words_and_phrases_are_searched_in_a_field(index_of):
    given = [
        {"id": "a", "title": "wing", "summary": "drag flow", "text": "heat layer"},
        {"id": "b", "title": "drag", "summary": "wing", "text": "flow heat"},
        {"id": "c", "title": "jet", "text": "wing drag flow"},
    ]
    some = index_of(given, search="title,summary,text")

    def found(query):
        return sorted(hit.id for hit in some.search(query, ranker="bm25", operators=True))

    assert found("title:wing") == ["a"]
    assert found("summary:wing") == ["b"]
    assert found("text:wing") == ["c"]
    assert found("wing -summary:wing") == ["a", "c"]
    assert found('"drag flow"') == ["a", "c"]
    assert found('summary:"drag flow"') == ["a"]
    assert found("summary:wi*") == ["b"]
    # No phrase crosses fields, whichever comes first.
    assert found('"wing drag"') == ["c"]
    assert found('"drag heat"') == found('"wing flow"') == found('"flow heat layer"') == []
    other = index_of(given, search="summary")
    assert [hit.id for hit in other.search("wing")] == ["b"]
    assert not other.search("title:wing", operators=True).interpretation.fields


def test_snippets_and_highlights_are_those_of_each_field(index_of):
    long = " ".join(["the heat"] * 60)
    given = {
        "id": "a",
        "title": "A wing",
        "summary": f"{long} a wing {long}",
        "tags": ["wing", "jet & cone"],
        "text": f"{long} the wing flows {long}",
    }
    more = [{"id": str(i), "text": "drag"} for i in range(3)]
    index = index_of([given, *more], search="title,tags,summary,text")
    (hit,) = index.search("wing jet", ranker="bm25", highlight=True, snippet_length=50)
    assert hit.snippet == snippet(given["text"], {"wing"}, index.analyzer, length=50)
    assert hit.highlight.keys() == {"title", "snippet", "summary", "tags"}
    assert hit.highlight["tags"].html == "<mark>wing</mark> <mark>jet</mark> &amp; cone"
    assert "<mark>wing</mark>" in hit.highlight["summary"].html
    assert len(hit.highlight["summary"].text) <= 52
    (hit,) = index.search("drag", k=1, highlight=True)
    assert hit.highlight.keys() == {"title", "snippet"}
    index = index_of([given, *more], search="tags")
    (hit,) = index.search("wing", snippet_length=50)
    assert hit.snippet == snippet(given["text"], (), index.analyzer, length=50)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("two words", "two words"),
        (None, ""),
        (7, "7"),
        (2.5, "2.5"),
        (True, "true"),
        (["a", 1, None, ["b"]], "a\n1\nb"),
        ({"x": "a", "y": {"z": 2}}, "a\n2"),
    ],
)
def test_the_text_of_a_value(value, text):
    assert field_text(value) == text


def test_later_documents_rank_as_built_ones_by_bm25(tmp_path):
    first = documents(40)
    copies = [{**each, "id": f"n{each['id']}"} for each in first]  # of the same mean length
    whole = build([*first, *copies], name="whole", home=tmp_path, search=THREE)
    later = build(first, name="later", home=tmp_path, search=THREE)
    later.add(copies[:10])
    later.add(copies[10:])
    live = later.arrays.live_docs()
    for options in ({}, {"boosts": {"summary": 4}}):
        for query in QUERIES:
            found = later.scores(query, ranker="bm25", **options)[live]
            assert np.array_equal(found, whole.scores(query, ranker="bm25", **options))
    verify_deep(later.path.parent)
    assert files(refit(later.path.parent)) == files(whole)


def test_a_segment_of_other_texts_is_not_reused(tmp_path):
    index = build(documents(5), name="some", home=tmp_path, search=THREE)
    path = index.path.parent
    for word in ("alpha", "beta"):
        index.add([{"id": f"n{i}", "summary": word} for i in range(130)])
        index.close()
        index = open_index(path)
        assert index.search(f"summary:{word}", ranker="bm25").total == 130
        index.close()
        undo_writes(path)
        index = open_index(path)
    index.close()


def test_an_unknown_field_is_refused_and_a_vanished_one_is_not(tmp_path):
    with pytest.raises(SettingsError) as refused:
        build(documents(3), name="some", home=tmp_path, search="title,sumary,text")
    assert refused.value.message == (
        "search = 'title,sumary,text': no document has a field `sumary`; the fields are: "
        "`title`, `summary`, `text`"
    )
    index = build(documents(3), name="some", home=tmp_path, search=THREE)
    path = index.path.parent
    with pytest.raises(SettingsError, match="no document has a field `sumary`"):
        refit(index, search="title,sumary")
    assert refit(index, search="summary").settings.search == "summary"
    index = refit(path, search=THREE)
    index.add([{"id": str(i), "text": "wing"} for i in range(3)])
    assert refit(path).settings.search == THREE


@pytest.mark.parametrize(
    ("search", "reason"),
    [
        ("title^0", "must be a whole number from 1 to 16"),
        ("title^17", "must be a whole number from 1 to 16"),
        ("title^1.5", "must be a whole number from 1 to 16"),
        ("title^x", "not a number"),
        ("title,title", "named twice"),
        ("", "at least one field"),
        ("title,,text", "blank"),
        ({"a,b": 1}, "comma"),
        ([1], "not a text"),
        (4, "give `name"),
        ({str(i): 1 for i in range(101)}, "limit of 100"),
    ],
)
def test_invalid_searched_fields_are_refused(search, reason):
    with pytest.raises(SettingsError, match="search = ") as refused:
        Settings.of_preset(search=search)
    assert reason in refused.value.message


def test_boosts_of_fields_that_are_not_searched_are_refused():
    with pytest.raises(SettingsError, match="`author` is not a searched field"):
        Settings.of_preset(boosts="author^2")


def test_equal_weights_have_one_text():
    fields = SearchedFields.of({"text": 1, "b": 3, "a": 1})
    assert str(fields) == "a,b^3,text"
    assert (fields.names, fields.weights) == (("title", "a", "b", "text"), (0, 1, 3, 1))
    assert SearchedFields.of(str(fields)) == fields
